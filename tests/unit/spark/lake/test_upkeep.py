"""Tables stay small without anybody asking, and nothing that is needed goes."""

from __future__ import annotations

import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.spark.lake import upkeep
from penstock.spark.lake.audit import audit
from penstock.spark.lake.iceberg.compaction import Sized, plan
from penstock.spark.lake.landing import write_down
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.store import Compaction, Conflicted, TableStore
from penstock.spark.lake.upkeep import Due, after_commit, due, tidy
from tests.unit.spark.lake.tables import append, made, numbers, opened, rows, written

FORMATS = pytest.mark.parametrize("table_format", ["delta", "iceberg"])


def test_a_round_of_commits_makes_upkeep_due() -> None:
    options = LakeOptions(path="/t", compact_every=5)
    assert [batch for batch in range(20) if due(options, batch) != Due()] == [4, 9, 14, 19]
    assert due(options, 4) == Due(compact=True, expire=True)
    assert due(options, 5 * upkeep.SWEEP_EVERY - 1) == Due(compact=True, expire=True, sweep=True)
    assert due(options, -1) == Due()


def test_who_wants_no_compaction_or_no_expiry_gets_none() -> None:
    assert due(LakeOptions(path="/t", compact_every=0), upkeep.ROUND_COMMITS - 1) == Due(expire=True)
    assert due(LakeOptions(path="/t", compact_every=5, expire_after_days=0), 49) == Due(compact=True)


def fill(store: TableStore, batches: int, options: LakeOptions) -> None:
    for batch in range(batches):
        store.refresh()
        commit = append(store, batch, batch + 1, batch=batch)
        write_down(store, commit)
        after_commit(store, options, commit)


@FORMATS
def test_a_stream_of_small_batches_leaves_few_files(tmp_path: Path, table_format: str) -> None:
    store = made(tmp_path / "clicks", table_format)
    fill(store, 12, LakeOptions(path="", compact_every=5))
    store.refresh()
    assert len(store.files()) <= 4
    assert sorted(numbers(store)) == list(range(12))
    found = audit(store)
    assert found.clean, str(found)


def test_snapshots_of_appends_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.spark.lake.iceberg.store.KEEP_NEWEST", 3)
    monkeypatch.setattr("penstock.spark.lake.iceberg.store.KEEP_ALL", timedelta(0))
    store = made(tmp_path / "clicks")
    fill(store, 20, LakeOptions(path="", compact_every=5))
    store.refresh()
    # The newest ones, and the four compactions with the state before each.
    assert len(list(store.commits())) <= 3 + 2 * 4
    found = audit(store)
    assert found.clean, str(found)
    assert found.commits == 20


def test_upkeep_that_fails_does_not_fail_the_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = made(tmp_path / "clicks")
    commit = append(store, 0, 1, batch=4)
    options = LakeOptions(path="", compact_every=5)

    def fails(target_bytes: int) -> Compaction:
        raise failure

    monkeypatch.setattr(store, "compact", fails)
    failure: Exception = OSError("the disk is full")
    with caplog.at_level(logging.INFO, logger=upkeep.__name__):
        assert after_commit(store, options, commit) is None
        failure = Conflicted("somebody else")
        assert after_commit(store, options, commit) is None
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "the disk is full" in caplog.text


@FORMATS
def test_what_losers_left_goes_when_it_is_old(tmp_path: Path, table_format: str) -> None:
    store = made(tmp_path / "clicks", table_format)
    write_down(store, append(store, 0, 5, batch=0))
    store.refresh()
    directory = Path(store.layout().directory)
    loser, running = (directory / written(store, rows(0, 5)).path for _ in range(2))
    ages_ago = datetime.now(UTC) - timedelta(days=30)
    os.utime(loser, (ages_ago.timestamp(), ages_ago.timestamp()))
    heard: list[str] = []
    done = tidy(store, sweep_before=datetime.now(UTC) - upkeep.SAFE_AGE[table_format], told=heard.append)
    assert done.orphans_removed == 1
    assert (loser.exists(), running.exists()) == (False, True)
    assert heard == ["looking for files that nobody names"]
    fresh = opened(tmp_path / "clicks", table_format)
    assert numbers(fresh) == list(range(5))
    assert audit(fresh).clean


def sizes(*of: int, target: int = 100) -> list[list[int]]:
    files = [Sized(order, size) for order, size in enumerate(of)]
    return [[each.size_bytes for each in bin_] for bin_ in plan(files, target)]


def test_small_files_are_taken_together_and_large_ones_left_alone() -> None:
    assert sizes(5, 5, 5, 80, 99) == [[5, 5, 5]]
    assert sizes(40, 40, 40, 40) == [[40, 40], [40, 40]]
    assert sizes(50) == []
    assert sizes() == []
    assert sizes(3, 2, 1) == [[3, 2, 1]], "in the order of the table"


def test_a_file_is_written_again_only_when_what_joins_it_is_worth_it() -> None:
    assert sizes(60, 1, 1, 1) == [[1, 1, 1]]
    assert sizes(60, 10, 10, 10) == [[60, 10, 10, 10]]
    written_bytes, files = 0, []
    for _ in range(200):
        files = sorted([*files, *[1] * 10])
        for bin_ in sizes(*files, target=100_000):
            written_bytes += sum(bin_)
            for each in bin_:
                files.remove(each)
            files.append(sum(bin_))
    assert written_bytes < 2000 * 12, "each byte is rewritten a few times, not once a round"
    assert len(files) < 12
