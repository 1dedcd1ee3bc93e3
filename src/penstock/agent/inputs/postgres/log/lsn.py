"""Places in the log of a Postgres: 64 bits, written as two halves in hexadecimal. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


def lsn_of(text: str) -> int:
    """`16/B374D848` as a number."""
    found = _LSN.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no place in the log of a Postgres, which is written as 16/B374D848")
    return int(found[1], 16) << 32 | int(found[2], 16)


def lsn_text(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


@dataclass(frozen=True, slots=True, order=True)
class LogPosition:
    """How far the log was read.

    All transactions that committed before `commit` are in, and of the one that commits there the first `changes`.
    """

    commit: int = 0
    changes: int = 0
    restart: int = 0
    """Whole transactions end here: what comes before is never asked for again."""

    def has(self, commit: int, number: int) -> bool:
        """Whether a change, the `number`th of its transaction from 1 on, is in."""
        return commit < self.commit or (commit == self.commit and number <= self.changes)
