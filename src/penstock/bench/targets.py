"""The addresses that are measured: what a broker says of itself, and the topics that are made there and taken away."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from penstock.bench.settings import Settings
from penstock.client.admin import Admin, ConfigResource, TopicInfo
from penstock.client.errors import ClientError, NotReachable, TimedOutWaiting
from penstock.model.errors import PenstockError

LED_WITHIN_S = 30.0
DELETED_WITHIN_S = 20.0
NEVER_FLUSHED = "9223372036854775807"


@dataclass(frozen=True)
class Target:
    """An address, with keywords for each kind of client that speaks to it."""

    title: str
    bootstrap: str
    producer: Mapping[str, Any] = field(repr=False)
    consumer: Mapping[str, Any] = field(repr=False)
    admin: Mapping[str, Any] = field(repr=False)

    def open_admin(self) -> Admin:
        return Admin(**self.admin)


@dataclass(frozen=True)
class Place:
    """A topic, ready to be used. `leaders` has the address of each partition's leader."""

    topic: str
    partitions: tuple[int, ...]
    leaders: tuple[str, ...]
    replicas: int
    records: int


async def describe(admin: Admin) -> dict[str, str]:
    """What a broker says it is. No answer of the protocol names a product, so this is read from what it serves."""
    cluster = await admin.describe_cluster()
    first = cluster.brokers[0].id
    facts = {"cluster": cluster.cluster_id, "brokers": str(len(cluster.brokers))}
    try:
        configs = (await admin.describe_configs([ConfigResource.broker(first)])).checked()
        names = [name for entries in configs.values() for name in entries]
        ours = any(name.startswith("penstock.") for name in names)
        facts["broker"] = "Penstock" if ours else "Apache Kafka, or something that speaks like it"
        levels = {each.name: each.finalized for each in await admin.features()}
        if level := levels.get("metadata.version"):
            from penstock.metadata.features import metadata_version_text

            facts["metadata.version"] = f"{metadata_version_text(level)} (level {level})"
        served = await admin.api_versions(first)
        facts["Produce"], facts["Fetch"] = (f"up to version {served[name][1]}" for name in ("Produce", "Fetch"))
    except ClientError as failure:
        if isinstance(failure, (NotReachable, TimedOutWaiting)):
            raise
        facts.setdefault("broker", f"does not say ({failure})")
    return facts


async def fsync_words(admin: Admin, topic: str) -> str:
    """What is on the disk before an acknowledgement, as the topic's configs say."""
    try:
        configs = (await admin.describe_configs([ConfigResource.topic(topic)])).checked()
    except ClientError as failure:
        return f"unknown: the broker does not tell the topic's configs ({failure})"
    flush = configs[ConfigResource.topic(topic)].get("flush.messages")
    if flush is None or flush.value in (None, NEVER_FLUSHED):
        return "nothing is fsynced before an acknowledgement (flush.messages is not set)"
    if flush.value == "1":
        return "every batch is fsynced before its acknowledgement (flush.messages=1)"
    return f"an fsync after every {flush.value} records (flush.messages={flush.value})"


@asynccontextmanager
async def place(admin: Admin, settings: Settings, kind: str, say: Callable[[str], None]) -> AsyncIterator[Place]:
    """The topic that was named; else a new one, which is deleted at the end, also after Ctrl-C."""
    if settings.topic is not None:
        yield await look(admin, settings.topic)
        return
    name = f"penstock-bench-{kind}-{secrets.token_hex(4)}"
    try:
        await admin.create_topic(name, settings.partitions, settings.replicas, settings.configs)
        yield await _led(admin, name)
    finally:
        await _delete(admin, name, say)


async def _delete(admin: Admin, name: str, say: Callable[[str], None]) -> None:
    """What stays behind is named; the failure that led here is told by others."""
    from penstock.client.errors import UnknownTopic

    try:
        async with asyncio.timeout(DELETED_WITHIN_S):
            await admin.delete_topic(name)
    except UnknownTopic:
        pass  # it was never made
    except (ClientError, TimeoutError) as failure:
        say(f"the topic {name} could not be deleted: {failure or 'no answer'}; `penstock topic delete {name}` does it")


async def _led(admin: Admin, name: str) -> Place:
    """A new topic is known before all its leaders are at work."""
    deadline = asyncio.get_running_loop().time() + LED_WITHIN_S
    while True:
        try:
            return await look(admin, name)
        except (ClientError, _NotLed):
            if asyncio.get_running_loop().time() > deadline:
                raise
        await asyncio.sleep(0.05)


class _NotLed(PenstockError):
    pass


async def look(admin: Admin, name: str) -> Place:
    """A topic as it is now."""
    info: TopicInfo = await admin.describe_topic(name, configs=False)
    brokers = {broker.id: f"{broker.host}:{broker.port}" for broker in (await admin.describe_cluster()).brokers}
    for partition in info.partitions:
        if partition.leader not in brokers or partition.end < 0:
            raise _NotLed(f"partition {partition.partition} of {name} has no leader")
    return Place(
        name,
        tuple(partition.partition for partition in info.partitions),
        tuple(brokers[partition.leader] for partition in info.partitions),
        info.replication,
        sum(partition.end - partition.start for partition in info.partitions),
    )
