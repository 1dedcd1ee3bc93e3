"""What a node knows of the cluster at scrape: the quorum, the image it acts on, and what the controller watches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.server.metrics import GAUGE, Sample

if TYPE_CHECKING:
    from penstock.metadata.image import ClusterImage
    from penstock.server.drivers.metadata_driver import MetadataDriver
    from penstock.server.drivers.quorum_driver import QuorumDriver


def quorum_samples(quorum: QuorumDriver, metadata: MetadataDriver) -> Iterator[Sample]:
    """Kafka's raft metrics, and how far the published image is."""
    raft = "kafka_server_raftmetrics_"
    high_watermark = quorum.high_watermark
    yield Sample(raft + "current_leader", {}, quorum.leader, GAUGE, "Who leads the metadata quorum; -1 for nobody")
    yield Sample(raft + "current_epoch", {}, quorum.epoch, GAUGE, "The epoch of the metadata quorum")
    yield Sample(raft + "log_end_offset", {}, quorum.end, GAUGE, "The end of this node's metadata log")
    known = -1 if high_watermark is None else high_watermark
    yield Sample(raft + "high_watermark", {}, known, GAUGE, "How far metadata is committed; -1 when not known yet")
    applied = "kafka_server_brokermetadatametrics_last_applied_record_offset"
    yield Sample(applied, {}, metadata.image.offset, GAUGE, "The last metadata record that this node acts on")


def controller_samples(quorum: QuorumDriver, metadata: MetadataDriver) -> Iterator[Sample]:
    """Kafka's controller metrics. Only the active controller counts, so that the sum over all nodes is right."""
    controller = "kafka_controller_kafkacontroller_"
    yield Sample(controller + "activecontrollercount", {}, int(quorum.leading), GAUGE, "1 on the active controller")
    image = metadata.image if quorum.leading else None
    fenced = _brokers(image, fenced=True)
    active = _brokers(image, fenced=False)
    yield Sample(controller + "activebrokercount", {}, active, GAUGE, "Brokers that serve")
    yield Sample(controller + "fencedbrokercount", {}, fenced, GAUGE, "Brokers that are registered and do not serve")
    topics = list(image.topics.values()) if image is not None else []
    partitions = sum(len(topic.partitions) for topic in topics)
    yield Sample(controller + "globaltopiccount", {}, len(topics), GAUGE, "Topics of the cluster")
    yield Sample(controller + "globalpartitioncount", {}, partitions, GAUGE, "Partitions of the cluster")
    offline = misled = 0
    for topic in topics:
        for partition in topic.partitions:
            offline += partition.leader < 0
            misled += partition.leader != partition.replicas[0]
    yield Sample(controller + "offlinepartitionscount", {}, offline, GAUGE, "Partitions that nobody leads")
    yield Sample(
        controller + "preferredreplicaimbalancecount",
        {},
        misled,
        GAUGE,
        "Partitions led by another than their first replica",
    )


def _brokers(image: ClusterImage | None, *, fenced: bool) -> int:
    return 0 if image is None else sum(1 for each in image.brokers.values() if each.fenced == fenced)
