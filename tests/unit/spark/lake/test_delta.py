"""Delta tables: who else writes, what removes files, what outlives the log."""

from __future__ import annotations

import datetime as dt
import json
import multiprocessing
import os
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from penstock.spark.errors import BadOption, CommitRefused, Missing
from penstock.spark.lake.delta import thinning
from penstock.spark.lake.delta.compaction import plan_compaction
from penstock.spark.lake.delta.store import DeltaStore, key_of, key_text
from penstock.spark.lake.delta.thinning import LogFile, plan_thinning
from penstock.spark.lake.evolution import plan_fit
from penstock.spark.lake.landing import Wanted, land, write_down
from penstock.spark.lake.ledger import Ledger
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.parquet_files import DiskFull
from penstock.spark.lake.partitioning import PartitionField
from penstock.spark.lake.ranges import RangeKey, TableRange
from penstock.spark.lake.store import BatchCommit, Conflicted, TableFile, WrittenFile
from penstock.spark.lake.writing import WritePlan, write_rows
from tests.patience import within
from tests.unit.spark.lake.queries import numbers

SCHEMA = pa.schema([("n", pa.int64())])
FUTURE = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)


def opened(path: Path | str) -> DeltaStore:
    return DeltaStore(LakeOptions(path=str(path)))


def made(path: Path, schema: pa.Schema = SCHEMA, partition_by: Sequence[str] = ()) -> DeltaStore:
    store = opened(path)
    store.create(schema, partition_by)
    store.refresh()
    return store


def written(store: DeltaStore, rows: dict[str, list[object]], schema: pa.Schema = SCHEMA) -> tuple[WrittenFile, ...]:
    partition = tuple(PartitionField(name) for name in store.partition_by())
    fit = plan_fit(schema, store.schema(), can_widen=store.can_widen, add=True)
    plan = WritePlan(store.location, store.location, fit, partition, False, "zstd", 1 << 20)
    batch = pa.RecordBatch.from_pydict(rows, schema=schema)
    return write_rows([batch], plan, attempt=uuid.uuid4().hex, query="q", batch=0).files


def batch_of(store: DeltaStore, start: int, end: int, *, query: str = "q", overwrite: bool = False) -> BatchCommit:
    return BatchCommit(
        query_id=query,
        batch_id=start,
        ranges=(TableRange("orders", "id", 0, start, end),),
        files=written(store, {"n": list(range(start, end))}),
        rows=end - start,
        overwrite=overwrite,
    )


def filled(path: Path, commits: int) -> DeltaStore:
    store = made(path)
    for start in range(commits):
        store.commit(batch_of(store, start, start + 1))
    return store


def test_keys_are_application_ids_and_back() -> None:
    for key in (RangeKey("aB-_9", 3), RangeKey("orders.v1", 0, 2)):
        assert key_of(key_text(key)) == key
    assert key_of("c0ffee-1234") is None
    assert key_of("penstock/x") is None


def test_offsets_are_found_after_the_log_was_cleaned(tmp_path: Path) -> None:
    store = filled(tmp_path, 25)
    log = tmp_path / "_delta_log"
    assert (log / "_last_checkpoint").exists()
    checkpoint = json.loads((log / "_last_checkpoint").read_text())["version"]
    for version in range(checkpoint):
        (log / f"{version:020d}.json").unlink()
    fresh = opened(tmp_path)
    fresh.refresh()
    assert fresh.committed() == {RangeKey("id", 0): 25}
    assert fresh.last_batch("q") == 24
    assert [each.version for each in fresh.commits()] == list(range(checkpoint, 26))
    assert store.committed([RangeKey("id", 0), RangeKey("id", 1)]) == {RangeKey("id", 0): 25}


def test_a_handle_that_is_behind_cannot_commit_the_same_offsets(tmp_path: Path) -> None:
    ahead = filled(tmp_path, 1)
    behind = batch_of(ahead, 1, 3, query="other")
    stale = DeltaTable(str(tmp_path))
    ahead.commit(batch_of(ahead, 1, 2))
    ahead._handle.table = stale
    ahead._seen = stale.version()
    with pytest.raises(Conflicted):
        ahead.commit(behind)
    assert numbers(tmp_path) == [0, 1]


def test_a_table_that_was_deleted_and_made_anew_is_seen_as_such(tmp_path: Path) -> None:
    store = filled(tmp_path / "t", 3)
    shutil.rmtree(tmp_path / "t")
    assert not store.exists()
    with pytest.raises(Missing, match="no Delta table"):
        store.refresh()
    again = made(tmp_path / "t")
    assert (again.version(), again.committed()) == (0, {})
    store.refresh()
    store.commit(batch_of(store, 0, 2))
    assert numbers(tmp_path / "t") == [0, 1]


