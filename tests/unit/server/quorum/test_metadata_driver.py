"""What is published, what is taken back, and who is refused when the leadership is lost."""

from __future__ import annotations

import asyncio

import pytest

from penstock.metadata.image import ClusterImage
from penstock.model.errors import NOT_CONTROLLER, Refused
from penstock.model.ids import Epoch, Millis, NodeId, Offset, Uuid
from penstock.protocol.disk.metadata_topics import TopicRecord
from penstock.server.quorum.metadata_driver import LogBatch, MetadataDriver

LOST = Refused(NOT_CONTROLLER, "another leads")


def batch(base: int, *names: str, epoch: int = 1) -> LogBatch:
    records = [TopicRecord(name=name, topic_id=Uuid(name.encode().ljust(16, b"."))) for name in names]
    return LogBatch(Offset(base), Offset(base + len(records)), Epoch(epoch), Millis(0), 100, records)


def topics(driver: MetadataDriver) -> list[str]:
    return sorted(topic.name for topic in driver.image.topics.values())


def test_what_is_cut_from_the_log_is_never_published() -> None:
    driver = MetadataDriver(NodeId(1), "cluster")
    driver.learned(batch(0, "a"))
    driver.learned(batch(1, "b", "c"))
    driver.learned(batch(3, "d"))
    driver.unlearn(Offset(1))
    assert [each.base for each in driver.uncommitted] == [0]
    driver.learned(batch(1, "e", epoch=2))
    driver.commit_to(Offset(2))
    assert topics(driver) == ["a", "e"]


def test_a_snapshot_in_place_of_the_log_publishes_the_difference() -> None:
    driver = MetadataDriver(NodeId(1), "cluster")
    driver.learned(batch(0, "a", "b"))
    driver.commit_to(Offset(2))
    deltas: list[object] = []
    driver.on_publish(lambda _image, delta: deltas.append(sorted(delta.created)))
    deltas.clear()
    driver.learned(batch(2, "never"))
    image = ClusterImage()
    batch(0, "a", "b", "c").apply_to(image)
    image.skip_to(Offset(9), Epoch(3))
    driver.unlearn(Offset(0))
    driver.replace(image)
    assert topics(driver) == ["a", "b", "c"]
    assert driver.published_end == 10
    assert deltas == [[Uuid(b"c".ljust(16, b"."))]]


def test_who_waits_as_the_controller_is_refused_and_who_waits_for_the_cluster_goes_on() -> None:
    async def main() -> None:
        driver = MetadataDriver(NodeId(1), "cluster")
        broker = asyncio.ensure_future(driver.published(Offset(1)))
        controller = asyncio.ensure_future(driver.published(Offset(1), as_controller=True))
        await asyncio.sleep(0)
        driver.resigned(LOST)
        with pytest.raises(Refused):
            await controller
        assert not broker.done()
        driver.learned(batch(0, "a", epoch=2))
        driver.commit_to(Offset(1))
        await broker

    asyncio.run(main())


def test_nobody_waits_for_a_log_that_has_failed() -> None:
    async def main() -> None:
        driver = MetadataDriver(NodeId(1), "cluster")
        waiting = asyncio.ensure_future(driver.published(Offset(1)))
        await asyncio.sleep(0)
        driver.abandon(LOST)
        with pytest.raises(Refused):
            await waiting

    asyncio.run(main())
