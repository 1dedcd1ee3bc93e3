"""The broker's image gets what is published, in order; what does not fit under way comes as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from penstock.metadata.image import ClusterImage
from penstock.model.ids import Epoch, Millis, NodeId, Offset, Uuid
from penstock.protocol.disk.metadata_topics import RemoveTopicRecord, TopicRecord
from penstock.server.loops.crossing import Sides, two_loops
from penstock.server.quorum import metadata_feed
from penstock.server.quorum.metadata_driver import LogBatch, MetadataDriver, MetadataMirror
from penstock.server.quorum.metadata_feed import MetadataFeed


class Post:
    """Keeps what is handed over until somebody delivers it."""

    def __init__(self) -> None:
        self.held: list[tuple[Callable[..., object], tuple[Any, ...]]] = []

    def __call__(self, callback: Callable[..., object], *args: Any) -> None:
        self.held.append((callback, args))

    def deliver(self) -> None:
        held, self.held = self.held, []
        for callback, args in held:
            callback(*args)


def topic_id(name: str) -> Uuid:
    return Uuid(name.encode().ljust(16, b"."))


class Both:
    """The two images of a node, and what is under way between them."""

    def __init__(self) -> None:
        self.to_control, self.to_data = Post(), Post()
        sides: Sides = two_loops(to_control=self.to_control, to_data=self.to_data)
        self.published = MetadataDriver(NodeId(1), "cluster")
        self.mirror = MetadataMirror(NodeId(1), "cluster")
        self.feed = self.published.feed = MetadataFeed(sides, self.mirror, lambda: self.published.image)
        self.told: list[tuple[set[str], set[str]]] = []
        self.mirror.on_publish(lambda _image, delta: self.told.append(_names(delta)))

    def commit(self, *records: Any) -> None:
        base = self.published.published_end
        end = Offset(base + len(records))
        self.published.learned(LogBatch(base, end, Epoch(1), Millis(0), 10, records))
        self.published.commit_to(end)

    def deliver(self) -> None:
        while self.to_data.held or self.to_control.held:
            self.to_data.deliver()
            self.to_control.deliver()


def _names(delta: Any) -> tuple[set[str], set[str]]:
    return set(delta.created.values()), {topic.name for topic in delta.deleted.values()}


def made(name: str) -> TopicRecord:
    return TopicRecord(name=name, topic_id=topic_id(name))


def test_publications_arrive_in_order_and_their_offset_comes_back() -> None:
    both = Both()
    both.commit(made("a"))
    both.commit(made("b"), RemoveTopicRecord(topic_id=topic_id("a")))
    assert both.mirror.image.offset == -1, "the broker acts on nothing before it has arrived"
    assert both.feed.taken == -1
    both.deliver()
    assert both.told == [({"a"}, set()), ({"b"}, {"a"})]
    assert both.mirror.image == both.published.image
    assert both.mirror.image.topics is not both.published.image.topics
    assert both.feed.taken == both.mirror.image.offset == 2


def test_a_broker_that_is_held_for_long_gets_the_whole_image_once(monkeypatch: Any) -> None:
    monkeypatch.setattr(metadata_feed, "UNDER_WAY_MAX", 4)
    both = Both()
    for number in range(50):
        both.commit(made(f"t{number}"))
    assert len(both.to_data.held) == 2, "what is under way is bounded"
    both.deliver()
    assert both.mirror.image == both.published.image
    assert both.feed.taken == both.published.image.offset
    assert len(both.told) == 3


def test_a_snapshot_replaces_the_image_of_the_broker_too() -> None:
    both = Both()
    both.commit(made("a"))
    image = ClusterImage()
    image.apply(made("b"), Offset(99), Epoch(3))
    both.published.replace(image)
    both.commit(made("c"))
    both.deliver()
    assert both.told == [({"a"}, set()), ({"b"}, {"a"}), ({"c"}, set())]
    assert both.mirror.image == both.published.image
    assert both.feed.taken == 100


def test_level_waits_until_the_broker_shows_what_is_published() -> None:
    async def main() -> None:
        both = Both()
        both.commit(made("a"))
        waiting = asyncio.ensure_future(both.feed.level())
        await asyncio.sleep(0)
        assert not waiting.done()
        both.deliver()
        await waiting
        await both.feed.level()

    asyncio.run(main())
