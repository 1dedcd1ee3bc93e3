"""Tables stay small without anybody asking, and nothing that is needed goes."""

from __future__ import annotations

import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.spark.lake import beside, upkeep
from penstock.spark.lake.audit import audit
from penstock.spark.lake.beside import wait_until_done
from penstock.spark.lake.landing import Wanted, land, write_down
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.store import BatchCommit, Compaction, Conflicted, TableStore
from penstock.spark.lake.upkeep import Due, after_commit, carry_out, due, tidy
from tests.patience import within
from tests.unit.spark.lake.tables import SCHEMA, append, made, numbers, opened, rows, spans, written

FORMATS = pytest.mark.parametrize("table_format", ["delta", "iceberg"])
PATIENCE_S = 60


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
        wanted = due(options, commit.batch_id)
        if wanted != Due():
            carry_out(store, options, wanted)


@FORMATS
def test_a_stream_of_small_batches_leaves_few_files(tmp_path: Path, table_format: str) -> None:
    store = made(tmp_path / "clicks", table_format)
    fill(store, 23, LakeOptions(path="", compact_every=5))
    store.refresh()
    assert len(store.files()) <= 5, "one or two of what was compacted, and three that came since"
    assert sorted(numbers(store)) == list(range(23))
    found = audit(store)
    assert found.clean, str(found)


def test_snapshots_of_appends_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.spark.lake.iceberg.store.KEEP_NEWEST", 3)
    monkeypatch.setattr("penstock.spark.lake.iceberg.store.KEEP_ALL", timedelta(0))
    store = made(tmp_path / "clicks")
    fill(store, 20, LakeOptions(path="", compact_every=5))
    store.refresh()
    # The newest ones, and the two compactions with the state before each.
    assert len(list(store.commits())) <= 3 + 2 * 2
    found = audit(store)
    assert found.clean, str(found)
    assert found.commits == 20


def test_upkeep_that_fails_does_not_fail_the_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = made(tmp_path / "clicks")
    append(store, 0, 1, batch=4)
    options, wanted = LakeOptions(path="", compact_every=5), Due(compact=True)

    def fails(target_bytes: int, *, whole: bool) -> Compaction:
        raise failure

    monkeypatch.setattr(store, "compact", fails)
    failure: Exception = OSError("the disk is full")
    with caplog.at_level(logging.INFO, logger=upkeep.__name__):
        assert carry_out(store, options, wanted) is None
        failure = Conflicted("somebody else")
        assert carry_out(store, options, wanted) is None
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "the disk is full" in caplog.text


@FORMATS
def test_a_batch_that_makes_upkeep_due_does_not_wait_for_it_and_others_land_beside_it(
    tmp_path: Path, table_format: str
) -> None:
    options = LakeOptions(path=str(tmp_path / "clicks"), table_format=table_format, compact_every=10)
    store = made(tmp_path / "clicks", table_format)
    for batch in range(10):
        store.refresh()
        commit = append(store, batch, batch + 1, batch=batch)
    assert after_commit(options, commit)
    assert not wait_until_done(options, within_s=0), "it is at work, and the sink goes on"
    assert not after_commit(options, commit), "one at a time"
    for batch in range(10, 14):
        land(store, options, Wanted(SCHEMA, ()), batch_of(store, batch))
    assert wait_until_done(options, within_s=within(PATIENCE_S))
    store.refresh()
    assert len(store.files()) <= 5
    assert sorted(numbers(store)) == list(range(14))
    found = audit(store)
    assert found.clean, str(found)


def batch_of(store: TableStore, number: int) -> BatchCommit:
    return BatchCommit("q", number, (spans(number, number + 1),), (written(store, rows(number, number + 1)),), rows=1)


def test_upkeep_that_cannot_be_started_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = made(tmp_path / "clicks")
    commit = append(store, 0, 1, batch=4)
    monkeypatch.setattr(beside, "COMMAND", (str(tmp_path / "no-python"),))
    assert not after_commit(LakeOptions(path=str(tmp_path / "clicks"), compact_every=5), commit)
    assert "could not be started" in caplog.text


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
