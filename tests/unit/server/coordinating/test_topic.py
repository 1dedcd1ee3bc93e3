"""The offsets topic is made for the first who needs it, and waited for until this node has heard of it."""

from __future__ import annotations

import asyncio
from random import Random
from types import SimpleNamespace
from typing import Any

from penstock.metadata.difference import delta_between
from penstock.metadata.image import ClusterImage
from penstock.model.config import BrokerSettings
from penstock.model.errors import NOT_CONTROLLER, Refused
from penstock.model.ids import OFFSETS_TOPIC, Epoch, NodeId, Offset, Uuid
from penstock.protocol.disk.metadata_topics import PartitionRecord, TopicRecord
from penstock.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from penstock.server.coordinating.groups import GroupKind
from penstock.server.coordinating.runtime import Runtime
from penstock.server.coordinating.topic import TopicMaker
from penstock.server.live_settings import LiveSettings
from tests.unit.server.served import PROPERTIES
from tests.walks.control_plane import ManualClock

SETTINGS = LiveSettings(BrokerSettings.load(PROPERTIES))


def driver(submit: Any) -> Runtime[Any]:
    partitions: Any = SimpleNamespace()
    maker = TopicMaker(SETTINGS, submit, GroupKind.name, brokers=lambda: 3)
    kind = GroupKind(SETTINGS, Random(1))
    return Runtime(kind, NodeId(1), partitions, ManualClock(), make_topic=maker.make)


def offsets_topic() -> ClusterImage:
    """Led elsewhere."""
    image, topic_id = ClusterImage(), Uuid(b"t" * 16)
    image.apply(TopicRecord(name=OFFSETS_TOPIC, topic_id=topic_id), Offset(0), Epoch(0))
    image.apply(
        PartitionRecord(partition_id=0, topic_id=topic_id, replicas=[2], isr=[2], leader=2), Offset(1), Epoch(0)
    )
    return image


def test_whoever_needs_the_topic_waits_until_it_shows_here() -> None:
    async def steps() -> None:
        asked: list[CreateTopicsRequest] = []

        async def submit(request: CreateTopicsRequest, _version: int) -> CreateTopicsResponse:
            asked.append(request)
            await asyncio.sleep(0)
            return CreateTopicsResponse(topics=[CreateTopicsResponse.CreatableTopicResult(name=OFFSETS_TOPIC)])

        groups = driver(submit)
        needed = [asyncio.ensure_future(groups.topic_made()) for _ in range(3)]
        for _ in range(10):
            await asyncio.sleep(0)
        assert not any(task.done() for task in needed)
        image = offsets_topic()
        groups.follow(image, delta_between(ClusterImage(), image))
        await asyncio.gather(*needed)
        assert len(asked) == 1

    asyncio.run(steps())


def test_a_topic_that_cannot_be_made_is_not_waited_for() -> None:
    async def steps() -> None:
        async def submit(_request: CreateTopicsRequest, _version: int) -> CreateTopicsResponse:
            raise Refused(NOT_CONTROLLER)

        needed = asyncio.ensure_future(driver(submit).topic_made())
        for _ in range(10):
            await asyncio.sleep(0)
        assert needed.done()

    asyncio.run(steps())
