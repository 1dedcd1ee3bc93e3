"""A writer of dead letters for a process of its own, with few imports."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from penstock.spark.values.dead_letters import DeadLetter, Reader
from penstock.spark.values.letter_table import LetterTable

WHEN = datetime(2026, 3, 4, 5, 6, 7, 890_000, tzinfo=UTC)
READER = Reader("orders to lake", 7)


def letter(offset: int, partition: int = 0, when: datetime = WHEN) -> DeadLetter:
    return DeadLetter("orders", partition, offset, when, b"k", b"\xff%d" % offset, [("h", b"1"), ("n", None)], "broken")


def write_all(path: str, ready: Any, partition: int, end: int) -> None:
    """Letters 0 to `end`, in batches that overlap; begins when everybody is ready."""
    table = LetterTable(path)
    ready.wait(60)
    for first in range(0, end, 4):
        table.append([letter(offset, partition) for offset in range(first, min(first + 6, end))], READER, WHEN)
