"""Positions that go into a transaction together with the records that they stand behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.agent.checkpoints.row import Row


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Change:
    """Rows of one input that go into a transaction."""

    rows: Sequence[Row]
    forgotten: Sequence[str] = ()
    committed: Callable[[], None] = _nothing
    """Called after the commit."""
    aborted: Callable[[], None] = _nothing
    """Called when it was not committed: they are to be taken again."""
    copied: Callable[[], None] = _nothing
    """Called when the local database has them too; of several that were committed, perhaps for the last one only."""


class Source(Protocol):
    """An input, or its spool, as far as it has positions."""

    @property
    def pending(self) -> bool:
        """Whether `take` would give something."""

    def take(self) -> Change:
        """What has changed, with the portions that are staged."""
