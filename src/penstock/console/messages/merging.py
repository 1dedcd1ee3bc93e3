"""Many partitions as one page: by time, and within a partition by offset, which comes first. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from typing import Protocol, TypeVar


class Timed(Protocol):
    """What a page is made of."""

    @property
    def partition(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def offset(self) -> int: ...


R = TypeVar("R", bound=Timed)


def first_of(found: Mapping[int, Sequence[R]], limit: int) -> list[R]:
    """The earliest: of the partitions' next records always that with the smallest time."""
    heads = [(records[0].timestamp, partition, 0) for partition, records in found.items() if records]
    heapify(heads)
    page: list[R] = []
    while heads and len(page) < limit:
        _, partition, at = heads[0]
        records = found[partition]
        page.append(records[at])
        if at + 1 < len(records):
            heapreplace(heads, (records[at + 1].timestamp, partition, at + 1))
        else:
            heappop(heads)
    return page


def last_of(found: Mapping[int, Sequence[R]], limit: int) -> list[R]:
    """The latest, in the order of `first_of`: the same walk from the other end."""
    heads = [(-records[-1].timestamp, -partition, len(records) - 1) for partition, records in found.items() if records]
    heapify(heads)
    page: list[R] = []
    while heads and len(page) < limit:
        _, minus, at = heads[0]
        records = found[-minus]
        page.append(records[at])
        if at:
            heapreplace(heads, (-records[at - 1].timestamp, minus, at - 1))
        else:
            heappop(heads)
    page.reverse()
    return page
