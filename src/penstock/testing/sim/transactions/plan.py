"""What a seed decides of transactions; `drawing.py` draws it."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.testing.sim.topics import ALONE, COPIES, LEDGER

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

    stall_rate: float = 0.0
    """How many transactions take longer than they may."""

    offsets_rate: float = 0.3
    """How many transactions of writers commit offsets too, of a group that has plain commits as well."""

    records_max: int = 8
    between_strikes_s: float = 0.5
    """How long it takes, on average, from one thing that goes wrong in a moment that counts to the next."""

    late_rate: float = 0.0
    """How many requests and replies that transactions are made of come late, or are lost with their connection."""

    alone: bool = False
    """Whether there is a topic whose partitions have one replica each."""

    plain: bool = False
    """Whether somebody writes without transactions too."""

    ledger: dict[str, str] = field(default_factory=dict)
    """The configs of the ledger."""

    old_ids: dict[str, int] = field(default_factory=dict)
    """Transactional ids with epochs that are nearly used up."""

    def topics(self) -> dict[str, dict[str, str]]:
        """What there is besides, with its configs."""
        alone = {ALONE: {"min.insync.replicas": "1"}} if self.alone else {}
        return {LEDGER: self.ledger, COPIES: {}, **alone}


def writer_id(number: int) -> str:
    return f"writer-{number}"


def copier_id(number: int) -> str:
    return f"copier-{number}"
