"""Commits, kept for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.spark.lake import ledger as ledgers
from penstock.spark.lake.ledger import Ledger
from penstock.spark.lake.ranges import TableRange
from penstock.spark.lake.store import APPEND, LOST, Commit


def commit(version: int) -> Commit:
    return Commit(
        version=version,
        time_ms=1_000 + version,
        kind=APPEND,
        query_id="q",
        batch_id=version,
        ranges=(TableRange("orders", "id", 0, version, version + 1, 4, 1),),
        rows=1,
        dead=2,
        gaps=3,
        files=4,
        size_bytes=5,
        snapshot="s",
    )


def versions(path: Path) -> list[int]:
    return [each.version for each in Ledger(str(path)).entries()]


def names(path: Path) -> list[str]:
    return sorted(each.name for each in (path / ledgers.DIRECTORY).iterdir())


def test_what_is_written_down_is_read_back(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    assert (list(ledger.entries()), ledger.complete_through()) == ([], -1)
    for version in (1, 0, 0):
        ledger.append(commit(version))
    assert list(Ledger(str(tmp_path)).entries()) == [commit(0), commit(1)]
    assert names(tmp_path) == [f"{version:020d}.json" for version in (0, 1)]


def test_a_hole_is_filled_and_what_is_there_stays(tmp_path: Path) -> None:
    first = Ledger(str(tmp_path))
    for version in (0, 1, 4):
        first.append(commit(version))
    again = Ledger(str(tmp_path))
    assert again.complete_through() == 1
    assert again.backfill(commit(version) for version in range(2, 7)) == 4
    assert (again.complete_through(), versions(tmp_path)) == (6, list(range(7)))


def test_another_driver_may_have_written_it_down(tmp_path: Path) -> None:
    one, other = Ledger(str(tmp_path)), Ledger(str(tmp_path))
    assert one.complete_through() == other.complete_through() == -1
    one.append(commit(0))
    one.append(commit(1))
    assert other.backfill(commit(version) for version in range(3)) == 1
    assert other.complete_through() == 2


def test_what_the_table_has_forgotten_is_written_down_as_lost(tmp_path: Path) -> None:
    Ledger(str(tmp_path)).append(commit(0))
    ledger = Ledger(str(tmp_path))
    ledger.backfill([commit(3), commit(4)])
    assert [(each.version, each.kind) for each in Ledger(str(tmp_path)).entries()] == [
        (0, APPEND),
        (1, LOST),
        (2, LOST),
        (3, APPEND),
        (4, APPEND),
    ]
    assert Ledger(str(tmp_path)).complete_through() == 4


def test_a_ledger_may_begin_late(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    ledger.backfill([commit(500), commit(501)])
    assert (versions(tmp_path), ledger.complete_through()) == ([500, 501], 501)
    assert Ledger(str(tmp_path)).complete_through() == 501


def test_torn_files_are_passed_over_and_written_again(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    for version in range(4):
        ledger.append(commit(version))
    directory = tmp_path / ledgers.DIRECTORY
    (directory / f"{1:020d}.json").write_bytes(b"")
    (directory / f"{2:020d}.json").write_bytes(b'{"version": 2, "ti')
    (directory / f"{3:020d}.json.77.tmp").write_bytes(b"\xff\xfe")
    assert versions(tmp_path) == [0, 3]
    fresh = Ledger(str(tmp_path))
    assert fresh.backfill(commit(version) for version in range(fresh.complete_through() + 1, 4)) == 2
    assert list(Ledger(str(tmp_path)).entries()) == [commit(version) for version in range(4)]


def test_many_entries_are_rolled_into_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "ROLL_AT", 8)
    ledger = Ledger(str(tmp_path))
    ledger.complete_through()
    for version in range(20):
        ledger.append(commit(version))
    assert versions(tmp_path) == list(range(20))
    assert len([name for name in names(tmp_path) if name.startswith("rolled-")]) == 2
    assert len(names(tmp_path)) == 2 + 4
    assert Ledger(str(tmp_path)).complete_through() == 19


def test_two_drivers_that_roll_at_once_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "ROLL_AT", 8)
    ledger = Ledger(str(tmp_path))
    for version in range(10):
        ledger.append(commit(version))
    real = ledgers.write_whole

    def meanwhile(*given: object) -> None:
        monkeypatch.setattr(ledgers, "write_whole", real)
        Ledger(str(tmp_path)).roll()
        real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(ledgers, "write_whole", meanwhile)
    Ledger(str(tmp_path)).roll()
    assert versions(tmp_path) == list(range(10))
    (tmp_path / ledgers.DIRECTORY / names(tmp_path)[0]).unlink()
    assert versions(tmp_path) == list(range(10))
