"""A node's own numbers at scrape: what came in, what is stored, what is wrong. Plain integers read off the drivers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.server.metrics import COUNTER, GAUGE, Sample

if TYPE_CHECKING:
    from penstock.server.drivers.compaction_driver import CompactionDriver
    from penstock.server.drivers.fetch_driver import FetchDriver
    from penstock.server.drivers.flush_driver import FlushDriver
    from penstock.server.drivers.isr_driver import IsrDriver
    from penstock.server.drivers.partition_driver import PartitionDriver
    from penstock.server.drivers.produce_driver import ProduceDriver
    from penstock.server.drivers.upkeep_driver import UpkeepDriver


def partition_samples(partitions: PartitionDriver) -> Iterator[Sample]:
    """Offsets and sizes by partition, as kafka_exporter names them, and the counts that alerts look at."""
    leading = under_min = at_min = 0
    for hosted in list(partitions):
        labels = {"topic": hosted.name.topic, "partition": str(hosted.name.partition)}
        if hosted.state.leading:
            in_sync, needed = len(hosted.state.isr), hosted.state.effective_min_isr
            leading += 1
            under_min += in_sync < needed
            at_min += in_sync == needed
        log = hosted.log
        if log is None:
            continue
        yield Sample("kafka_topic_partition_current_offset", labels, log.committed, GAUGE, "High watermark")
        yield Sample("kafka_topic_partition_oldest_offset", labels, log.log_start, GAUGE, "Log start offset")
        yield Sample("kafka_log_log_size", labels, log.size_bytes, GAUGE, "Bytes of the log on disk")
        yield Sample("kafka_log_log_numlogsegments", labels, len(log.segments), GAUGE, "Segments of the log")
    manager = "kafka_server_replicamanager_"
    yield Sample(manager + "leadercount", {}, leading, GAUGE, "Partitions this node leads")
    yield Sample(manager + "partitioncount", {}, len(partitions), GAUGE, "Partitions this node hosts")
    yield Sample(manager + "offlinereplicacount", {}, partitions.offline(), GAUGE, "Partitions without a log directory")
    yield Sample(manager + "underminisrpartitioncount", {}, under_min, GAUGE, "Led partitions that refuse acks=all")
    yield Sample(manager + "atminisrpartitioncount", {}, at_min, GAUGE, "Led partitions with no replica to spare")


def replication_samples(partitions: PartitionDriver, isr: IsrDriver) -> Iterator[Sample]:
    """How well the followers of what this node leads keep up."""
    under_replicated = late_offsets = 0
    for hosted in partitions.replicated.values():
        state = hosted.state
        under_replicated += len(state.isr) < len(state.replicas)
        for follower in state.followers.values():
            late_offsets = max(late_offsets, state.end - follower.end if follower.end >= 0 else 0)
    manager = "kafka_server_replicamanager_"
    yield Sample(manager + "underreplicatedpartitions", {}, under_replicated, GAUGE, "Led partitions not all in sync")
    yield Sample(manager + "isrshrinks_total", {}, isr.shrinks, COUNTER, "In-sync sets that lost a replica")
    yield Sample(manager + "isrexpands_total", {}, isr.expands, COUNTER, "In-sync sets that a replica joined")
    yield Sample(manager + "failedisrupdates_total", {}, isr.failures, COUNTER, "Changes of in-sync sets not made")
    lag = "penstock_replica_lag_offsets_max"
    yield Sample(lag, {}, late_offsets, GAUGE, "How far the latest follower of a led partition is behind")


def traffic_samples(produces: ProduceDriver, fetches: FetchDriver) -> Iterator[Sample]:
    """What came in, and who waits."""
    topics = "kafka_server_brokertopicmetrics_"
    yield Sample(topics + "totalproducerequests_total", {}, produces.requests, COUNTER, "Produce requests")
    yield Sample(topics + "messagesin_total", {}, produces.records_in, COUNTER, "Records appended")
    yield Sample(topics + "bytesin_total", {}, produces.bytes_in, COUNTER, "Bytes of batches appended")
    yield Sample(topics + "bytesout_total", {}, fetches.bytes_out, COUNTER, "Bytes of batches given to fetchers")
    yield Sample(topics + "failedproducerequests_total", {}, produces.refused, COUNTER, "Batches refused")
    sessions = "kafka_server_fetchsessioncache_numincrementalfetchsessions"
    yield Sample(sessions, {}, fetches.session_count, GAUGE, "Fetch sessions")
    waiting = "kafka_server_delayedoperationpurgatory_purgatorysize"
    yield Sample(waiting, {"delayedoperation": "Fetch"}, fetches.waiting, GAUGE, "Requests that wait")


def upkeep_samples(flushes: FlushDriver, upkeep: UpkeepDriver, compaction: CompactionDriver) -> Iterator[Sample]:
    """Syncs, deletions and compaction."""
    yield Sample("penstock_flush_rounds_total", {}, flushes.rounds, COUNTER, "Group commits")
    yield Sample("penstock_flush_syncs_total", {}, flushes.syncs, COUNTER, "Files synced")
    yield Sample("penstock_segments_deleted_total", {}, upkeep.segments_deleted, COUNTER, "Segments retention deleted")
    yield Sample("penstock_compactions_total", {}, compaction.runs, COUNTER, "Logs compacted")
    read, kept = compaction.bytes_before, compaction.bytes_after
    yield Sample("penstock_compaction_read_bytes_total", {}, read, COUNTER, "Bytes compaction looked at")
    yield Sample("penstock_compaction_kept_bytes_total", {}, kept, COUNTER, "Bytes compaction kept")
