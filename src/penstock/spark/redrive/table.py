"""Letters of a table, which has each of them once: a letter without a mark was not sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

from penstock.spark.redrive.chunks import Chunk
from penstock.spark.redrive.marks import Marks
from penstock.spark.stores.storage import Storage
from penstock.spark.values.letter_table import LetterTable
from penstock.spark.values.letters import DeadLetter

BATCH_LETTERS: Final = 1_000
_IDENTITY: Final = ("topic", "partition", "offset", "timestamp")


class TableLetters:
    """Those of the table at `location`, in the order of its files, and of their offsets within a batch of them."""

    def __init__(self, location: str, storage: Storage) -> None:
        self._table = LetterTable(location, storage)
        self.place = f"table:{self._table.location}"

    async def total(self, _marks: Marks) -> int:
        return await asyncio.to_thread(self._table.count)

    async def chunks(
        self, marks: Marks, wanted: Callable[[str], bool], most: Callable[[], int]
    ) -> AsyncIterator[Chunk]:
        batches = self._table.batches(BATCH_LETTERS)
        while (batch := await asyncio.to_thread(_next, batches)) is not None:
            waiting = _waiting(batch, marks, wanted)
            seen = batch.num_rows - len(waiting)
            while waiting:
                size = max(1, most())
                part, waiting = waiting[:size], waiting[size:]
                yield Chunk([_letter(batch, at) for at in part], len(part) + seen)
                seen = 0
            if seen:
                yield Chunk((), seen)

    def marks_of(self, marks: Marks, chunk: Chunk) -> list[tuple[bytes, bytes]]:
        return marks.were_sent(chunk.letters)


def _next(batches: Iterator[Any]) -> Any:
    return next(batches, None)


def _waiting(batch: Any, marks: Marks, wanted: Callable[[str], bool]) -> list[int]:
    """Rows of letters to be sent, by partition and offset."""
    found = []
    for at, row in enumerate(batch.select(_IDENTITY).to_pylist()):
        letter = DeadLetter(**row, key=None, value=None, headers=(), error="")
        if wanted(letter.topic) and not marks.has(letter):
            found.append((letter.topic, letter.partition, letter.offset, at))
    return [at for *_, at in sorted(found)]


def _letter(batch: Any, at: int) -> DeadLetter:
    (row,) = batch.slice(at, 1).to_pylist()
    headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
    names = (*_IDENTITY, "key", "value", "error")
    return DeadLetter(**{name: row[name] for name in names}, headers=headers)
