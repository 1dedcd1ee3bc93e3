"""Where to look: which partitions a broker leads, is in sync for, is eligible for. Follows the working image.

A cluster of thousands of partitions has a heartbeat every few milliseconds, and a broker that is fenced is in the ISR
of most of them: neither may look at every partition there is. Tables are dicts, so that they are walked in the order
in which partitions came, and two controllers with the same history decide alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.controller.invariants import check_change
from penstock.metadata.delta import Delta
from penstock.metadata.entities import NO_LEADER, UNSEEN_PARTITION, PartitionImage
from penstock.metadata.image import ClusterImage
from penstock.model.ids import Uuid

Key = tuple[Uuid, int]
"""A partition: the id of its topic and its number."""

_Table = dict[int, dict[Key, None]]


class PartitionIndex:
    """Partitions by the brokers they depend on. It holds what it has last seen of each, to know what changed."""

    __slots__ = ("_elr", "_isr", "_led", "_moved", "_reassigning", "_seen", "holds", "preferred")

    def __init__(self, image: ClusterImage) -> None:
        self._seen: dict[Key, PartitionImage] = {}
        self._led: _Table = {}
        self._isr: _Table = {}
        self._elr: _Table = {}
        self._moved: dict[Key, None] = {}
        self._reassigning: dict[Key, None] = {}
        self.holds: dict[int, int] = {}
        """How many replicas a broker has, those it is about to get included."""
        self.preferred: dict[int, int] = {}
        """How many partitions have a broker as their preferred leader."""
        for topic in image.topics.values():
            for number, partition in enumerate(topic.partitions):
                self._put((topic.id, number), UNSEEN_PARTITION, partition)

    # Looking; nobody may change a partition while walking over an answer

    def leads(self, broker: int) -> bool:
        """Whether the broker leads anything."""
        return bool(self._led.get(broker))

    def leaderless(self) -> Iterator[Key]:
        return iter(self._led.get(NO_LEADER, ()))

    def in_sync(self, broker: int) -> Iterator[Key]:
        """The partitions whose ISR has the broker."""
        return iter(self._isr.get(broker, ()))

    def in_sync_or_eligible(self, broker: int) -> Iterator[Key]:
        """The partitions whose ISR or ELR has the broker; it is never in both."""
        yield from self._isr.get(broker, ())
        yield from self._elr.get(broker, ())

    def with_eligible(self) -> Iterator[Key]:
        """The partitions that have anybody in their ELR."""
        found: dict[Key, None] = {}
        for keys in self._elr.values():
            found.update(keys)
        return iter(found)

    def moved(self) -> Iterator[Key]:
        """The partitions that somebody else than their preferred leader leads, or nobody."""
        return iter(self._moved)

    def reassigning(self) -> Iterator[Key]:
        """The partitions whose replicas are being moved."""
        return iter(self._reassigning)

    # Following

    def follow(self, image: ClusterImage, delta: Delta) -> None:
        """Takes in what a delta of the image names."""
        for topic_id, topic in delta.deleted.items():
            for number in range(len(topic.partitions)):
                self.see((topic_id, number), UNSEEN_PARTITION)
        for topic_id, numbers in delta.partitions.items():
            partitions = image.topics[topic_id].partitions
            for number in sorted(numbers):
                self.see((topic_id, number), partitions[number])

    def see(self, key: Key, now: PartitionImage) -> None:
        """A partition has changed, or was made or deleted."""
        old = self._seen.get(key, UNSEEN_PARTITION)
        if now is old:
            return
        if now is not UNSEEN_PARTITION:
            check_change(None if old is UNSEEN_PARTITION else old, now)
        self._put(key, old, now)

    def _put(self, key: Key, old: PartitionImage, now: PartitionImage) -> None:
        if now is UNSEEN_PARTITION:
            del self._seen[key]
        else:
            self._seen[key] = now
        led_before, led_now = _leaders(old), _leaders(now)
        if led_before != led_now:
            _move(self._led, key, led_before, led_now)
        if old.isr != now.isr:
            _move(self._isr, key, old.isr, now.isr)
        if old.elr != now.elr:
            _move(self._elr, key, old.elr, now.elr)
        if old.replicas != now.replicas:
            _count(self.holds, old.replicas, now.replicas)
            _count(self.preferred, old.replicas[:1], now.replicas[:1])
        _mark(self._moved, key, now is not UNSEEN_PARTITION and now.leader != now.preferred_leader)
        _mark(self._reassigning, key, now.reassigning)


def _leaders(partition: PartitionImage) -> tuple[int, ...]:
    return () if partition is UNSEEN_PARTITION else (partition.leader,)


def _move(table: _Table, key: Key, before: Iterable[int], now: Iterable[int]) -> None:
    for broker in before:
        if broker not in now:
            keys = table[broker]
            del keys[key]
            if not keys:
                del table[broker]
    for broker in now:
        if broker not in before:
            table.setdefault(broker, {})[key] = None


def _count(table: dict[int, int], before: Iterable[int], now: Iterable[int]) -> None:
    for broker in now:
        table[broker] = table.get(broker, 0) + 1
    for broker in before:
        table[broker] -= 1
        if not table[broker]:
            del table[broker]


def _mark(table: dict[Key, None], key: Key, marked: bool) -> None:
    if marked:
        table[key] = None
    else:
        table.pop(key, None)
