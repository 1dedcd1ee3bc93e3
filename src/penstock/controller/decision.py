"""What a decider answers, and what every decider may look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.controller.index import PartitionIndex
from penstock.controller.names import NameIndex
from penstock.controller.sessions import Sessions
from penstock.controller.topic_configs import TopicConfigs
from penstock.metadata.entities import CONFIG_BROKER, CONFIG_TOPIC, TopicImage
from penstock.metadata.image import ClusterImage
from penstock.metadata.records import Record, VersionedRecord, version_of
from penstock.model.errors import STALE_BROKER_EPOCH, Refused
from penstock.model.ids import NodeId, Offset, Uuid, new_uuid

if TYPE_CHECKING:
    from random import Random

    from penstock.model.config import BrokerSettings


@dataclass(frozen=True, slots=True)
class Decision:
    """Records for the metadata log and the reply to give once they are committed.

    No records: the reply can go at once. `name` is what a transaction that has to hold the records would be called.
    `warning` is for the controller's log: why something was refused whose reply has no room for words.
    """

    records: list[VersionedRecord]
    reply: Any = None
    name: str = ""
    warning: str = ""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """What a controller is told at its start. `broker` are the node's own settings: the defaults of new topics."""

    node_id: NodeId
    cluster_id: str
    broker: BrokerSettings
    num_partitions: int = 1
    default_replication_factor: int = 1
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    delete_topic_enable: bool = True
    session_timeout_ms: int = 9_000

    @classmethod
    def of(cls, broker: BrokerSettings, cluster_id: str) -> ControllerSettings:
        """The settings of a controller in a node with these properties."""
        return cls(
            node_id=broker.node_id,
            cluster_id=cluster_id,
            broker=broker,
            num_partitions=broker.number("num.partitions"),
            default_replication_factor=broker.number("default.replication.factor"),
            min_insync_replicas=broker.number("min.insync.replicas"),
            unclean_leader_election_enable=broker.flag("unclean.leader.election.enable"),
            delete_topic_enable=broker.flag("delete.topic.enable"),
            session_timeout_ms=broker.number("broker.session.timeout.ms"),
        )


class TopicRules(NamedTuple):
    """What elections in a topic must know: how small its ISRs may get, and whether they may lose records."""

    min_isr: int
    unclean: bool


@dataclass(slots=True)
class World:
    """All that deciders look at: the working image and what the controller knows besides it."""

    image: ClusterImage
    random: Random
    settings: ControllerSettings
    sessions: Sessions
    index: PartitionIndex
    topic_configs: TopicConfigs
    names: NameIndex = field(default_factory=NameIndex)
    registered_at: dict[int, Offset] = field(default_factory=dict)

    def versioned(self, record: Record) -> VersionedRecord:
        """The record with the version that the finalized metadata.version asks for."""
        return record, version_of(record.__class__, self.image.metadata_version)

    def min_isr(self, topic: str) -> int:
        """min.insync.replicas of a topic, never more than it has replicas."""
        configured = int(self._topic_config(topic, "min.insync.replicas") or self.settings.min_insync_replicas)
        found = self.image.topic(topic)
        return configured if found is None else min(configured, found.replication_factor)

    def unclean_allowed(self, topic: str) -> bool:
        """unclean.leader.election.enable of a topic."""
        configured = self._topic_config(topic, "unclean.leader.election.enable")
        return self.settings.unclean_leader_election_enable if configured is None else configured.lower() == "true"

    def rules(self, topic: TopicImage) -> TopicRules:
        """The rules of a topic that exists; whoever changes many of its partitions asks once."""
        return TopicRules(self.min_isr(topic.name), self.unclean_allowed(topic.name))

    def _topic_config(self, topic: str, name: str) -> str | None:
        of_topic = self.image.config(CONFIG_TOPIC, topic).get(name)
        return self.image.config(CONFIG_BROKER, "").get(name) if of_topic is None else of_topic

    def check_broker_epoch(self, broker_id: int, epoch: int) -> None:
        """Refuses what another incarnation of the broker, or none that is registered, asks for."""
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            raise Refused(STALE_BROKER_EPOCH, f"broker {broker_id} is not registered; register it first")
        if broker.epoch != epoch:
            raise Refused(
                STALE_BROKER_EPOCH, f"broker {broker_id} is registered with epoch {broker.epoch}, not {epoch}"
            )

    def new_uuid(self) -> Uuid:
        """An id for something new, from the randomness that was given."""
        return new_uuid(self.random)


MayDescribe = Callable[[str], bool]
"""Whether the asker may see the configuration of a topic of this name."""
