"""Transactional ids that nobody has used for long enough are forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.coordinators.decision import Decision, Moment
from penstock.coordinators.transactions.records import tombstone
from penstock.coordinators.transactions.table import TransactionTable
from penstock.coordinators.transactions.transaction import COMPLETED, Status, Transaction

IDS_PER_STEP: Final = 1_000
"""How many ids are looked at before the driver may turn to something else, and how many tombstones a batch has."""


def expire(table: TransactionTable, now: Moment) -> Iterator[Decision]:
    """Tombstones, many to a batch. Ids may come and go while the driver rests."""
    before_ms = now.wall - table.settings.expiration_ms
    out = Decision()
    for seen, transactional_id in enumerate(list(table.transactions), start=1):
        transaction = table.transactions.get(transactional_id)
        if transaction is not None and _expired(transaction, before_ms, now):
            out.records.append(tombstone(transactional_id))
        if seen % IDS_PER_STEP == 0:
            yield out
            out = Decision()
    yield out


def _expired(transaction: Transaction, before_ms: int, now: Moment) -> bool:
    state = transaction.state
    if state.updated_ms > before_ms or not transaction.committed(now):
        return False
    return state.status is Status.EMPTY or state.status in COMPLETED
