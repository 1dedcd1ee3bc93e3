"""A node's own numbers at scrape: what came in, what is stored, what is wrong. Plain integers read off the drivers.

What is told of a partition is told by its leader alone, so that sums over all nodes count it once. Only the bytes that
a log takes are told by every replica, because every one takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from penstock.server.metrics.page import (
    LOOKS_A_PAUSE,
    PAUSE,
    SERIES_MAX,
    Row,
    Sample,
    Telling,
    Told,
    counted,
)
from penstock.transport.prometheus import COUNTER, GAUGE

if TYPE_CHECKING:
    from penstock.model.ports import Clock
    from penstock.server.partitions.fetching.driver import FetchDriver
    from penstock.server.partitions.following.driver import FollowerDriver
    from penstock.server.partitions.following.watch import FollowerWatch
    from penstock.server.partitions.hosted import Hosted
    from penstock.server.partitions.isr_driver import IsrDriver
    from penstock.server.partitions.partition_driver import PartitionDriver
    from penstock.server.partitions.producing.driver import ProduceDriver
    from penstock.server.partitions.topic_traffic import TopicTraffic
    from penstock.server.partitions.upkeep.compaction import CompactionDriver
    from penstock.server.partitions.upkeep.driver import UpkeepDriver
    from penstock.server.partitions.upkeep.flushing import FlushDriver
    from penstock.storage.log import Log
    from penstock.storage.store import LogStore

_LEFT_OUT: Final = "penstock_metrics_left_out"
_MANAGER: Final = "kafka_server_replicamanager_"
_TOPICS: Final = "kafka_server_brokertopicmetrics_"
LATE_MS: Final = 300_000
"""A transaction that lasts for longer than any may, and for this much more, is late."""

STORED: Final = (
    Told("kafka_log_log_size", GAUGE, "Bytes of the log on disk"),
    Told("kafka_log_log_numlogsegments", GAUGE, "Segments of the log"),
)
LED: Final = (
    *STORED,
    Told("kafka_topic_partition_current_offset", GAUGE, "High watermark"),
    Told("kafka_topic_partition_oldest_offset", GAUGE, "Log start offset"),
    Told("kafka_topic_partition_leader", GAUGE, "The node that leads the partition"),
    Told("kafka_topic_partition_leader_is_preferred", GAUGE, "1 when the first replica leads"),
    Told("kafka_topic_partition_replicas", GAUGE, "Replicas of the partition"),
    Told("kafka_topic_partition_in_sync_replica", GAUGE, "Replicas in sync"),
    Told("kafka_topic_partition_under_replicated_partition", GAUGE, "1 when not all replicas are in sync"),
    Told("kafka_cluster_partition_replicascount", GAUGE, "Replicas of the partition"),
    Told("kafka_cluster_partition_underminisr", GAUGE, "1 when the partition refuses acks=all"),
    Told("kafka_cluster_partition_atminisr", GAUGE, "1 when no in-sync replica is to spare"),
    Told("kafka_cluster_partition_laststableoffsetlag", GAUGE, "How far open transactions hold readers back"),
)
BY_TOPIC: Final = (
    Told(_TOPICS + "totalproducerequests_total", COUNTER, "Batches produced, one for each partition of a request"),
    Told(_TOPICS + "messagesin_total", COUNTER, "Records appended"),
    Told(_TOPICS + "bytesin_total", COUNTER, "Bytes of batches appended"),
    Told(_TOPICS + "failedproducerequests_total", COUNTER, "Batches refused"),
    Told(_TOPICS + "totalfetchrequests_total", COUNTER, "Partitions told of in replies to consumers"),
    Told(_TOPICS + "bytesout_total", COUNTER, "Bytes of batches given to consumers"),
    Told(_TOPICS + "failedfetchrequests_total", COUNTER, "Partitions refused in replies to consumers"),
)


def left_out(of: str, count: int) -> Sample:
    """How many things have no series of their own because there are too many of them."""
    return Sample(_LEFT_OUT, {"of": of}, count, GAUGE, "What is too much for a page, or not known")


def partition_samples(partitions: PartitionDriver) -> Iterator[Telling]:
    """Offsets, replicas and sizes by partition, and the counts that alerts look at."""
    leading = under_min = at_min = told = 0
    for hosted in counted(list(partitions)):
        if hosted is PAUSE:
            yield PAUSE
            continue
        state = hosted.state
        if state.leading:
            in_sync, needed = len(state.isr), state.effective_min_isr
            leading += 1
            under_min += in_sync < needed
            at_min += in_sync == needed
        log = hosted.log
        if log is None:
            continue
        told += 1
        if told <= SERIES_MAX:
            labels = {"topic": hosted.name.topic, "partition": str(hosted.name.partition)}
            stored = (log.size_bytes, len(log.segments))
            yield Row(labels, LED, stored + _led(hosted, log)) if state.leading else Row(labels, STORED, stored)
    yield left_out("partitions", max(0, told - SERIES_MAX))
    yield Sample(_MANAGER + "leadercount", {}, leading, GAUGE, "Partitions this node leads")
    yield Sample(_MANAGER + "partitioncount", {}, len(partitions), GAUGE, "Partitions this node hosts")
    yield Sample(_MANAGER + "offlinereplicacount", {}, partitions.offline(), GAUGE, "Replicas without a log directory")
    yield Sample(_MANAGER + "underminisrpartitioncount", {}, under_min, GAUGE, "Led partitions that refuse acks=all")
    yield Sample(_MANAGER + "atminisrpartitioncount", {}, at_min, GAUGE, "Led partitions with no replica to spare")


def _led(hosted: Hosted, log: Log) -> tuple[int, ...]:
    """In the order of `LED`, behind what is stored."""
    state = hosted.state
    replicas, in_sync, needed = len(state.replicas), len(state.isr), state.effective_min_isr
    preferred = int(state.replicas[0] == state.me)
    under_replicated, under_min, at_min = int(in_sync < replicas), int(in_sync < needed), int(in_sync == needed)
    ends = (log.committed, log.log_start, state.me)
    held_back = log.committed - log.last_stable
    return (*ends, preferred, replicas, in_sync, under_replicated, replicas, under_min, at_min, held_back)


def producer_samples(partitions: PartitionDriver, clock: Clock, longest_ms: Callable[[], int]) -> Iterator[Telling]:
    """Producers that are remembered, and transactions that nobody will end any more; `longest_ms` is the longest."""
    known = late = 0
    late_before = clock.now_ms() - longest_ms() - LATE_MS
    for hosted in counted(list(partitions)):
        if hosted is PAUSE:
            yield PAUSE
            continue
        if hosted.log is None:
            continue
        producers = hosted.log.producers
        known += len(producers)
        oldest = producers.oldest_open() if hosted.state.leading else None
        late += oldest is not None and 0 < oldest.last_timestamp < late_before
    yield Sample(_MANAGER + "produceridcount", {}, known, GAUGE, "Producers that the logs here remember")
    of = "Led partitions with a transaction that should have ended"
    yield Sample(_MANAGER + "partitionswithlatetransactionscount", {}, late, GAUGE, of)


def replication_samples(partitions: PartitionDriver, isr: IsrDriver, watch: FollowerWatch) -> Iterator[Telling]:
    """How well the followers of what this node leads keep up."""
    under_replicated = late_offsets = 0
    look = watch.look()
    for hosted in counted(list(partitions.tables.replicated.values())):
        if hosted is PAUSE:
            yield PAUSE
            continue
        state = hosted.state
        if len(state.isr) < len(state.replicas):
            under_replicated += 1
            look.at(hosted)
        for follower in state.followers.values():
            late_offsets = max(late_offsets, state.end - follower.end if follower.end >= 0 else 0)
    under = _MANAGER + "underreplicatedpartitions"
    yield Sample(under, {}, under_replicated, GAUGE, "Led partitions not all in sync")
    yield Sample(_MANAGER + "isrshrinks_total", {}, isr.shrinks, COUNTER, "In-sync sets that lost a replica")
    yield Sample(_MANAGER + "isrexpands_total", {}, isr.expands, COUNTER, "In-sync sets that a replica joined")
    yield Sample(_MANAGER + "failedisrupdates_total", {}, isr.failures, COUNTER, "Changes of in-sync sets not made")
    lag = "penstock_replica_lag_offsets_max"
    yield Sample(lag, {}, late_offsets, GAUGE, "How far the latest follower of a led partition is behind")
    still = "penstock_followers_still"
    yield Sample(still, {}, look.still(), GAUGE, "Followers on live brokers that are behind and do not move")


def following_samples(followers: FollowerDriver, fetches: FetchDriver) -> Iterator[Telling]:
    """What goes from leaders to followers, seen from both sides."""
    lag = held = 0
    for following in counted(followers.following()):
        if following is PAUSE:
            yield PAUSE
            continue
        lag = max(lag, followers.lag_of(following))
        held += bool(following.held)
    coming, going = _TOPICS + "replicationbytesin_total", _TOPICS + "replicationbytesout_total"
    yield Sample(coming, {}, followers.bytes_in, COUNTER, "Bytes of batches copied from leaders")
    yield Sample(going, {}, fetches.bytes_to_followers, COUNTER, "Bytes of batches given to followers")
    furthest = "kafka_server_replicafetchermanager_maxlag"
    yield Sample(furthest, {"clientId": "Replica"}, lag, GAUGE, "Records that the latest replica here lacks")
    yield Sample("penstock_replicas_held", {}, held, GAUGE, "Replicas here that are not fetched for now")


def traffic_samples(partitions: PartitionDriver, produces: ProduceDriver, fetches: FetchDriver) -> Iterator[Telling]:
    """What came in and went out, by topic and, without a topic, in all; and who waits."""
    topics, total = list(partitions.traffic), partitions.traffic.past()
    total.refused_in += produces.refused_elsewhere
    total.refused_out += fetches.refused_elsewhere
    for number, traffic in enumerate(topics):
        total.add(traffic)
        if number < SERIES_MAX:
            yield Row({"topic": traffic.topic}, BY_TOPIC, _counts(traffic))
        elif not number % LOOKS_A_PAUSE:
            yield PAUSE
    yield left_out("topics", max(0, len(topics) - SERIES_MAX))
    yield Row({}, BY_TOPIC, _counts(total))
    sessions = "kafka_server_fetchsessioncache_numincrementalfetchsessions"
    yield Sample(sessions, {}, fetches.session_count, GAUGE, "Fetch sessions")
    waiting = "kafka_server_delayedoperationpurgatory_purgatorysize"
    yield Sample(waiting, {"delayedoperation": "Fetch"}, fetches.waiting, GAUGE, "Requests that wait")


def _counts(traffic: TopicTraffic) -> tuple[int, ...]:
    """In the order of `BY_TOPIC`."""
    came = (traffic.batches_in, traffic.records_in, traffic.bytes_in, traffic.refused_in)
    return (*came, traffic.fetches, traffic.bytes_out, traffic.refused_out)


def directory_samples(store: LogStore) -> Iterator[Sample]:
    """How much room is left where the logs are. An offline directory, or one that does not tell, has no size."""
    for directory in store.directories:
        labels = {"directory": directory.path}
        name = "penstock_log_directory_online"
        yield Sample(name, labels, int(directory.online), GAUGE, "1 while the log directory serves")
        total_bytes, usable_bytes = directory.room()
        if total_bytes > 0:
            prefix = "penstock_log_directory_"
            yield Sample(prefix + "total_bytes", labels, total_bytes, GAUGE, "Size of the volume of a log directory")
            yield Sample(prefix + "free_bytes", labels, usable_bytes, GAUGE, "Bytes left on the volume")


def upkeep_samples(flushes: FlushDriver, upkeep: UpkeepDriver, compaction: CompactionDriver) -> Iterator[Sample]:
    """Syncs, deletions and compaction."""
    yield Sample("penstock_flush_rounds_total", {}, flushes.rounds, COUNTER, "Group commits")
    yield Sample("penstock_flush_syncs_total", {}, flushes.syncs, COUNTER, "Files synced")
    yield Sample("penstock_segments_deleted_total", {}, upkeep.segments_deleted, COUNTER, "Segments retention deleted")
    yield Sample("penstock_compactions_total", {}, compaction.runs, COUNTER, "Logs compacted")
    read, kept = compaction.bytes_before, compaction.bytes_after
    yield Sample("penstock_compaction_read_bytes_total", {}, read, COUNTER, "Bytes compaction looked at")
    yield Sample("penstock_compaction_kept_bytes_total", {}, kept, COUNTER, "Bytes compaction kept")
