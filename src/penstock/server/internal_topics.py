"""The topics that coordinators live in, as they are created: their numbers come from settings of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.model.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.protocol.messages.create_topics import CreateTopicsRequest

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings

Topic = CreateTopicsRequest.CreatableTopic

SEGMENT_BYTES_MIN: Final = 1_048_576
"""What the segments of any topic may have at least."""


def internal_topic(settings: BrokerSettings, name: str) -> Topic | None:
    """What to ask the controller for; None when `name` is a topic like any other."""
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