def test_two_compactions_at_once_keep_every_row_once(tmp_path: Path) -> None:
    """deltalake's own let both land."""
    store = filled(tmp_path, 6)
    real = store.transact

    def beside(*given: object, **named: object) -> None:
        store.transact = real  # type: ignore[method-assign]
        assert opened(tmp_path).compact(1 << 20).files_removed == 6
        store.refresh()
        store._handle.table = DeltaTable(str(tmp_path), version=store.version() - 1)
        store._seen = store.version()
        real(*given, **named)  # type: ignore[arg-type]

    store.transact = beside  # type: ignore[method-assign, assignment]
    with pytest.raises(Conflicted):
        store.compact(1 << 20)
    assert numbers(tmp_path) == list(range(6))


def test_compaction_beside_an_append_lands_after_it(tmp_path: Path) -> None:
    store = filled(tmp_path, 6)
    real = store.transact
    tries: list[int] = []

    def beside(*given: object, **named: object) -> None:
        if not tries:
            other = opened(tmp_path)
            other.refresh()
            other.commit(batch_of(other, 6, 8))
            store._seen = store.version()
            store._handle.table = DeltaTable(str(tmp_path), version=store.version() - 1)
            store._seen = store.version()
        tries.append(1)
        real(*given, **named)  # type: ignore[arg-type]

    store.transact = beside  # type: ignore[method-assign, assignment]
    found = store.compact(1 << 20)
    assert (found.files_removed, found.files_added, len(tries)) == (6, 1, 2)
    assert numbers(tmp_path) == list(range(8))
    assert store.committed() == {RangeKey("id", 0): 8}


def test_an_overwrite_beside_a_compaction_replaces_all_the_same(tmp_path: Path) -> None:
    """deltalake's own leaves the compacted rows in the table."""
    store = filled(tmp_path, 6)
    replacing = batch_of(store, 6, 7, overwrite=True)
    stale = DeltaTable(str(tmp_path))
    opened(tmp_path).compact(1 << 20)
    store._handle.table, store._seen = stale, stale.version()
    with pytest.raises(Conflicted):
        store.commit(replacing)
    assert land(store, LakeOptions(path=str(tmp_path)), Wanted(SCHEMA, ()), replacing) is not None
    assert numbers(tmp_path) == [6]


def test_compaction_keeps_partitions_and_columns_that_old_files_lack(tmp_path: Path) -> None:
    schema = pa.schema([("n", pa.int64()), ("day", pa.string())])
    store = made(tmp_path, schema, ["day"])
    wide = pa.schema([*schema, ("more", pa.string())])
    for start in range(3):
        rows: dict[str, list[object]] = {"n": [start, start + 10], "day": ["a/b", None]}
        store.commit(BatchCommit("q", start, files=written(store, rows, schema), rows=2))
    store.evolve(wide)
    rows = {"n": [99], "day": ["a/b"], "more": ["x"]}
    store.commit(BatchCommit("q", 9, files=written(store, rows, wide), rows=1))
    assert store.compact(1 << 20).files_added == 2
    assert {tuple(each.partition.items()): each.rows for each in store.files()} == {
        (("day", "a/b"),): 4,
        (("day", None),): 3,
    }
    assert numbers(tmp_path) == [0, 1, 2, 10, 11, 12, 99]
    assert numbers(tmp_path, "more") == ["x", None, None, None, None, None, None]
    assert store.compact(1 << 20).files_removed == 0


def test_files_become_one_by_partition_and_no_larger_than_the_target() -> None:
    def file(name: str, size: int, day: str) -> TableFile:
        return TableFile(name, size, 1, {"day": day})

    files = [file("a", 40, "x"), file("b", 40, "y"), file("c", 80, "x"), file("d", 40, "x"), file("e", 30, "x")]
    assert [[each.path for each in group] for group in plan_compaction(files, 100, whole=True)] == [["a", "d"]]


def test_a_clean_up_finds_files_of_odd_partitions(tmp_path: Path) -> None:
    schema = pa.schema([("n", pa.int64()), ("day", pa.string())])
    store = made(tmp_path, schema, ["day"])
    for start in range(2):
        rows: dict[str, list[object]] = {"n": [start], "day": ["a b:%/é"]}
        store.commit(BatchCommit("q", start, files=written(store, rows, schema), rows=1))
    store.compact(1 << 20)
    assert store.vacuum(FUTURE) == 2
    assert len(list(tmp_path.rglob("*.parquet"))) == 1
    assert numbers(tmp_path) == [0, 1]


def test_a_clean_up_takes_what_nobody_names_and_leaves_the_ledger(tmp_path: Path) -> None:
    store = filled(tmp_path, 4)
    ledger = Ledger(store.location)
    ledger.backfill(store.commits())
    written(store, {"n": [77]})
    store.compact(1 << 20)
    assert len(store.orphans(dt.datetime.now(dt.UTC) - dt.timedelta(days=7))) == 0
    assert len(store.orphans(FUTURE)) == 5
    assert store.expire(FUTURE).files_removed == 4
    assert store.vacuum(FUTURE) == 1
    assert numbers(tmp_path) == [0, 1, 2, 3]
    assert len(list(Ledger(store.location).entries())) == 5
    assert store.committed() == {RangeKey("id", 0): 4}


