"""Settings of topics and of the cluster change while it works."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from penstock.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from penstock.testing.sim.administrator import Chore
from penstock.testing.sim.topics import AGAIN, BRIEF, KEYED, LOOSE, ORDERS

if TYPE_CHECKING:
    from penstock.testing.sim.administrator import Administrator

TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
CONFIGS: dict[str, tuple[tuple[str, tuple[str | None, ...]], ...]] = {
    ORDERS: (
        ("segment.bytes", ("1048576",)), ("max.message.bytes", ("500000",)), ("flush.ms", ("100",)),
        ("internal.segment.bytes", ("1000", "3000", None)), ("segment.ms", ("300", "2000", None)),
        ("compression.type", ("producer", "snappy", "gzip", "uncompressed")), ("flush.messages", ("1", "5", None)),
    ),
    BRIEF: (
        ("retention.ms", ("500", "3000", None)), ("retention.bytes", ("500", "5000", None)),
        ("segment.ms", ("200", "1000")), ("file.delete.delay.ms", ("0", "1000")),
    ),
    KEYED: (
        ("min.cleanable.dirty.ratio", ("0.01", "0.3")), ("delete.retention.ms", ("200", "2000")),
        ("internal.segment.bytes", ("1000", "2000", None)),
        ("cleanup.policy", ("compact", "compact,delete")), ("retention.ms", ("4000", None)),
    ),
    AGAIN: (
        ("segment.ms", ("200", "1000")), ("flush.messages", ("1", None)), ("compression.type", ("lz4", None)),
        ("retention.ms", ("700", None)),
    ),
    LOOSE: (("unclean.leader.election.enable", ("true", "false")), ("min.insync.replicas", ("1", None))),
}  # fmt: skip
"""What is changed of which topic; None takes it back."""

BROKERS = (
    ("log.cleaner.backoff.ms", ("100", "1000", None)), ("log.cleaner.threads", ("1", None)),
    ("min.insync.replicas", (None,)), ("log.segment.delete.delay.ms", ("0", "500", None)),
)  # fmt: skip


async def configure(admin: Administrator, random: Random) -> bool:
    """Changes a setting of one topic."""
    topic = random.choice(sorted(CONFIGS))
    name, values = random.choice(CONFIGS[topic])
    if topic == LOOSE:
        admin.truth.forgive(LOOSE)  # whoever allows this has given up what was committed
    return await _altered(admin, TOPIC, topic, name, random.choice(values))


async def configure_brokers(admin: Administrator, random: Random) -> bool:
    """Changes a setting of all brokers."""
    name, values = random.choice(BROKERS)
    return await _altered(admin, BROKER, "", name, random.choice(values))


async def _altered(admin: Administrator, kind: int, resource: str, name: str, value: str | None) -> bool:
    ask = IncrementalAlterConfigsRequest
    config = ask.AlterableConfig(name=name, config_operation=DELETE if value is None else SET, value=value)
    request = ask(resources=[ask.AlterConfigsResource(resource_type=kind, resource_name=resource, configs=[config])])
    words = f"set {name}={value} of {resource or 'all brokers'}"
    return await admin.ask(words, request, lambda reply: reply.responses[0].error_code) == "NONE"


CHORES = (Chore("topics configured", configure), Chore("brokers configured", configure_brokers, 0.3))
