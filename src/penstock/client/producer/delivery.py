"""What becomes of a record: a delivery that can be awaited, and reports.

A delivery is three words wide: it knows the batch its record is in and its place there, and asks the batch when
somebody asks it. There is no future until somebody awaits, and giving up waiting leaves the record alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, overload

from penstock.client.errors import ClientError
from penstock.kernels import Place

Wake: TypeAlias = Callable[[], None]

NO_OFFSET = -1


class Report(NamedTuple):
    """Where a record landed. The offset is -1 when nobody was asked to tell it (acks=0)."""

    topic: str
    partition: int
    offset: int
    timestamp: int


OnDelivery: TypeAlias = Callable[[Report | None, ClientError | None], None]
"""Called with (report, None) or (None, why it failed)."""


class Home(Protocol):
    """What a record is in: a batch, or, while it waits for its place in one, its own record of waiting."""

    done: bool
    failure: ClientError | None
    waiters: list[tuple[int, Wake]]

    @property
    def pieces(self) -> Sequence[Home]:
        """What became of a batch that was too large; empty while it is whole."""

    def piece(self, index: int) -> tuple[Home, int]:
        """The piece that holds the record at `index`, and its place there."""

    def report(self, index: int, timestamp: int) -> Report: ...


class BatchHome(Home, Protocol):
    """A batch, as those see it who have many records in it."""

    def wholes(self) -> Sequence[BatchHome]:
        """The batches that this one has become."""

    def failed_runs(self, first: int, count: int) -> list[tuple[int, int, ClientError]]:
        """(first, count, why) of those among `count` records from `first` on that were not delivered."""

    def spans(self, first: int, count: int) -> list[Span]:
        """Where `count` records from `first` on landed, without those that failed."""


class Delivery(Place):
    """The fate of one record. Await it for its `Report`; it raises the `ClientError` that kept the record back."""

    __slots__ = ()

    _home: Home

    def done(self) -> bool:
        """Whether it is known what became of the record."""
        return self._settled().done

    def exception(self) -> ClientError | None:
        """Why the record was not delivered; None while it is under way or when it was."""
        return fresh(self._settled().failure)

    def report(self) -> Report | None:
        """Where the record landed; None while it is under way or when it failed."""
        home = self._settled()
        return home.report(self._index, self._timestamp) if home.done and home.failure is None else None

    def __await__(self) -> Generator[Any, None, Report]:
        while not self._settled().done:
            future = asyncio.get_running_loop().create_future()
            self.add_waker(waker(future))
            yield from future
        return self.outcome()

    def add_waker(self, wake: Wake) -> None:
        """Calls `wake` when it is worth looking again; only while it is not done."""
        self._settled().waiters.append((self._index, wake))

    def outcome(self) -> Report:
        """The report of a record that is done; raises why it failed."""
        home = self._settled()
        if home.failure is not None:
            raise fresh(home.failure)
        return home.report(self._index, self._timestamp)

    def move(self, to: Delivery) -> None:
        """The record, which waited, has found the place of another delivery."""
        self._home, self._index = to.place

    @property
    def place(self) -> tuple[Home, int]:
        """What the record is in, and the index in it."""
        return self._home, self._index

    def _settled(self) -> Home:
        """The batch that the record is in now: batches that were too large come apart."""
        while self._home.pieces:
            self._home, self._index = self._home.piece(self._index)
        return self._home

    def __repr__(self) -> str:
        if not self.done():
            return "<Delivery under way>"
        return f"<Delivery {self.exception() or self.report()}>"


@overload
def fresh(failure: ClientError) -> ClientError: ...
@overload
def fresh(failure: ClientError | None) -> ClientError | None: ...
def fresh(failure: ClientError | None) -> ClientError | None:
    """Another of the same, for one who may raise it.

    A batch keeps its failure for all its records. Raised itself it would gather everybody's traceback, and so hold
    frames that hold deliveries that hold the batch.
    """
    return None if failure is None else copy(failure)


def waker(future: asyncio.Future[None]) -> Wake:
    """Ends a future's waiting, once; whoever waits may have given up before."""

    def wake() -> None:
        if not future.done():
            future.set_result(None)

    return wake


