"""Which positions count when an agent with `exactly_once` starts. Pure.

A note among the local positions says whether they follow the topic. It is there before the first transaction, and is
`proven` after it.

| note | topic has our stamp | it has not |
|---|---|---|
| none | the topic | what is local: the first start with `exactly_once` |
| follows, not proven | the topic | what is local: killed before its first commit |
| follows, proven | the topic | an error: the topic is not what it was |
| left: at-least-once since | what is local | what is local |
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from penstock.agent.checkpoints import Row

INPUT: Final = "exactly once"
"""No input can have this name."""
_KEY: Final = "note"


class Begins(Enum):
    """Where positions are taken from."""

    TOPIC = auto()
    LOCAL = auto()
    NOWHERE = auto()


@dataclass(frozen=True, slots=True)
class Note:
    """What local positions say of themselves."""

    follows: bool
    proven: bool

    def row(self) -> Row:
        return Row(_KEY, facts={"follows": self.follows, "proven": self.proven})


def note_in(rows: list[Row]) -> Note | None:
    for row in rows:
        if row.key == _KEY:
            return Note(bool(row.facts.get("follows")), bool(row.facts.get("proven")))
    return None


def begins(note: Note | None, *, stamped: bool) -> Begins:
    """From where."""
    if note is not None and not note.follows:
        return Begins.LOCAL
    if stamped:
        return Begins.TOPIC
    return Begins.NOWHERE if note is not None and note.proven else Begins.LOCAL
