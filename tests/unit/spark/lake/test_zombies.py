"""A driver sleeps at any step of a commit, its successor commits two batches, it wakes: each row once, in both formats.

It sleeps as a process does that has SIGSTOP: it holds what it has read, and goes on as if nothing had been.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.spark.errors import CommitRefused
from penstock.spark.lake import landing
from penstock.spark.lake.audit import audit
from penstock.spark.lake.landing import Wanted, land, write_down
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.store import BatchCommit, TableStore
from tests.patience import within
from tests.unit.spark.lake.tables import SCHEMA, numbers, opened, rows, spans, written

POINTS = ("before-look", "after-look", "before-commit", "after-commit")


class Sleeper:
    """One thread that sleeps once, at its point; others pass."""

    def __init__(self) -> None:
        self.asleep, self.woken = threading.Event(), threading.Event()
        self.thread: threading.Thread | None = None

    def nap(self) -> None:
        if threading.current_thread() is self.thread and not self.asleep.is_set():
            self.asleep.set()
            assert self.woken.wait(within(60)), "nobody wakes it"

    def around(self, patch: pytest.MonkeyPatch, owner: object, name: str, *, before: bool) -> None:
        true: Callable[..., Any] = getattr(owner, name)

        def napping(*given: Any, **named: Any) -> Any:
            if before:
                self.nap()
            answer = true(*given, **named)
            if not before:
                self.nap()
            return answer

        patch.setattr(owner, name, napping)


def batch_of(store: TableStore, number: int) -> BatchCommit:
    """Ten offsets and their rows, in files of this driver's own tasks."""
    start, end = 10 * number, 10 * number + 10
    ranges = (spans(start, end),)
    return BatchCommit("q", number, ranges, (written(store, rows(start, end)),), rows=end - start)


def commit(path: Path, table_format: str, number: int) -> None:
    """What a sink's commit does, as a driver of its own."""
    store, options = opened(path, table_format), LakeOptions(path=str(path), table_format=table_format, rows="record")
    landing.ensure_table(store, SCHEMA)
    store.refresh()
    write_down(store, land(store, options, Wanted(SCHEMA, ()), batch_of(store, number)))


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
@pytest.mark.parametrize("point", POINTS)
def test_a_driver_that_sleeps_while_its_successor_goes_on_doubles_nothing(
    tmp_path: Path, table_format: str, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, sleeper = tmp_path / "t", Sleeper()
    commit(path, table_format, 0)
    kind = type(opened(path, table_format))
    owner, name = (kind, "commit") if point.endswith("commit") else (landing, "is_new")
    sleeper.around(monkeypatch, owner, name, before=point.startswith("before"))
    outcome: list[object] = []

    def sleep_and_wake() -> None:
        try:
            commit(path, table_format, 1)
            outcome.append("through")
        except CommitRefused as refused:
            outcome.append(refused)

    sleeper.thread = threading.Thread(target=sleep_and_wake)
    sleeper.thread.start()
    assert sleeper.asleep.wait(within(60))
    for number in (1, 2):
        commit(path, table_format, number)
    sleeper.woken.set()
    sleeper.thread.join(within(60))
    assert outcome == ["through"], "it finds its batch there"
    commit(path, table_format, 3)
    store = opened(path, table_format)
    store.refresh()
    assert sorted(numbers(store)) == list(range(40))
    found = audit(store)
    assert found.clean, str(found)
