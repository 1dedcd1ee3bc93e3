"""The straight way of one record into the open batch of its partition; the compiled twin is `_sending.pxi`.

A producer's own classes extend these: `Place` is what is given for a record, `OpenBatch`, `OpenLane` and `OpenTopic`
are what a record passes through, `Desk` is where it is handed in and `SendFront` is what users call. Everything that
is not straight is theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from penstock.kernels._pure_builder import RecordsBuilder
from penstock.kernels._pure_columns import partition_of
from penstock.kernels.shapes import HeaderPairs, Payload, unsendable

D = TypeVar("D")
C = TypeVar("C")


class Place:
    """Where a record is: the batch that holds it and its index there. What callers hold on to extends this."""

    __slots__ = ("_home", "_index", "_timestamp")

    def __init__(self, home: Any, index: int, timestamp: int) -> None:
        self._home: Any = home
        self._index = index
        self._timestamp = timestamp


class OpenBatch:
    """A batch that may take records: `builder` until it is sealed, and `callbacks` of (index, timestamp, call)."""

    __slots__ = ("builder", "callbacks")

    builder: RecordsBuilder | None
    callbacks: list[tuple[int, int, Any]]


class OpenLane:
    """A partition; `open` is its batch that takes records, or None."""

    __slots__ = ("open",)

    open: Any


class OpenTopic:
    """The `lanes` of a topic. `sticky` takes records without a key; `choose` is None, or the caller's own way."""

    __slots__ = ("choose", "lanes", "sticky")

    choose: Callable[[Any, Any], Any] | None
    lanes: list[Any]
    sticky: Any


class Desk:
    """Where records are handed in: `topics` by name, and `waiting`, those who stand in line before everybody else.

    The collector does not look into the places that the compiled twin gives, so that holding a million of them costs
    nothing. A batch that is settled must hold nothing that could lead back to one.
    """

    topics: dict[str, Any]
    waiting: Any
    kind: type[Any]
    _now_ns: Callable[[], int]

    def __new__(cls, *_: Any, **__: Any) -> Any:
        self = super().__new__(cls)
        self.topics, self.waiting, self.kind = {}, (), Place
        return self

    def deliver_as(self, kind: type[Place]) -> None:
        """What is given for a record: a kind of `Place`."""
        if not issubclass(kind, Place):
            raise TypeError(f"{kind!r} is no place")
        self.kind = kind

    def stamp_by(self, now_ns: Callable[[], int]) -> None:
        """The clock of records that bring no timestamp: a function that tells nanoseconds since 1970."""
        self._now_ns = now_ns

    def hand_in(
        self,
        topic: str,
        value: Payload | None,
        key: Payload | None,
        partition: int | None,
        timestamp: int | None,
        headers: HeaderPairs,
        callback: Any,
    ) -> Any:
        """A record into the open batch of its partition, and its place there.

        None when the way is not straight: an unknown topic or partition, a partitioner of the caller's own, no open
        batch or a full one, others who wait. Then nothing has happened.
        """
        held = self.topics.get(topic)
        if held is None or self.waiting or held.choose is not None:
            return None
        if partition is not None:
            if not 0 <= partition < len(held.lanes):
                return None
            lane = held.lanes[partition]
        elif key is None:
            lane = held.sticky
        else:
            lane = held.lanes[partition_of(key, len(held.lanes))] if held.lanes else None
        batch = None if lane is None else lane.open
        if batch is None or batch.builder is None:
            return None
        at = self._now_ns() // 1_000_000 if timestamp is None else timestamp
        index = batch.builder.count
        if not batch.builder.append(at, key, value, headers):
            return None
        if callback is not None:
            batch.callbacks.append((index, at, callback))
        return self.kind(batch, index, at)


class SendFront(Generic[D, C]):
    """The `send` of producers, which answers D and calls C. It has a `_desk` while it is open.

    What is not straight goes to `_send_slowly`, which takes the same arguments in a row.
    """

    _desk: Desk | None = None
    _lock: Any = None
    _send_slowly: Callable[..., D]

    def _share(self, lock: Any) -> None:
        """Records come from several threads, one at a time."""
        self._lock = lock

    def send(
        self,
        topic: str,
        value: Payload | None = None,
        *,
        key: Payload | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: HeaderPairs = (),
        on_delivery: C | None = None,
    ) -> D:
        """Puts a record into its batch and answers its delivery, which tells the `Report` when it is asked to.

        Key and value are bytes or text, which is sent as UTF-8. `timestamp` is in milliseconds, now if None. When the
        buffer is full, or the topic not known yet, the record waits its turn for up to `max_block_ms`; `BufferFull`
        when too many wait already. `RecordTooLarge` when no request could carry it. `on_delivery` is called with
        (report, None) or (None, error). A TypeError says which argument cannot be sent.
        """
        desk = self._desk
        try:
            if desk is not None:
                place: D | None
                if self._lock is None:
                    place = desk.hand_in(topic, value, key, partition, timestamp, headers, on_delivery)
                else:
                    with self._lock:
                        place = desk.hand_in(topic, value, key, partition, timestamp, headers, on_delivery)
                if place is not None:
                    return place
            return self._send_slowly(topic, value, key, partition, timestamp, headers, on_delivery)
        except (TypeError, ValueError):
            words = unsendable(topic, value, key, partition, timestamp, headers)
            if not words:
                raise
        raise TypeError(words)