def test_a_log_is_cut_at_a_checkpoint_that_is_old_enough() -> None:
    now = dt.datetime(2026, 1, 10, 12, tzinfo=dt.UTC)

    def made(version: int) -> dt.datetime:
        return now - dt.timedelta(minutes=10 * (400 - version))

    files = [LogFile(f"{version:020d}.json", made(version)) for version in range(401)]
    files += [LogFile(f"{version:020d}.checkpoint.parquet", made(version)) for version in range(0, 401, 2)]
    files += [LogFile("_last_checkpoint", now), LogFile("00000000000000000003.crc", now)]
    going = plan_thinning(files, newest=400, written_down=400, now=now)
    commits = [name for name in going if name.endswith(".json")]
    assert commits == [f"{version:020d}.json" for version in range(300)]
    kept = sorted({int(file.name[:20]) for file in files if file.is_checkpoint and file.name not in going})
    assert kept[-51:] == list(range(300, 401, 2))
    assert len(kept) == 51 + 50
    assert "00000000000000000003.crc" in going
    assert plan_thinning(files, newest=400, written_down=100, now=now)[-1] < f"{100:020d}"
    assert plan_thinning(files, newest=99, written_down=99, now=now) == []
    young = [LogFile(file.name, now) for file in files]
    assert plan_thinning(young, newest=400, written_down=400, now=now) == []
    assert len([name for name in plan_thinning(young, newest=800, written_down=800, now=now) if "json" in name]) == 300


def test_a_short_log_knows_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinning, "KEEP_NEWEST", 5)
    store = filled(tmp_path, 45)
    later = dt.datetime.now(dt.UTC) + dt.timedelta(hours=2)
    assert store.thin(later).snapshots_removed == 0, "nothing goes that the ledger lacks"
    write_down(store, None)
    assert store.thin(later).snapshots_removed == 39
    for each in (store, opened(tmp_path)):
        each.refresh()
        assert each.committed() == {RangeKey("id", 0): 45}
        assert [commit.version for commit in each.commits()] == list(range(39, 46))
    store.commit(batch_of(store, 45, 46))
    write_down(store, None)
    assert numbers(tmp_path) == list(range(46))
    assert [each.version for each in Ledger(store.location).entries()] == list(range(47))


def test_a_full_disk_at_the_commit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = made(tmp_path)
    batch = batch_of(store, 0, 1)

    def full(*given: object, **named: object) -> None:
        raise OSError("Unable to copy data to file: No space left on device (os error 28)")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", full)
    with pytest.raises(DiskFull, match=r"_delta_log/ .*MiB are left there. Nothing was committed: make room"):
        store.commit(batch)


def test_a_reader_passes_over_files_by_their_bounds(tmp_path: Path) -> None:
    store = filled(tmp_path, 3)
    actions = pa.table(store.table.get_add_actions(flatten=True)).to_pydict()
    assert sorted(actions["min.n"]) == sorted(actions["max.n"]) == [0, 1, 2]
    assert actions["null_count.n"] == [0, 0, 0]


def test_a_path_that_the_library_would_unescape_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="unescapes"):
        opened(tmp_path / "a%41b")
    assert numbers_after_commit(tmp_path / "a b+ü") == [0]


def numbers_after_commit(path: Path) -> list[object]:
    store = made(path)
    store.commit(batch_of(store, 0, 1))
    [file] = store.files()
    return list(pq.read_table(file.path).column("n").to_pylist())


def _race(path: str, seed: int, gate: object) -> None:
    """A driver: the same batches as its twin's, one after the other, and upkeep between them."""
    options = LakeOptions(path=path)
    store = opened(path)
    gate.wait()  # type: ignore[attr-defined]
    for start in range(0, 24, 2):
        store.create(SCHEMA, ())
        store.refresh()
        batch = batch_of(store, start, start + 2, query="twin")
        write_down(store, land(store, options, Wanted(SCHEMA, ()), batch))
        if start % 6 == seed:
            try:
                store.compact(1 << 20)
            except Conflicted:
                pass
            except CommitRefused:
                os._exit(3)


def test_two_drivers_of_one_query_racing_in_two_processes_commit_every_batch_once(tmp_path: Path) -> None:
    path = tmp_path / "table"
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(2)
    drivers = [context.Process(target=_race, args=(str(path), seed, gate)) for seed in (2, 4)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join(within(90))
    assert [driver.exitcode for driver in drivers] == [0, 0]
    assert numbers(path) == list(range(24))
    store = opened(path)
    store.refresh()
    ranges = [each.ranges[0] for each in store.commits() if each.kind == "append"]
    assert [(each.start, each.end) for each in ranges] == [(start, start + 2) for start in range(0, 24, 2)]
    write_down(store, None)
    assert [each.version for each in Ledger(str(path)).entries()] == list(range(store.version() + 1))