@dataclass(frozen=True, slots=True)
class Span:
    """A run of records that lie one after the other in a partition."""

    partition: int
    base_offset: int
    """-1 when nobody was asked to tell it."""
    count: int

    @property
    def end(self) -> int:
        """The offset after the last of them."""
        return self.base_offset + self.count if self.base_offset >= 0 else NO_OFFSET - 1


@dataclass(frozen=True, slots=True)
class BatchReport:
    """Where the records of a bulk send landed."""

    topic: str
    count: int
    spans: tuple[Span, ...]


class BulkDelivery:
    """The fate of many records. Await it for a `BatchReport`; if some were not delivered it raises why.

    `delivered` tells how many landed, also after a failure, and `failures` which did not.
    """

    __slots__ = ("_count", "_rows", "_runs", "_topic", "failure", "placed", "waiters")

    def __init__(self, topic: str, count: int = 0) -> None:
        """`count` rows are to come."""
        self._topic, self._count = topic, count
        self._runs: list[tuple[BatchHome, int, int]] = []
        self._rows: list[Sequence[int]] = []
        self.placed = False
        self.failure: ClientError | None = None
        self.waiters: list[Wake] = []

    def took(self, batch: BatchHome, first: int, count: int, rows: Sequence[int] = ()) -> None:
        """`count` records from `first` on of a batch are these rows."""
        self._runs.append((batch, first, count))
        self._rows.append(rows)

    def all_placed(self, failure: ClientError | None = None) -> None:
        """No more records come: all are in batches, or the rest was given up."""
        self.placed, self.failure = True, failure
        waiters, self.waiters = self.waiters, []
        for wake in waiters:
            wake()

    def done(self) -> bool:
        """Whether it is known what became of every record."""
        return self.placed and all(batch.done for batch in self._batches())

    @property
    def delivered(self) -> int:
        """How many records landed so far."""
        return sum(span.count for span in self._spans())

    def exception(self) -> ClientError | None:
        """Why the first that was not delivered was not; None while all may still be, or are."""
        failures = (batch.failure for batch in self._batches() if batch.failure is not None)
        return fresh(self.failure or next(failures, None))

    def failures(self) -> list[tuple[Sequence[int], ClientError]]:
        """Rows that were not delivered, numbered as they were given, each run of them with its cause. When done."""
        found: list[tuple[Sequence[int], ClientError]] = []
        for (batch, first, count), rows in zip(self._runs, self._rows, strict=True):
            found += [(rows[at - first : at - first + run], why) for at, run, why in batch.failed_runs(first, count)]
        if self.failure is not None:
            placed = set().union(*self._rows)
            found.append(([row for row in range(self._count) if row not in placed], self.failure))
        return found

    def report(self) -> BatchReport | None:
        """None while records are under way or when some failed."""
        if not self.done() or self.exception() is not None:
            return None
        return BatchReport(self._topic, self.delivered, tuple(self._spans()))

    def add_waker(self, wake: Wake) -> None:
        """Calls `wake` when the next thing has happened that keeps this from being done."""
        if not self.placed:
            self.waiters.append(wake)
            return
        pending = next(batch for batch in self._batches() if not batch.done)
        pending.waiters.append((0, wake))

    def __await__(self) -> Generator[Any, None, BatchReport]:
        while not self.done():
            future = asyncio.get_running_loop().create_future()
            self.add_waker(waker(future))
            yield from future
        return self.outcome()

    def outcome(self) -> BatchReport:
        """The report of what is done; raises why some of it failed."""
        failure = self.exception()
        if failure is not None:
            raise failure
        return BatchReport(self._topic, self.delivered, tuple(self._spans()))

    def _batches(self) -> list[BatchHome]:
        return [whole for batch, _, _ in self._runs for whole in batch.wholes()]

    def _spans(self) -> list[Span]:
        found: list[Span] = []
        for batch, first, count in self._runs:
            for span in batch.spans(first, count):
                before = found[-1] if found else None
                if before is not None and before.partition == span.partition and before.end == span.base_offset:
                    found[-1] = Span(span.partition, before.base_offset, before.count + span.count)
                    continue
                found.append(span)
        return found
