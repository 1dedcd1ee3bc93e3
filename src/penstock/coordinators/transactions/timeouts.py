"""Transactions that take too long are aborted, as if somebody else had asked for their id.

Time is counted in ticks, so that nobody who sets the clock ends transactions; records hold the wall clock. After a load
a transaction has what the wall clock leaves of its time: at most all of it, when clocks disagree, and never more. They
are looked for at intervals, and only while one goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.coordinators.decision import Decision, Moment
from penstock.coordinators.transactions.outcomes import decide_fenced_abort, fencing_outcome
from penstock.coordinators.transactions.table import TransactionTable
from penstock.coordinators.transactions.transaction import NEVER_TIMES_OUT_MS, State, Status

_NEVER: Final = 1 << 62


def begin_time(table: TransactionTable, transactional_id: str, timeout_ms: int, now: Moment) -> None:
    """A transaction begins."""
    table.deadlines[transactional_id] = _NEVER if timeout_ms == NEVER_TIMES_OUT_MS else now.tick + timeout_ms
    if table.next_check is None:
        table.next_check = now.tick + table.settings.timed_out_interval_ms


def time_left_ms(state: State, now: Moment) -> int:
    """What a transaction that only the log tells of has left of its time."""
    gone_ms = min(max(now.wall - state.started_ms, 0), state.timeout_ms)
    return state.timeout_ms - gone_ms


def loaded(table: TransactionTable, now: Moment) -> None:
    """Ongoing transactions have what is left of their time, counted from now."""
    for transactional_id, deadline in table.deadlines.items():
        if deadline is None:
            state = table.transactions[transactional_id].state
            forever = state.timeout_ms == NEVER_TIMES_OUT_MS
            table.deadlines[transactional_id] = _NEVER if forever else now.tick + time_left_ms(state, now)
    if table.deadlines:
        table.next_check = now.tick + table.settings.timed_out_interval_ms


def expire(table: TransactionTable, now: Moment) -> Iterator[Decision]:
    """Aborts what is out of time; what settles, or needs a producer id that is not at hand, is left for next time."""
    table.next_check = now.tick + table.settings.timed_out_interval_ms if table.deadlines else None
    over = [key for key, deadline in table.deadlines.items() if deadline is not None and deadline < now.tick]
    for transactional_id in over:
        yield _expire(table, transactional_id, now)


def _expire(table: TransactionTable, transactional_id: str, now: Moment) -> Decision:
    transaction = table.transactions.get(transactional_id)
    deadline = table.deadlines.get(transactional_id)
    if transaction is None or deadline is None or deadline >= now.tick:
        return Decision()  # ended, and maybe begun anew, since it was found
    if transaction.state.status is not Status.ONGOING or transaction.settling(now):
        return Decision()
    outcome = fencing_outcome(table, transaction.state)
    return Decision() if outcome is None else decide_fenced_abort(table, transaction, outcome, None, now)
