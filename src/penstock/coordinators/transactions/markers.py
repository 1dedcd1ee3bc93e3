"""What becomes of the markers of a transaction whose outcome is decided.

An outcome that is decided stays so: whatever happens to markers, the transaction waits in Prepare* until all of them
are written, and whoever leads the shard next writes them all again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from penstock.coordinators.decision import Decision, Moment
from penstock.coordinators.transactions.effects import SendMarkers
from penstock.coordinators.transactions.outcomes import send_markers
from penstock.coordinators.transactions.records import state_record
from penstock.coordinators.transactions.requests import Partition
from penstock.coordinators.transactions.table import TransactionTable
from penstock.coordinators.transactions.transaction import Transaction
from penstock.coordinators.transactions.transitions import completed
from penstock.model.errors import ErrorCode
from penstock.model.ids import Offset

TRANSACTIONS_PER_STEP: Final = 200
"""How many transactions are looked at before the driver may turn to something else."""


def decide_written(table: TransactionTable, effect: SendMarkers, now: Moment) -> Decision:
    """Every partition has its marker, or is gone for good."""
    transaction = _meant(table, effect)
    return Decision() if transaction is None else _decide_complete(table, transaction, now)


def decide_marked(
    table: TransactionTable, effect: SendMarkers, partitions: Iterable[Partition], now: Moment
) -> Decision:
    """Some partitions have theirs: the last ones complete the transaction."""
    transaction = _meant(table, effect)
    if transaction is None:
        return Decision()
    unmarked = table.unmarked.setdefault(transaction.id, set(transaction.state.partitions))
    unmarked.difference_update(partitions)
    return Decision() if unmarked else _decide_complete(table, transaction, now)


def note_refused(table: TransactionTable, effect: SendMarkers, error: ErrorCode) -> None:
    """Somebody has written later ones: whoever does not lead any more must not go on.

    If this node leads after all, the next epoch in which it does tries again.
    """
    transaction = _meant(table, effect)
    if transaction is not None:
        table.refused[transaction.id] = error


def _meant(table: TransactionTable, effect: SendMarkers) -> Transaction | None:
    """The transaction that the effect is of; None when it is over, or led in another epoch by now."""
    name = effect.transactional_id
    under_way = effect.coordinator_epoch == table.epoch and table.marking.get(name) == effect.number
    return table.prepared.get(name) if under_way else None


def _decide_complete(table: TransactionTable, transaction: Transaction, now: Moment) -> Decision:
    assert transaction.committed(now), "markers leave when the outcome is committed"
    state = completed(transaction.state, now.wall)
    return Decision([state_record(transaction.id, state, table.value_version)])


def led(table: TransactionTable, now: Moment) -> Iterable[Decision]:
    """In another epoch everything that is prepared is marked again: nobody knows which markers were written."""
    table.unmarked.clear()
    table.refused.clear()
    # What is prepared from here on bears the new epoch already.
    found = [(transaction, transaction.offset) for transaction in table.prepared.values()]
    return _decide_again(table, found, now) if found else ()


def _decide_again(table: TransactionTable, found: list[tuple[Transaction, Offset]], now: Moment) -> Iterator[Decision]:
    out = Decision()
    for seen, (transaction, offset) in enumerate(found, start=1):
        if table.prepared.get(transaction.id) is transaction and transaction.offset == offset:
            _decide_one_again(table, transaction, now, out)
        if seen % TRANSACTIONS_PER_STEP == 0:
            yield out
            out = Decision()
    yield out


def _decide_one_again(table: TransactionTable, transaction: Transaction, now: Moment, out: Decision) -> None:
    state = transaction.state
    if state.partitions:
        out.effects.append(send_markers(table, transaction.id, state))
    else:
        out.records.append(state_record(transaction.id, completed(state, now.wall), table.value_version))
