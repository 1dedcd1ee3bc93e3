"""How a transaction ended whose end nobody told: the log is the witness. Pure.

| the topic's last stamp | it says |
|---|---|
| that of the transaction in doubt | it was committed |
| that of the last one before it | it was aborted: all of it is sent again |
| another one | somebody with this name and machine has taken over: this agent is over |
| none, though there was one | the topic is not the one that it was |
"""

from __future__ import annotations

from enum import Enum, auto

from penstock.agent.exactly.rows import Stamp


class Outcome(Enum):
    """What became of the transaction in doubt."""

    COMMITTED = auto()
    ABORTED = auto()
    FENCED = auto()
    VANISHED = auto()


def judge(found: Stamp | None, last: Stamp | None, in_doubt: Stamp | None) -> Outcome:
    """`last` is the stamp that is known to be committed, `in_doubt` that of the transaction whose end is not known."""
    if found is not None and found == in_doubt:
        return Outcome.COMMITTED
    if found == last:
        return Outcome.ABORTED
    return Outcome.VANISHED if found is None else Outcome.FENCED
