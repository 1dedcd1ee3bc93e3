"""What a run takes from where letters are, a piece at a time: what is sent together with its marks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from penstock.spark.redrive.marks import Marks
from penstock.spark.values.letters import DeadLetter

CHUNK_LETTERS: Final = 500
"""What is in one transaction at most."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Letters to be sent, in order, and how far that brings the reading."""

    letters: Sequence[DeadLetter]
    seen: int
    """Letters, or offsets, that were looked at for it."""
    read: Mapping[int, int] = field(default_factory=dict)
    """Of a topic of letters: by partition, the next offset to look at."""
    origins: frozenset[str] = frozenset()
    """Topics whose letters have been looked for up to there."""
    twins: int = 0
    """Letters that were passed over because they are there twice."""
    others: int = 0
    """Records of a topic of letters that are no letters."""


class Letters(Protocol):
    """Where letters are. `place` names them to the marks, whoever asks."""

    place: str

    async def total(self, marks: Marks) -> int:
        """How much there is to look at: offsets of a topic, letters of a table."""
        ...

    def chunks(self, marks: Marks, wanted: Callable[[str], bool], most: Callable[[], int]) -> AsyncIterator[Chunk]:
        """Letters of the `wanted` topics that have no mark, up to those that were there when it began; at most so many
        at once. Marks may be made between two chunks."""
        ...

    def marks_of(self, marks: Marks, chunk: Chunk) -> list[tuple[bytes, bytes]]:
        """The records that say that a chunk is done with."""
        ...
