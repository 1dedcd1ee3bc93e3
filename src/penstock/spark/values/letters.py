"""A dead letter: a record that could not be decoded, as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

ERROR_MOST: Final = 500
"""Characters of an error that are kept: what a user reads, and little beside the largest record a topic takes."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record as it was, and why it is here."""

    topic: str
    partition: int
    offset: int
    timestamp: datetime | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    error: str


class Reader(NamedTuple):
    """The query and the batch on whose behalf letters are written; "" and -1 outside of a stream."""

    query: str
    batch_id: int
