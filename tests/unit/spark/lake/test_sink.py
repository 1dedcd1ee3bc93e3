"""Batches into a Delta table, once: replays, races, lost checkpoints, other pipelines, crashes at every point."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.spark.errors import BadOption, CommitRefused, Missing
from penstock.spark.lake import landing
from penstock.spark.lake.delta.store import DeltaStore
from penstock.spark.lake.ledger import Ledger
from penstock.spark.lake.ranges import RangeKey
from penstock.spark.lake.sink import LakeBatchWriter, TaskWrote
from penstock.spark.lake.store import BatchCommit, CannotEvolve, Commit, Conflicted
from penstock.spark.lake.writing import Written
from penstock.spark.progress import reports
from tests.unit.spark.lake.queries import NUMBERS, TOPIC_ID, Query, numbers, offset_line


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def at(partition: int, topic: str = TOPIC_ID, ordinal: int = 0) -> RangeKey:
    return RangeKey(topic, partition, ordinal)


def test_rows_and_offsets_are_one_version_of_the_table(tmp_path: Path, table: Path) -> None:
    query = Query(tmp_path, table)
    query.reads(0, 3, 2, starts=[0, 1])
    query.run(0, [1, 2, 3, 11])
    store = query.store
    assert store.committed() == {at(0): 3, at(1): 2}
    assert store.last_batch(query.id) == 0
    [commit] = [each for each in store.commits() if each.kind == "append"]
    assert (commit.query_id, commit.batch_id, commit.rows, commit.files) == (query.id, 0, 4, 1)
    assert [(each.partition, each.start, each.end) for each in commit.ranges] == [(0, 0, 3), (1, 1, 2)]
    assert numbers(table) == [1, 2, 3, 11]


def test_a_batch_played_again_changes_nothing(tmp_path: Path, table: Path, caplog: pytest.LogCaptureFixture) -> None:
    query = Query(tmp_path, table)
    query.reads(0, 3, starts=[0])
    query.run(0, [0, 1, 2])
    version = query.store.version()
    with caplog.at_level(logging.INFO):
        query.run(0, [0, 1, 2])
    assert (numbers(table), query.store.version()) == ([0, 1, 2], version)
    assert "is in" in caplog.text


def test_a_commit_whose_answer_was_lost_is_recognised(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query(tmp_path, table)
    query.reads(0, 3, starts=[0])
    real = DeltaStore.commit

    def lost(store: DeltaStore, batch: BatchCommit) -> Commit:
        real(store, batch)
        raise ConnectionError("the answer did not come")

    monkeypatch.setattr(DeltaStore, "commit", lost)
    with pytest.raises(ConnectionError):
        query.run(0, [0, 1, 2])
    query.writer().abort([], 0)
    monkeypatch.undo()
    query.run(0, [0, 1, 2])
    assert numbers(table) == [0, 1, 2]
    assert [each.batch_id for each in Ledger(str(table)).entries() if each.kind == "append"] == [0]


def test_a_commit_that_seems_to_conflict_with_itself_is_recognised(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object store may answer a write that landed with "already there"."""
    query = Query(tmp_path, table)
    query.reads(0, 3, starts=[0])
    real = DeltaStore.commit

    def lost(store: DeltaStore, batch: BatchCommit) -> Commit:
        real(store, batch)
        raise Conflicted("somebody was first")

    monkeypatch.setattr(DeltaStore, "commit", lost)
    query.run(0, [0, 1, 2])
    writer = LakeBatchWriter(query.options, query.schema, False)
    writer.commit([query.written({"n": [7]})])
    assert numbers(table) == [0, 1, 2, 7]


def test_a_lost_checkpoint_can_neither_double_nor_skip(tmp_path: Path, table: Path) -> None:
    first = Query(tmp_path, table)
    first.reads(0, 3, starts=[0])
    first.run(0, [0, 1, 2])
    again = Query(tmp_path, table)
    again.reads(0, 2, starts=[0])
    with pytest.raises(CommitRefused, match=r"another query has brought orders-0 \[0, 2\)"):
        again.run(0, [0, 1])
    fresh = Query(tmp_path, table)
    fresh.reads(0, 5, starts=[2])
    with pytest.raises(CommitRefused) as refused:
        fresh.run(0, [2, 3, 4])
    assert "orders-0: the table is at 3, the batch has [2, 5): an overlap of 1 offsets" in str(refused.value)
    assert f'.option("startingOffsets", "table:{table}")' in str(refused.value)
    assert numbers(table) == [0, 1, 2]


def test_a_second_pipeline_that_skips_is_refused(tmp_path: Path, table: Path) -> None:
    first, second = Query(tmp_path, table), Query(tmp_path, table)
    first.reads(0, 3, starts=[0])
    first.run(0, [0, 1, 2])
    second.reads(0, 9, starts=[5])
    with pytest.raises(CommitRefused, match=r"the table is at 3, the batch has \[5, 9\): a gap of 2 offsets"):
        second.run(0, [5, 6, 7, 8])
    # Nothing it wrote is lost either: the files stay, uncommitted, and the first goes on.
    first.reads(1, 4)
    first.run(1, [3])
    assert numbers(table) == [0, 1, 2, 3]


