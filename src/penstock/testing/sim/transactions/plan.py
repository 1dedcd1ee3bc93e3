"""What a seed decides of transactions; `drawing.py` draws it."""

from __future__ import annotations

from dataclasses import dataclass, field

COPIERS = 2


@dataclass(slots=True)
class TransactionPlan:
    """Of one world."""

    writers: int = 2
    copiers: int = COPIERS
    abort_rate: float = 0.2
    end_rate: float = 0.3
    """How many of the writers are killed, paused or replaced each time that somebody looks."""

    classic_rate: float = 0.5
    """How many clients speak the protocol that does not raise epochs."""

    timeouts_ms: tuple[int, ...] = (2_000,)
    pause_s: float = 0.05
    """What a writer waits inside a transaction, on average."""

    records_max: int = 8
    ledger: dict[str, str] = field(default_factory=dict)
    """The configs of the ledger."""

    old_ids: dict[str, int] = field(default_factory=dict)
    """Transactional ids with epochs that are nearly used up."""


def writer_id(number: int) -> str:
    return f"writer-{number}"


def copier_id(number: int) -> str:
    return f"copier-{number}"
