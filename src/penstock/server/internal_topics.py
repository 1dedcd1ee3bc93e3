"""The topics that nodes make for themselves, as they are created: their numbers come from settings of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.model.ids import AUDIT_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.protocol.messages.create_topics import CreateTopicsRequest

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings

Topic = CreateTopicsRequest.CreatableTopic

SEGMENT_BYTES_MIN: Final = 1_048_576
"""What the segments of any topic may have at least."""
AUDIT_BATCH_BYTES_MAX: Final = 1 << 20
"""A batch of audit records has about 256 KiB, and one record more."""


def internal_topic(settings: BrokerSettings, name: str, brokers: int) -> Topic | None:
    """What to ask the controller for in a cluster of so many brokers; None when `name` is a topic like any other."""
    if name == OFFSETS_TOPIC:
        return plain_topic(
            name,
            settings.number("offsets.topic.num.partitions"),
            settings.number("offsets.topic.replication.factor"),
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": _segment_bytes(settings, "offsets.topic.segment.bytes"),
            },
        )
    if name == TRANSACTIONS_TOPIC:
        return plain_topic(
            name,
            settings.number("transaction.state.log.num.partitions"),
            settings.number("transaction.state.log.replication.factor"),
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": settings["transaction.state.log.min.isr"],
                "segment.bytes": _segment_bytes(settings, "transaction.state.log.segment.bytes"),
                "unclean.leader.election.enable": "false",
            },
        )
    if name == AUDIT_TOPIC:
        return plain_topic(
            name,
            settings.number("penstock.audit.topic.num.partitions"),
            # Nobody has to set it for one node or two: a topic that cannot be made keeps no event.
            min(settings.number("penstock.audit.topic.replication.factor"), max(brokers, 1)),
            {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "max.message.bytes": AUDIT_BATCH_BYTES_MAX,
                # What the cluster asks of other topics may be more than this one has.
                "min.insync.replicas": 1,
                "retention.ms": settings["penstock.audit.topic.retention.ms"],
            },
        )
    return None


def _segment_bytes(settings: BrokerSettings, name: str) -> int:
    """As the setting says, but never so small that no controller would make the topic: groups could not work at all."""
    return max(settings.number(name), SEGMENT_BYTES_MIN)


def plain_topic(name: str, partitions: int = -1, replicas: int = -1, configs: dict[str, object] | None = None) -> Topic:
    """A topic to create; -1 stands for the broker's default."""
    return Topic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key, value=str(value))
            for key, value in (configs or {}).items()
        ],
    )
