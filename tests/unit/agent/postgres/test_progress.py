"""Positions of a Postgres input: what is saved is never ahead of what is safe, and another life goes on from there."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.agent.checkpoints import Checkpoints, Row
from penstock.agent.environment import Environment
from penstock.agent.inputs.files.ledger import Span
from penstock.agent.inputs.files.troubles import Troubles
from penstock.agent.inputs.postgres.log.lsn import LogPosition
from penstock.agent.inputs.postgres.position.progress import PostgresProgress, TableMark
from penstock.agent.inputs.postgres.server.connecting import PostgresFailed

SERVER = ("7", "shop")


class Topic:
    """Positions that go into transactions, as the agent gives them to an input."""

    def __init__(self, rows: dict[str, Row]) -> None:
        self.rows = rows

    async def load(self, input: str) -> list[Row]:
        return list(self.rows.values())

    def attach(self, input: str, source: object) -> None: ...


def made(rows: dict[str, Row], slot: str = "s") -> PostgresProgress:
    env = Environment("a", "h", Path("/nowhere"), "db", checkpoints=None, positions=Topic(rows))  # type: ignore[arg-type]  # what is asked of them is there
    progress = PostgresProgress(env, slot, Troubles("db"))
    run(progress.load())
    return progress


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def test_a_position_is_restored_with_its_server(tmp_path: Path) -> None:
    rows: dict[str, Row] = {}
    progress = made(rows)
    assert not progress.began
    progress.begin(100, SERVER)
    progress.reach(LogPosition(150, 3, 100))()
    save(progress, rows)
    again = made(rows)
    assert (again.position, again.saved, again.server) == (LogPosition(150, 3, 100), LogPosition(150, 3, 100), SERVER)


def save(progress: PostgresProgress, rows: dict[str, Row]) -> None:
    change = progress.take()
    rows.update({row.key: row for row in change.rows})
    for key in change.forgotten:
        rows.pop(key, None)
    change.committed()


def test_another_slot_begins_anew_and_forgets_the_old_one() -> None:
    rows: dict[str, Row] = {}
    progress = made(rows)
    progress.begin(100, SERVER)
    progress.table("public.a", 5).begin(0, TableMark(done=True))()
    save(progress, rows)
    other = made(rows, "t")
    assert not other.began
    assert not other.table("public.a", 5).done
    save(other, rows)
    assert rows == {}


def test_a_table_that_was_made_anew_is_another() -> None:
    rows: dict[str, Row] = {}
    progress = made(rows)
    progress.begin(100, SERVER)
    progress.table("public.a b", 5).begin(3, TableMark(("3", "x y")))()
    save(progress, rows)
    again = made(rows)
    assert again.table("public.a b", 5).ledger.last == TableMark(("3", "x y"))
    assert again.table("public.a b", 6).ledger.last == TableMark()


def test_rows_that_make_no_sense_are_not_guessed_at() -> None:
    with pytest.raises(PostgresFailed, match="makes no sense"):
        made({"s log": Row("s log", "s", 7, {"commit": 7})})


def test_positions_are_on_the_disk_when_they_are_saved(tmp_path: Path) -> None:
    async def lives() -> None:
        checkpoints = Checkpoints(tmp_path / "c.db")
        env = Environment("a", "h", tmp_path, "db", checkpoints)
        progress = PostgresProgress(env, "s", Troubles("db"))
        await progress.load()
        progress.begin(100, SERVER)
        done = progress.reach(LogPosition(150, 1, 140))
        await progress.save()
        assert progress.saved == LogPosition(100, 0, 100), "nothing of it is safe"
        done()
        await progress.save()
        assert progress.saved == LogPosition(150, 1, 140)
        again = PostgresProgress(env, "s", Troubles("db"))
        await again.load()
        assert again.saved == again.position == LogPosition(150, 1, 140)
        await checkpoints.close()

    run(lives())


class Positions(RuleBasedStateMachine):
    """Portions are put, staged, committed or aborted, and lives end, in any order that transactions allow."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, Row] = {}
        self.progress = made(self.rows)
        self.progress.begin(0, SERVER)
        self.put: list[tuple[int, Span[LogPosition]]] = []
        """Under way, with what each reaches."""
        self.reached = self.safe = 0
        self.staged: tuple[list[tuple[int, Span[LogPosition]]], Any] | None = None

    @rule(idle=st.booleans())
    def reach(self, idle: bool) -> None:
        if idle and not self.progress.settled:
            return
        self.reached += 1
        span = self.progress.reach(LogPosition(self.reached, 1, self.reached))
        if idle:
            span()
            self.safe = self.reached
        else:
            self.put.append((self.reached, span))

    @precondition(lambda self: self.staged is None)
    @rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        taken = self.put[: data.draw(st.integers(0, len(self.put)))]
        for _, span in taken:
            span.stage()
        self.staged = taken, self.progress.take()

    @precondition(lambda self: self.staged is not None)
    @rule()
    def commit(self) -> None:
        assert self.staged is not None
        taken, change = self.staged
        self.staged = None
        self.rows.update({row.key: row for row in change.rows})
        change.committed()
        for reached, span in taken:
            span()
            self.safe = reached
        self.put = self.put[len(taken) :]

    @precondition(lambda self: self.staged is not None)
    @rule()
    def abort(self) -> None:
        assert self.staged is not None
        taken, change = self.staged
        self.staged = None
        for _, span in taken:
            span.unstage()
        change.aborted()

    @rule()
    def kill(self) -> None:
        """What was not committed is read again."""
        if not self.rows:
            return
        self.progress, self.put, self.staged = made(self.rows), [], None
        assert self.progress.position.commit <= self.safe
        self.reached = self.safe = self.progress.position.commit

    @invariant()
    def nothing_is_saved_that_is_not_safe(self) -> None:
        assert self.progress.saved.restart <= self.safe
        for row in self.rows.values():
            assert row.position <= self.safe

    def teardown(self) -> None:
        """In the end everything is saved."""
        if self.staged is not None:
            self.abort()
        for _, span in self.put:
            span.stage()
        change = self.progress.take()
        self.rows.update({row.key: row for row in change.rows})
        change.committed()
        assert self.rows["s log"].position == self.reached
        assert self.progress.saved.restart == self.reached


TestPositions = Positions.TestCase


def test_the_server_is_told_only_of_what_this_machine_has() -> None:
    """Positions in the topic alone are no place to go on from for whoever gives exactly_once up."""
    progress = made({})
    progress.begin(100, SERVER)
    progress.reach(LogPosition(150, 0, 150))()
    change = progress.take()
    change.committed()
    assert (progress.saved.restart, progress.copied.restart) == (150, 0)
    change.copied()
    assert progress.copied.restart == 150