def test_pipelines_of_other_partitions_share_a_table(tmp_path: Path, table: Path) -> None:
    first, second = Query(tmp_path, table), Query(tmp_path, table)
    first.reads(0, 3, starts=[0])
    second.reads(0, 2, starts=[0], topic="clicks")
    second.plan(0, offset_line(2, starts=[0], topic="clicks", topic_id="another"))
    first.run(0, [0, 1, 2])
    second.run(0, [10, 11])
    assert first.store.committed() == {at(0): 3, at(0, "another"): 2}
    assert numbers(table) == [0, 1, 2, 10, 11]


def test_a_driver_that_planned_before_another_committed_decides_again(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query(tmp_path, table)
    query.reads(0, 3, starts=[0])
    query.run(0, [0, 1, 2])
    query.reads(1, 5)
    message = query.written({"n": [3, 4]})
    real = landing.judge
    late: list[bool] = []

    def judged(store: DeltaStore, batch: BatchCommit) -> object:
        decision = real(store, batch)
        if not late:
            # Its twin commits between the look and the commit.
            late.append(True)
            query.writer().commit([query.written({"n": [3, 4]})], 1)
        return decision

    monkeypatch.setattr(landing, "judge", judged)
    query.writer().commit([message], 1)
    assert numbers(table) == [0, 1, 2, 3, 4]


def test_a_batch_without_rows_still_moves_the_offsets(tmp_path: Path, table: Path) -> None:
    query = Query(tmp_path, table)
    query.reads(0, 3, starts=[0])
    query.run(0, [])
    query.reads(1, 5)
    query.writer().commit([], 1)
    assert query.store.committed() == {at(0): 5}
    assert query.store.files() == []
    query.reads(2, 6)
    query.run(2, [5])
    assert numbers(table) == [5]


def test_a_query_without_our_sources_is_known_by_its_id_and_batch(tmp_path: Path, table: Path) -> None:
    query, other = Query(tmp_path, table), Query(tmp_path, table)
    for each in (query, other):
        each.plan(0, '{"seq":1}')
        each.run(0, [1])
        each.run(0, [1])
    query.plan(1, '{"seq":2}')
    query.run(1, [2])
    assert numbers(table) == [1, 1, 2]


def test_a_batch_that_gives_rows_when_only_time_has_passed_enters_once(tmp_path: Path, table: Path) -> None:
    query = Query(tmp_path, table)
    query.reads(0, 3, starts=[0])
    query.run(0, [0])
    query.reads(1, 3)
    query.run(1, [1])
    query.run(1, [1])
    assert numbers(table) == [0, 1]


def test_one_topic_read_twice_by_a_query_keeps_two_positions(tmp_path: Path, table: Path) -> None:
    query = Query(tmp_path, table)
    query.plan(0, offset_line(3, starts=[0]), offset_line(2, starts=[0]))
    query.run(0, [1])
    query.plan(1, offset_line(4), offset_line(6))
    query.run(1, [2])
    assert query.store.committed() == {at(0): 4, at(0, ordinal=1): 6}


def test_complete_mode_replaces_the_rows_with_the_offsets(tmp_path: Path, table: Path) -> None:
    query = Query(tmp_path, table)
    query.overwrite = True
    for batch, (ends, rows) in enumerate([((3,), [1, 2]), ((5,), [7])]):
        query.reads(batch, *ends, starts=[0] if batch == 0 else None)
        query.run(batch, rows)
        query.run(batch, rows)
    assert (numbers(table), query.store.committed()) == ([7], {at(0): 5})
    assert [each.kind for each in query.store.commits()] == ["other", "overwrite", "overwrite"]


def test_a_crash_between_commit_and_ledger_is_made_up_for(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query(tmp_path, table)
    query.reads(0, 3, starts=[0])
    query.run(0, [0, 1, 2])

    def full(ledger: Ledger, commit: Commit) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "append", full)
        query.reads(1, 4)
        query.run(1, [3])
    assert [each.version for each in Ledger(str(table)).entries()] == [0, 1]
    query.reads(2, 5)
    query.run(2, [4])
    entries = list(Ledger(str(table)).entries())
    assert [(each.version, each.batch_id, each.rows) for each in entries[1:]] == [(1, 0, 3), (2, 1, 1), (3, 2, 1)]
    assert entries[2].ranges[0].start == 3


def test_a_batch_write_appends_or_replaces_without_offsets(tmp_path: Path, table: Path) -> None:
    query = Query(tmp_path, table)
    for overwrite, rows in ((False, [1, 2]), (False, [3]), (True, [9])):
        writer = LakeBatchWriter(query.options, query.schema, overwrite)
        message = writer.write(iter([pa.RecordBatch.from_pydict({"n": rows}, schema=NUMBERS)]))
        writer.commit([message])
        if not overwrite:
            assert numbers(table)[-1] == rows[-1]
    assert (numbers(table), query.store.committed()) == ([9], {})


def test_gaps_and_dead_letters_explain_records_without_a_row(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query(tmp_path, table, rows="record")
    asked: list[tuple[str, str, int, int]] = []

    def collect(bootstrap: str, query_id: str, batch_id: int, since_ms: int) -> list[reports.SpanReport]:
        asked.append((bootstrap, query_id, batch_id, since_ms))
        told = [("orders", 0, 6, 2, 1), ("orders", 6, 10, 0, 3), ("orders", 90, 95, 5, 0), ("clicks", 0, 6, 1, 1)]
        return [
            reports.SpanReport(query_id, batch_id, topic, TOPIC_ID, 0, start, end, 0, dead, missing)
            for topic, start, end, dead, missing in told
        ]

    monkeypatch.setattr(reports, "collect", collect)
    query.plan(0, offset_line(10, starts=[0], bootstrap="b:9092"))
    query.run(0, [1, 2, 3, 4])
    query.plan(1, offset_line(12, bootstrap="b:9092"))
    query.run(1, [11, 12])
    first, second = [each for each in query.store.commits() if each.kind == "append"]
    assert (first.rows, first.dead, first.gaps) == (4, 2, 4)
    assert (second.rows, second.dead, second.gaps) == (2, 0, 0)
    assert asked == [("b:9092", query.id, 0, 1_700_000_000_000)]


def test_a_checkpoint_is_needed_and_told_how(tmp_path: Path, table: Path) -> None:
    query = Query(tmp_path, table)
    query.options = query.options.__class__(path=str(table))
    with pytest.raises(BadOption, match="checkpointLocation"):
        query.writer()


def test_a_checkpoint_that_the_driver_does_not_see_commits_nothing(tmp_path: Path, table: Path) -> None:
    query = Query(tmp_path, table)
    with pytest.raises(Missing, match="offsets/0 cannot be read"):
        query.run(0, [1])
    assert not table.joinpath("_delta_log").exists()


def test_what_crosses_between_driver_and_tasks_can_be_pickled(tmp_path: Path, table: Path) -> None:
    query = Query(tmp_path, table, partition_by="n", schema=pa.schema([("n", pa.int64()), ("m", pa.int64())]))
    writer = pickle.loads(pickle.dumps(query.writer()))
    rows = pa.RecordBatch.from_pydict({"n": [1, 2], "m": [3, 4]})
    message = pickle.loads(pickle.dumps(writer.write(iter([rows]))))
    assert isinstance(message, TaskWrote)
    assert isinstance(message.written, Written)
    assert [each.partition for each in message.written.files] == [{"n": "1"}, {"n": "2"}]


def test_the_feed_is_kept_as_a_property(tmp_path: Path, table: Path) -> None:
    for feed in ('{"topics":["a"]}', '{"topics":["a","b"]}'):
        query = Query(tmp_path, table, feed=feed)
        query.plan(0, "-")
        query.run(0, [1])
        assert query.store.properties()["penstock.feed"] == feed


def test_another_partitioning_than_the_tables_is_refused(tmp_path: Path, table: Path) -> None:
    two = pa.schema([("n", pa.int64()), ("m", pa.int64())])
    query = Query(tmp_path, table, schema=two, partition_by="m")
    query.reads(0, 1, starts=[0])
    query.writer().commit([query.written({"n": [1], "m": [2]})], 0)
    with pytest.raises(BadOption, match="is partitioned by m"):
        Query(tmp_path, table, schema=two, partition_by="n").writer()
    assert Query(tmp_path, table, schema=two).writer().plan.partition[0].column == "m"
    with pytest.raises(BadOption, match="names x, which is not a column"):
        Query(tmp_path, tmp_path / "new", schema=two, partition_by="x").writer()


def test_a_batch_without_the_column_that_splits_the_table_goes_to_null(tmp_path: Path, table: Path) -> None:
    query = Query(tmp_path, table, schema=pa.schema([("n", pa.int64()), ("m", pa.int64())]), partition_by="m")
    query.reads(0, 1, starts=[0])
    query.writer().commit([query.written({"n": [1], "m": [2]})], 0)
    bare = Query(tmp_path, table)
    bare.reads(0, 2, starts=[1])
    bare.run(0, [5])
    assert (numbers(table), numbers(table, "m")) == ([1, 5], [2, None])


def test_a_type_that_delta_lacks_is_named(tmp_path: Path, table: Path) -> None:
    query = Query(tmp_path, table, schema=pa.schema([("n", pa.int64()), ("span", pa.duration("us"))]))
    query.reads(0, 1, starts=[0])
    with pytest.raises(CannotEvolve, match="column span is duration"):
        query.writer().commit([], 0)
