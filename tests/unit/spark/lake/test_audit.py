"""The audit proves what it claims, and catches what was planted, in both formats."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.spark.lake.audit import audit
from penstock.spark.lake.findings import Audit, Check, Evidence, PartitionTold
from penstock.spark.lake.ledger import Ledger
from penstock.spark.lake.proof import judge
from penstock.spark.lake.ranges import RangeKey
from penstock.spark.lake.store import BatchCommit, Commit, TableStore
from tests.unit.spark.lake.tables import TOPIC_ID, append, made, opened, rows, spans, written

FORMATS = pytest.mark.parametrize("table_format", ["delta", "iceberg"])
KEY = RangeKey(TOPIC_ID, 0)


def fed(path: Path, table_format: str, batches: int = 4) -> TableStore:
    """A table of five records a batch, each commit in the ledger."""
    store = made(path, table_format)
    store.set_properties({"penstock.feed": json.dumps({"rows": "record"})})
    ledger = Ledger(store.location)
    for batch in range(batches):
        store.refresh()
        ledger.append(append(store, batch * 5, batch * 5 + 5, batch=batch))
    ledger.backfill(opened(path, table_format).commits(after=-1))
    store.refresh()
    return store


def caught(found: Audit) -> list[tuple[str, str]]:
    return [(finding.severity, finding.check) for finding in found.findings]


@FORMATS
def test_a_table_that_was_fed_properly_is_clean(tmp_path: Path, table_format: str) -> None:
    found = audit(fed(tmp_path / "clicks", table_format))
    assert found.clean, str(found)
    assert (found.commits, found.offsets, found.rows, found.rows_in_files) == (4, 20, 20, 20)
    (only,) = found.partitions
    assert (only.topic, only.partition, only.start, only.end, only.stored, only.ranges) == ("clicks", 0, 0, 20, 20, 4)
    assert {check.outcome for check in found.checks} == {"proven"}
    assert "clean" in str(found)
    assert json.loads(json.dumps(found.to_json()))["clean"] is True


def test_one_of_a_thing_is_told_as_one(tmp_path: Path) -> None:
    text = str(audit(fed(tmp_path / "clicks", "delta", batches=1)))
    for words in (
        "clicks-0  [0, 5) in 1 range\n",
        "1 commit, ",
        "1 partition stands where it ended",
        "1 is there, whole",
    ):
        assert words in text


def test_topics_of_one_name_are_told_apart_by_their_ids() -> None:
    old, new = PartitionTold("orders", "A", 1, 0, 0, 9, 9, 2), PartitionTold("orders", "B", 1, 0, 0, 3, 3, 1)
    other = PartitionTold("clicks", "C", 1, 0, 0, 7, 7, 1)
    found = Audit("t", "delta", 1, 3, 0, 0, 0, 0, 0, 0, (other, old, new), (Check("files", "proven", "all"),), ())
    assert [line.split("  ")[1] for line in str(found).splitlines()[1:4]] == [
        "clicks-1",
        "orders-1 (id A)",
        "orders-1 (id B)",
    ]


@FORMATS
def test_compaction_and_expiry_change_nothing_for_the_audit(tmp_path: Path, table_format: str) -> None:
    from datetime import UTC, datetime, timedelta

    from penstock.spark.lake.upkeep import tidy

    store = fed(tmp_path / "clicks", table_format)
    done = tidy(store, target_bytes=1 << 20, expire_before=datetime.now(UTC) + timedelta(days=1))
    assert (done.compaction.files_removed, done.compaction.files_added) == (4, 1)
    found = audit(opened(tmp_path / "clicks", table_format))
    assert found.clean, str(found)
    assert (found.commits, found.rows_in_files, found.files) == (4, 20, 1)


@FORMATS
def test_a_planted_gap_is_caught(tmp_path: Path, table_format: str) -> None:
    store = fed(tmp_path / "clicks", table_format)
    Ledger(store.location).append(append(store, 23, 25, batch=4))
    found = audit(store)
    (finding,) = found.findings
    assert (finding.severity, finding.check, finding.topic, finding.partition) == ("error", "gap", "clicks", 0)
    assert (finding.start, finding.end) == (20, 23)
    assert "3 offsets were skipped" in finding.meaning
    assert not found.clean
    assert "NOT CLEAN" in str(found)


@FORMATS
def test_a_planted_overlap_is_caught(tmp_path: Path, table_format: str) -> None:
    store = fed(tmp_path / "clicks", table_format)
    Ledger(store.location).append(append(store, 17, 25, batch=4))
    (finding,) = audit(store).findings
    assert (finding.check, finding.start, finding.end) == ("overlap", 17, 20)
    assert "twice" in finding.meaning


@FORMATS
def test_a_lost_ledger_entry_is_caught_and_written_again(tmp_path: Path, table_format: str) -> None:
    store = fed(tmp_path / "clicks", table_format)
    entries = sorted((tmp_path / "clicks" / "_penstock" / "ledger").glob("*.json"))
    next(entry for entry in entries if json.loads(entry.read_text())["batch"] == 1).unlink()
    assert caught(audit(store)) == [("warning", "ledger")]
    assert audit(opened(tmp_path / "clicks", table_format)).clean


@FORMATS
def test_a_driver_that_died_before_the_ledger_is_no_fault(tmp_path: Path, table_format: str) -> None:
    store = fed(tmp_path / "clicks", table_format)
    append(store, 20, 25, batch=4)
    found = audit(store)
    assert caught(found) == [("note", "ledger")]
    assert found.clean


@FORMATS
def test_a_ledger_that_says_something_else_is_caught(tmp_path: Path, table_format: str) -> None:
    store = fed(tmp_path / "clicks", table_format)
    newest = max((tmp_path / "clicks" / "_penstock" / "ledger").glob("*.json"))
    newest.write_text(json.dumps({**json.loads(newest.read_text()), "rows": 4}))
    assert caught(audit(store)) == [("error", "ledger")]


@FORMATS
def test_rows_that_somebody_added_again_are_caught(tmp_path: Path, table_format: str) -> None:
    store = fed(tmp_path / "clicks", table_format)
    again = rows(0, 5)
    if table_format == "delta":
        from deltalake import write_deltalake

        write_deltalake(store.location, again, mode="append")
    else:
        store.table.append(again)  # type: ignore[attr-defined]
    found = audit(store)
    assert ("error", "rows") in caught(found)
    assert "5 too many" in str(found)
    assert "were not written by a sink" in str(found)


@FORMATS
def test_a_file_that_was_taken_out_of_the_table_is_caught(tmp_path: Path, table_format: str) -> None:
    store = fed(tmp_path / "clicks", table_format)
    if table_format == "delta":
        from deltalake import DeltaTable

        DeltaTable(store.location).delete("n < 5")
    else:
        store.table.delete("n < 5")  # type: ignore[attr-defined]
    assert "5 are missing" in str(audit(store))


@FORMATS
def test_a_file_that_is_gone_from_the_disk_is_caught(tmp_path: Path, table_format: str) -> None:
    store = fed(tmp_path / "clicks", table_format)
    Path(store.files()[0].path).unlink()
    assert caught(audit(store)) == [("error", "files")]


@FORMATS
def test_offsets_that_are_neither_row_nor_dead_letter_nor_gap_are_caught(tmp_path: Path, table_format: str) -> None:
    store = fed(tmp_path / "clicks", table_format)
    file = written(store, rows(20, 23))
    Ledger(store.location).append(store.commit(BatchCommit("q", 4, (spans(20, 25),), (file,), 3, dead=1, gaps=1)))
    assert audit(store).clean
    Ledger(store.location).append(store.commit(BatchCommit("q", 5, (spans(25, 27),), (), 0, dead=1)))
    (finding,) = audit(store).findings
    assert finding.check == "records"
    assert "0 rows + 1 dead letters + 0 absent records are 1" in finding.meaning
    store.set_properties({"penstock.feed": "{}"})
    assert audit(store).clean


@FORMATS
def test_the_topic_tells_what_a_commit_does_not(tmp_path: Path, table_format: str) -> None:
    store = fed(tmp_path / "clicks", table_format)
    file = written(store, rows(20, 23))
    commit = store.commit(BatchCommit("q", 4, (spans(20, 26),), (file,), 3, gaps=1))
    Ledger(store.location).append(commit)
    asked: list[int] = []

    def topic_with(records: int | None) -> Any:
        def recount(commits: Sequence[Commit]) -> dict[int, int]:
            asked.extend(each.version for each in commits)
            return {} if records is None else {commit.version: records}

        return recount

    explained = audit(store, topic_with(3))
    assert asked == [commit.version], "nobody asks about commits that explain themselves"
    assert caught(explained) == [("note", "records")]
    assert explained.clean
    assert "does not say why 2 of its offsets have no row; the topic has 3 records there" in str(explained)
    assert caught(audit(store, topic_with(2))) == [("warning", "records")]
    lost = audit(store, topic_with(5))
    assert caught(lost) == [("error", "records")]
    assert "1 absent records are 4; the topic has 5 records there" in str(lost)
    assert caught(audit(store, topic_with(None))) == [("error", "records")]


@FORMATS
def test_a_batch_of_markers_and_aborted_records_alone_moves_the_table_on(tmp_path: Path, table_format: str) -> None:
    store = fed(tmp_path / "clicks", table_format)
    before = store.version()
    Ledger(store.location).append(store.commit(BatchCommit("q", 4, (spans(20, 24),), gaps=4)))
    store.refresh()
    append(store, 24, 29, batch=5)
    found = audit(store)
    assert (found.clean, found.offsets, found.rows, found.gaps) == (True, 29, 25, 4), str(found)
    assert [each.count for commit in store.commits(after=before) for each in commit.ranges] == [4, 5]


@FORMATS
def test_a_commit_that_miscounts_its_files_is_caught(tmp_path: Path, table_format: str) -> None:
    store = fed(tmp_path / "clicks", table_format)
    file = written(store, rows(20, 24))
    Ledger(store.location).append(store.commit(BatchCommit("q", 4, (spans(20, 25),), (file,), rows=5)))
    assert caught(audit(store)) == [("error", "added"), ("error", "rows")]


@FORMATS
def test_an_overwritten_table_is_counted_from_there(tmp_path: Path, table_format: str) -> None:
    store = fed(tmp_path / "clicks", table_format)
    file = written(store, rows(0, 3))
    store.set_properties({"penstock.feed": "{}"})
    store.refresh()
    store.commit(BatchCommit("q", 4, (spans(20, 25),), (file,), rows=3, overwrite=True))
    found = audit(store)
    assert found.clean, str(found)
    assert found.rows_in_files == 3


def commit(version: int, start: int, end: int, **fields: Any) -> Commit:
    told: dict[str, Any] = {"kind": "append", "query_id": "q", "batch_id": version, "rows": end - start, **fields}
    return Commit(version=version, time_ms=0, ranges=(spans(start, end),), **told)


def evidence(*ledger: Commit, committed: Mapping[RangeKey, int], rows_in_files: int, **fields: Any) -> Evidence:
    return Evidence("t", "iceberg", 9, ledger, (), committed, rows_in_files, **fields)


def test_a_position_that_no_commit_explains_is_caught() -> None:
    moved = evidence(commit(1, 0, 5), committed={KEY: 7}, rows_in_files=5)
    assert [(each.check, each.start, each.end) for each in judge(moved).findings] == [("position", 5, 7)]
    unknown = evidence(commit(1, 0, 5), committed={KEY: 5, RangeKey("other", 1): 3}, rows_in_files=5)
    assert caught(judge(unknown)) == [("warning", "position")]


def test_what_is_lost_is_named_and_what_it_leaves_unproven_too() -> None:
    lost = replace(commit(2, 0, 0), kind="lost", ranges=())
    found = judge(evidence(commit(1, 0, 5), lost, commit(3, 9, 12), committed={KEY: 12}, rows_in_files=8))
    (finding,) = found.findings
    assert "versions 2 are lost" in finding.meaning
    assert {check.name: check.outcome for check in found.checks}["rows in the table"] == "cannot be told"
    tiled = judge(evidence(commit(1, 0, 5), lost, commit(3, 5, 12), committed={KEY: 12}, rows_in_files=99))
    assert tiled.clean


def test_a_table_older_than_its_ledger_is_known_from_there_on() -> None:
    found = judge(evidence(commit(7, 100, 105), committed={KEY: 105}, rows_in_files=500))
    assert found.clean
    assert "known from version 7 on" in str(found)


def test_long_lists_are_cut_in_text_and_whole_in_json() -> None:
    ledger = [commit(number, number * 10, number * 10 + 5) for number in range(1, 40)]
    found = judge(evidence(*ledger, committed={KEY: 395}, rows_in_files=195))
    assert len(found.findings) == 38
    assert "and 18 more of gap" in str(found)
    assert len(found.to_json()["findings"]) == 38
