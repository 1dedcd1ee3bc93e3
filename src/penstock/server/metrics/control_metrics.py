"""What a node knows of the cluster at scrape: the quorum, the image it acts on, and what the controller watches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from penstock.server.metrics.node_metrics import left_out
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
from penstock.server.metrics.recent_rate import RecentRate
from penstock.server.quorum import fetcher as quorum_fetcher
from penstock.server.quorum import transport as quorum_transport
from penstock.transport.prometheus import COUNTER, GAUGE

if TYPE_CHECKING:
    from penstock.metadata.image import ClusterImage
    from penstock.model.ports import Clock
    from penstock.server.controller.driver import ControllerDriver
    from penstock.server.peers import NetPeers
    from penstock.server.quorum.driver import QuorumDriver
    from penstock.server.quorum.metadata_driver import MetadataDriver

_RAFT: Final = "kafka_server_raftmetrics_"
_CHANNEL: Final = "kafka_server_raftchannelmetrics_"
_CONTROLLER: Final = "kafka_controller_kafkacontroller_"
_TOPIC: Final = (Told("kafka_topic_partitions", GAUGE, "Partitions of the topic; told by the active controller"),)


class QuorumSamples:
    """Kafka's raft metrics. Some of them are rates, so it remembers what it told before."""

    __slots__ = ("_appended", "_clock", "_commit_ms", "_commits", "_fetched", "_metadata", "_peers", "_quorum")

    def __init__(self, quorum: QuorumDriver, metadata: MetadataDriver, peers: NetPeers, clock: Clock) -> None:
        self._quorum, self._metadata, self._peers, self._clock = quorum, metadata, peers, clock
        now_s = clock.monotonic_ms() / 1_000
        self._appended, self._fetched = RecentRate(now_s), RecentRate(now_s)
        self._commits, self._commit_ms = RecentRate(now_s), RecentRate(now_s)

    def samples(self) -> Iterator[Sample]:
        quorum, state = self._quorum, {"current_state": self._quorum.state_name}
        high_watermark = quorum.high_watermark
        yield Sample(_RAFT + "current_leader", {}, quorum.leader, GAUGE, "Who leads the metadata quorum; -1 for nobody")
        yield Sample(_RAFT + "current_epoch", {}, quorum.epoch, GAUGE, "The epoch of the metadata quorum")
        yield Sample(_RAFT + "current_vote", {}, quorum.voted, GAUGE, "Whom this node voted for in it; -1 for nobody")
        yield Sample(_RAFT + "current_state", state, 1, GAUGE, "What this node is to the quorum")
        yield Sample(_RAFT + "log_end_offset", {}, quorum.end, GAUGE, "The end of this node's metadata log")
        known = -1 if high_watermark is None else high_watermark
        yield Sample(_RAFT + "high_watermark", {}, known, GAUGE, "How far metadata is committed; -1 when not known yet")
        applied = "kafka_server_brokermetadatametrics_last_applied_record_offset"
        yield Sample(applied, {}, self._metadata.image.offset, GAUGE, "The last metadata record that this node acts on")
        yield from self._rates()
        yield from self._channel()

    def _rates(self) -> Iterator[Sample]:
        pace, now_s = self._quorum.pace, self._clock.monotonic_ms() / 1_000
        appended = round(self._appended.per_second(now_s, pace.appended_records), 3)
        fetched = round(self._fetched.per_second(now_s, pace.fetched_records), 3)
        commits = self._commits.per_second(now_s, pace.commits)
        commit_ms = self._commit_ms.per_second(now_s, pace.commit_ms)
        latency_ms = round(commit_ms / commits, 3) if commits else 0.0
        yield Sample(_RAFT + "append_records_rate", {}, appended, GAUGE, "Records appended a second as leader")
        yield Sample(_RAFT + "fetch_records_rate", {}, fetched, GAUGE, "Records fetched a second as follower")
        yield Sample(_RAFT + "commit_latency_avg", {}, latency_ms, GAUGE, "ms from append to commit, lately, as leader")

    def _channel(self) -> Iterator[Sample]:
        links = [self._peers.carried(each.PURPOSE) for each in (quorum_transport, quorum_fetcher)]
        requests, replies = sum(each.requests for each in links), sum(each.replies for each in links)
        sent, received = sum(each.bytes_out for each in links), sum(each.bytes_in for each in links)
        yield Sample(_CHANNEL + "request_total", {}, requests, COUNTER, "Requests to other nodes of the quorum")
        yield Sample(_CHANNEL + "response_total", {}, replies, COUNTER, "Replies from them")
        yield Sample(_CHANNEL + "outgoing_byte_total", {}, sent, COUNTER, "Bytes to them")
        yield Sample(_CHANNEL + "incoming_byte_total", {}, received, COUNTER, "Bytes from them")


def controller_samples(
    quorum: QuorumDriver, metadata: MetadataDriver, controller: ControllerDriver
) -> Iterator[Telling]:
    """Kafka's controller metrics. Only the active controller counts, so that the sum over all nodes is right."""
    active = _CONTROLLER + "activecontrollercount"
    yield Sample(active, {}, int(quorum.leading), GAUGE, "1 on the active controller")
    unclean = "kafka_controller_controllerstats_uncleanleaderelections_total"
    yield Sample(unclean, {}, controller.unclean_elections, COUNTER, "Leaders elected that may lack committed records")
    image = metadata.image if quorum.leading else None
    fenced, serving = _brokers(image, fenced=True), _brokers(image, fenced=False)
    yield Sample(_CONTROLLER + "activebrokercount", {}, serving, GAUGE, "Brokers that serve")
    yield Sample(_CONTROLLER + "fencedbrokercount", {}, fenced, GAUGE, "Brokers that are registered and do not serve")
    if image is not None:
        yield Sample("kafka_brokers", {}, serving, GAUGE, "Brokers that serve; told by the active controller")
    yield from _topic_samples(image)


def _topic_samples(image: ClusterImage | None) -> Iterator[Telling]:
    topics = list(image.topics.values()) if image is not None else []
    partitions = offline = misled = 0
    for number, topic in enumerate(topics):
        if number < SERIES_MAX:
            yield Row({"topic": topic.name}, _TOPIC, (len(topic.partitions),))
        elif not number % LOOKS_A_PAUSE:
            yield PAUSE
        for partition in counted(list(topic.partitions)):
            if partition is PAUSE:
                yield PAUSE
                continue
            partitions += 1
            offline += partition.leader < 0
            misled += partition.leader != partition.replicas[0]
    if image is not None:
        yield left_out("topics of the cluster", max(0, len(topics) - SERIES_MAX))
    yield Sample(_CONTROLLER + "globaltopiccount", {}, len(topics), GAUGE, "Topics of the cluster")
    yield Sample(_CONTROLLER + "globalpartitioncount", {}, partitions, GAUGE, "Partitions of the cluster")
    yield Sample(_CONTROLLER + "offlinepartitionscount", {}, offline, GAUGE, "Partitions that nobody leads")
    imbalance = _CONTROLLER + "preferredreplicaimbalancecount"
    yield Sample(imbalance, {}, misled, GAUGE, "Partitions led by another than their first replica")


def broker_info(node_id: int, address: str) -> Iterator[Sample]:
    """Who this broker is, as kafka_exporter tells of each."""
    yield Sample("kafka_broker_info", {"id": str(node_id), "address": address}, 1, GAUGE, "A broker, and its address")


def _brokers(image: ClusterImage | None, *, fenced: bool) -> int:
    return 0 if image is None else sum(1 for each in image.brokers.values() if each.fenced == fenced)
