"""Records that have no place in a batch yet: their topic is not known, or the buffer has no room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias

from penstock.client.errors import ClientError
from penstock.client.producer.bulk import Bulk
from penstock.client.producer.delivery import BulkDelivery, Delivery, OnDelivery, Report, Wake, fresh

Payload: TypeAlias = bytes | bytearray | memoryview | str
Headers: TypeAlias = Sequence[tuple[str, bytes | None]]

RECORD_OVERHEAD_BYTES = 21
"""What a record needs at most besides its key, value and headers."""


def size_of(key: Payload | None, value: Payload | None, headers: Headers) -> int:
    """An upper bound of a record's bytes; text may need more than a byte a character."""
    size = RECORD_OVERHEAD_BYTES
    for data in (key, value):
        if data is not None:
            size += _bytes_of(data)
    for name, content in headers:
        size += _bytes_of(name) + 10 + (0 if content is None else _bytes_of(content))
    return size


def _bytes_of(data: Any) -> int:
    if data.__class__ is str:
        return len(data.encode("utf-8", "surrogateescape"))
    return data.nbytes if data.__class__ is memoryview else len(data)


class Parked:
    """One record that waits. It stands in for its batch until there is one."""

    __slots__ = (
        "callback", "deadline_ms", "delivery", "done", "failure", "headers", "key", "partition", "pieces", "size",
        "timestamp", "topic", "value", "waiters",
    )  # fmt: skip

    def __init__(
        self,
        topic: str,
        value: Payload | None,
        key: Payload | None,
        partition: int | None,
        timestamp: int,
        headers: Headers,
        callback: OnDelivery | None,
        deadline_ms: float,
    ) -> None:
        self.topic, self.value, self.key = topic, value, key
        self.partition, self.timestamp, self.headers = partition, timestamp, headers
        self.callback = callback
        self.deadline_ms = deadline_ms
        self.size = size_of(key, value, headers)
        self.delivery: Delivery | None = None
        self.done = False
        self.failure: ClientError | None = None
        self.waiters: list[tuple[int, Wake]] = []
        self.pieces: tuple[()] = ()

    def placed(self, found: Delivery) -> None:
        """The record is in a batch; those who wait now wait for that."""
        assert self.delivery is not None
        self.delivery.move(found)
        for _, wake in self.waiters:
            found.add_waker(wake)
        self.waiters = []

    def fail(self, failure: ClientError) -> None:
        self.done, self.failure = True, failure
        waiters, self.waiters = self.waiters, []
        for _, wake in waiters:
            wake()
        if self.callback is not None:
            self.callback(None, fresh(failure))

    def piece(self, index: int) -> NoReturn:
        raise AssertionError("a parked record has no pieces")

    def report(self, index: int, timestamp: int) -> Report:
        raise AssertionError("a parked record landed nowhere")


class ParkedBulk:
    """Many records that wait together; `bulk` knows how far they have come."""

    __slots__ = ("bulk", "deadline_ms", "delivery", "size", "topic")

    def __init__(self, topic: str, bulk: Bulk, delivery: BulkDelivery, size: int, deadline_ms: float) -> None:
        self.topic, self.bulk, self.delivery = topic, bulk, delivery
        self.size, self.deadline_ms = size, deadline_ms

    def fail(self, failure: ClientError) -> None:
        self.delivery.all_placed(failure)

    @property
    def waiters(self) -> list[Wake]:
        return self.delivery.waiters
