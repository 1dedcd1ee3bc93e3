"""The log of transactions, read from anywhere: every change once, at its place."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.agent.inputs.postgres.log.changes import LogReader, RowChange
from penstock.agent.inputs.postgres.log.lsn import LogPosition
from penstock.agent.inputs.postgres.log.wire import (
    BrokenMessage,
    Insert,
    OriginName,
    Relation,
    RelationColumn,
    TransactionBegin,
    TransactionCommit,
    Truncate,
    TypeName,
)
from tests.unit.agent.postgres.pgoutput import written

TABLE = Relation(7, "public", "orders", "d", (RelationColumn("id", 23, -1, True),))
OTHER = Relation(8, "public", "lines", "d", (RelationColumn("id", 23, -1, True),))


@dataclass
class Log:
    """Transactions as a Postgres sends them; one begins where the one before it has ended."""

    sizes: list[int]

    def messages(self, restart: int) -> list[tuple[bytes, int]]:
        """From the first transaction on that commits at `restart` or behind it."""
        found, at, value = [(written(TABLE), 0)], 100, 0
        for size in self.sizes:
            commit = at + size + 1
            part = [(written(TransactionBegin(commit, 5_000_000, 9)), at)]
            part += [(written(Insert(7, (str(value + n),))), at + n) for n in range(size)]
            part.append((written(TransactionCommit(commit, commit + 1, 5_000_000)), commit))
            found += part if commit >= restart else []
            at, value = commit + 1, value + size
        return found


def values(changes: list[RowChange]) -> list[int]:
    return [int(str(change.new[0])) for change in changes]


@given(st.lists(st.integers(0, 4), max_size=6), st.data())
def test_a_log_that_is_read_again_from_any_position_gives_what_is_behind_it(
    sizes: list[int], data: st.DataObject
) -> None:
    log = Log(sizes)
    reader = LogReader(LogPosition())
    found: list[RowChange] = []
    positions = [(LogPosition(), 0)]
    for message, lsn in log.messages(0):
        gave = reader.feed(message, lsn)
        found += gave.changes
        if gave.position is not None:
            positions.append((gave.position, len(found)))
    assert values(found) == list(range(sum(sizes)))
    position, behind = data.draw(st.sampled_from(positions))
    again = LogReader(position)
    rest = [change for message, lsn in log.messages(position.restart) for change in again.feed(message, lsn).changes]
    assert rest == found[behind:]


@given(st.lists(st.integers(0, 4), max_size=6))
def test_positions_only_rise(sizes: list[int]) -> None:
    reader = LogReader(LogPosition())
    gave = [reader.feed(message, lsn).position for message, lsn in Log(sizes).messages(0)]
    positions = [position for position in gave if position is not None]
    assert positions == sorted(positions)
    assert all(position.restart <= position.commit + 1 for position in positions)


def test_nothing_is_acknowledged_in_the_middle_of_a_transaction() -> None:
    reader = LogReader(LogPosition())
    first, begin, insert, *_ = Log([2]).messages(0)
    for message, lsn in (first, begin):
        reader.feed(message, lsn)
    assert reader.feed(*insert).position == LogPosition(commit=103, changes=1, restart=0)
    assert not reader.between
    assert reader.idle(5_000) is None


def test_an_idle_server_moves_the_position_without_a_change() -> None:
    reader = LogReader(LogPosition())
    position = reader.idle(5_000)
    assert position == LogPosition(commit=5_000, changes=0, restart=5_000)
    assert reader.idle(5_000) is None
    assert position is not None
    assert not position.has(5_000, 1), "a transaction that commits just there was not sent"


def test_a_truncation_of_two_tables_is_two_changes_at_one_place() -> None:
    reader = LogReader(LogPosition())
    for message in (TABLE, OTHER, TransactionBegin(9, 0, 1)):
        reader.feed(written(message), 1)
    gave = reader.feed(written(Truncate((7, 8), False, False)), 5)
    assert [(change.kind, change.relation.table, change.number) for change in gave.changes] == [
        ("truncate", "orders", 1),
        ("truncate", "lines", 1),
    ]
    assert gave.position == LogPosition(9, 1, 0)


def test_a_table_that_changed_is_told_and_one_that_did_not_is_not() -> None:
    reader = LogReader(LogPosition())
    assert reader.feed(written(TABLE), 1).relation == TABLE
    assert reader.feed(written(TABLE), 2).relation is None
    wider = Relation(7, "public", "orders", "d", (*TABLE.columns, RelationColumn("note", 25, -1, False)))
    assert reader.feed(written(wider), 3).relation == wider


def test_names_of_types_are_kept() -> None:
    reader = LogReader(LogPosition())
    reader.feed(written(TypeName(70_000, "public", "mood")), 1)
    reader.feed(written(OriginName(3, "elsewhere")), 1)
    assert reader.types == {70_000: TypeName(70_000, "public", "mood")}


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([TABLE, Insert(7, ("1",))], "outside of a transaction"),
        ([TransactionBegin(9, 0, 1), Insert(7, ("1",))], "table 7, which was not told of"),
        ([TransactionBegin(9, 0, 1), TransactionBegin(9, 0, 1)], "inside of another"),
        ([TransactionBegin(9, 0, 1), TransactionCommit(8, 9, 0)], "not of the transaction that is open"),
        ([TABLE, TransactionBegin(9, 0, 1), Insert(7, ("1", "2"))], "2 values of public.orders, which has 1 columns"),
    ],
)
def test_a_log_that_makes_no_sense_is_not_guessed_at(messages: list, words: str) -> None:
    reader = LogReader(LogPosition())
    *before, last = map(written, messages)
    for message in before:
        reader.feed(message, 1)
    with pytest.raises(BrokenMessage, match=words):
        reader.feed(last, 1)
