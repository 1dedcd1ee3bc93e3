"""Iceberg tables: rows and offsets land together or not at all, whoever else writes."""

from __future__ import annotations

import datetime as dt
import multiprocessing
import re
import sys
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.spark.errors import BadOption, Missing
from penstock.spark.lake.iceberg.catalogs import CatalogSilent
from penstock.spark.lake.iceberg.store import IcebergStore
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.ranges import RangeKey
from penstock.spark.lake.store import BatchCommit, CannotEvolve, Conflicted
from tests.patience import within
from tests.unit.spark.lake.tables import SCHEMA, TOPIC_ID, append, made, numbers, opened, rows, spans, written

KEY = RangeKey(TOPIC_ID, 0)
FUTURE = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)


def test_rows_and_offsets_land_together(tmp_path: Path) -> None:
    store = made(tmp_path / "clicks")
    assert (store.version(), store.committed(), store.files()) == (0, {}, [])
    commit = append(store, 0, 10, batch=0)
    assert (commit.version, commit.kind, commit.rows, commit.files) == (1, "append", 10, 1)
    fresh = opened(tmp_path / "clicks")
    assert fresh.committed() == {KEY: 10}
    assert fresh.committed([RangeKey("other", 0)]) == {}
    assert (fresh.last_batch("q"), fresh.last_batch("another")) == (0, None)
    assert numbers(fresh) == list(range(10))
    assert list(fresh.commits()) == [commit]
    assert list(fresh.commits(after=1)) == []


@pytest.mark.parametrize("partition_by", [(), ("country",)])
def test_a_time_that_no_calendar_has_does_not_keep_its_batch_out(tmp_path: Path, partition_by: tuple[str, ...]) -> None:
    """A record may have any 64 bits for its time, and whoever sent one would stop the pipeline for good."""
    store = made(tmp_path / "clicks", partition_by=partition_by)
    far = pa.array([0, (1 << 63) - 1, -(1 << 63) + 1], pa.int64()).cast(SCHEMA.field("at").type)
    table = rows(0, 3).set_column(2, SCHEMA.field("at"), far)
    partition = {"country": "is"} if partition_by else None
    append(store, 0, 3, batch=0, files=[written(store, table, partition)])
    append(store, 3, 6, batch=1, files=[written(store, rows(3, 6), partition)])
    assert numbers(opened(tmp_path / "clicks")) == list(range(6))


def test_a_topic_without_an_id_and_a_second_source_have_their_own_offsets(tmp_path: Path) -> None:
    from penstock.spark.lake.ranges import TableRange

    store = made(tmp_path / "clicks")
    ranges = (TableRange("my.clicks", "", 3, 5, 7), spans(0, 4, ordinal=1))
    store.commit(BatchCommit("q", 0, ranges))
    assert store.committed() == {RangeKey("my.clicks", 3): 7, RangeKey(TOPIC_ID, 0, 1): 4}


def test_a_batch_without_rows_moves_the_offsets_and_is_seen_by_others(tmp_path: Path) -> None:
    store = made(tmp_path / "clicks")
    second = opened(tmp_path / "clicks")
    second.refresh()
    append(store, 0, 5, batch=0, files=())
    with pytest.raises(Conflicted):
        append(second, 0, 5, batch=0, files=())
    second.refresh()
    assert second.committed() == {KEY: 5}


def test_who_did_not_look_again_is_refused(tmp_path: Path) -> None:
    first = made(tmp_path / "clicks")
    second = opened(tmp_path / "clicks")
    second.refresh()
    append(first, 0, 10, batch=0)
    with pytest.raises(Conflicted):
        append(second, 0, 10, batch=0)
    second.refresh()
    assert second.committed() == {KEY: 10}
    append(second, 10, 20, batch=1)
    assert numbers(second) == list(range(20))


def _race(path: str, together: Barrier, landed: Synchronized[int]) -> None:
    """One of two drivers: makes the catalog and the table, then commits the same ranges at the same moment."""
    together.wait(60)
    store = made(Path(path))
    file = written(store, rows(0, 10))
    store.refresh()
    together.wait(60)
    try:
        append(store, 0, 10, batch=0, query="q", files=[file])
    except Conflicted:
        return
    with landed.get_lock():
        landed.value += 1


def test_of_two_drivers_that_race_from_the_making_of_the_catalog_exactly_one_lands(tmp_path: Path) -> None:
    path = tmp_path / "lake" / "clicks"
    context = multiprocessing.get_context("spawn")
    landed, together = context.Value("i", 0), context.Barrier(2)
    drivers = [context.Process(target=_race, args=(str(path), together, landed)) for _ in range(2)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join(within(60))
        assert driver.exitcode == 0
    assert landed.value == 1
    assert numbers(opened(path)) == list(range(10))


def test_a_new_column_is_null_in_old_rows_and_an_int_becomes_a_long(tmp_path: Path) -> None:
    narrow = pa.schema([("n", pa.int32()), ("x", pa.float32())])
    store = made(tmp_path / "clicks", schema=narrow)
    old = pa.table({"n": [1, 2], "x": [0.5, 1.5]}, schema=narrow)
    append(store, 0, 2, batch=0, files=[written(store, old)])
    assert store.can_widen(pa.int32(), pa.int64())
    assert not store.can_widen(pa.int64(), pa.int32())
    wide = pa.schema([("n", pa.int64()), ("x", pa.float64()), ("more", pa.struct([("a", pa.string())]))])
    store.evolve(wide)
    assert store.schema() == wide
    new = pa.table({"n": [1 << 40], "x": [2.5], "more": [{"a": "b"}]}, schema=wide)
    append(store, 2, 3, batch=1, files=[written(store, new)])
    read = store.table.scan().to_arrow().to_pylist()  # type: ignore[attr-defined]
    assert sorted(read, key=lambda row: row["n"]) == [
        {"n": 1, "x": 0.5, "more": None},
        {"n": 2, "x": 1.5, "more": None},
        {"n": 1 << 40, "x": 2.5, "more": {"a": "b"}},
    ]
    assert sorted(numbers(store)) == [1, 2, 1 << 40]
    store.evolve(narrow)
    assert store.schema() == wide
    with pytest.raises(CannotEvolve, match="column n is int64 and cannot become string"):
        store.evolve(pa.schema([("n", pa.string())]))


def test_files_know_their_partition_even_where_it_is_null_or_long(tmp_path: Path) -> None:
    store = made(tmp_path / "clicks", partition_by=["country", "day(at)"])
    assert store.partition_by() == ["country", "day(at)"]
    long = "a country with a long name"
    files = [written(store, rows(0, 2, country=long)), written(store, rows(2, 4, country=None, day=1))]
    append(store, 0, 4, batch=0, files=files)
    assert sorted((str(f.partition["country"]), f.partition["at_day"], f.rows) for f in store.files()) == [
        ("None", "2026-01-02", 2),
        (long, "2026-01-01", 2),
    ]
    assert store.table.scan("country is null").to_arrow().num_rows == 2  # type: ignore[attr-defined]
    with pytest.raises(Exception, match="partition"):
        append(store, 4, 8, batch=1, files=[written(store, pa.concat_tables([rows(4, 6), rows(6, 8, country=None)]))])


@pytest.mark.parametrize(
    ("fields", "said"),
    [(["nowhere"], "is not a column"), (["bucket(n)"], "one of day"), (["day(n)"], "no time to cut")],
)
def test_partition_fields_that_cannot_be_are_named(tmp_path: Path, fields: list[str], said: str) -> None:
    with pytest.raises(BadOption, match=said):
        made(tmp_path / "clicks", partition_by=fields)


@pytest.mark.parametrize("partition_by", [[], ["country"]])
def test_an_overwrite_leaves_only_its_own_rows(tmp_path: Path, partition_by: list[str]) -> None:
    store = made(tmp_path / "clicks", partition_by=partition_by)
    for batch, country in enumerate(("is", "de")):
        file = written(store, rows(batch, batch + 1, country=country))
        store.commit(BatchCommit("q", batch, (spans(batch, batch + 1),), (file,), rows=1, overwrite=True))
    assert numbers(store) == [1]
    assert store.committed() == {KEY: 2}
    assert [commit.kind for commit in store.commits()] == ["overwrite", "overwrite"]
    store.commit(BatchCommit("q", 2, (spans(2, 3),), (), overwrite=True))
    assert numbers(store) == []


def test_compaction_keeps_every_row_and_deletes_nothing(tmp_path: Path) -> None:
    store = made(tmp_path / "clicks", partition_by=["country"])
    for batch in range(6):
        files = [
            written(store, rows(batch * 4, batch * 4 + 2)),
            written(store, rows(batch * 4 + 2, batch * 4 + 4, country=None)),
        ]
        append(store, batch * 4, batch * 4 + 4, batch=batch, files=files)
    before = store.files()
    done = store.compact(1 << 20)
    assert (done.files_removed, done.files_added) == (12, 2)
    assert sorted(numbers(store)) == list(range(24))
    assert all(Path(file.path).exists() for file in before)
    assert sorted(file.rows for file in store.files()) == [12, 12]
    assert store.table.scan("country is null").to_arrow().num_rows == 12  # type: ignore[attr-defined]
    summary = store.table.current_snapshot().summary  # type: ignore[attr-defined]
    assert (summary.operation.value, summary["total-records"], summary["total-data-files"]) == ("replace", "24", "2")
    assert [commit.kind for commit in store.commits()][-1] == "compact"
    assert store.compact(1 << 20).files_removed == 0
    assert sorted(numbers(opened(tmp_path / "clicks"))) == list(range(24))
    assert sum(file.rows for file in store.files(version=6)) == 24


def test_compaction_and_appends_do_not_lose_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.spark.lake.iceberg import compaction

    store = made(tmp_path / "clicks")
    for batch in range(4):
        append(store, batch * 5, batch * 5 + 5, batch=batch)
    rewritten = compaction._rewrite

    def meanwhile(*arguments: object) -> str:
        other = opened(tmp_path / "clicks")
        other.refresh()
        append(other, 20, 25, batch=4)
        return rewritten(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(compaction, "_rewrite", meanwhile)
    assert store.compact(1 << 20).files_removed == 4
    assert sorted(numbers(store)) == list(range(25))
    assert len(store.files()) == 2
    assert store.committed() == {KEY: 25}


def test_an_overwrite_during_a_compaction_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.spark.lake.iceberg import compaction

    store = made(tmp_path / "clicks")
    for batch in range(2):
        append(store, batch, batch + 1, batch=batch)
    rewritten = compaction._rewrite

    def meanwhile(*arguments: object) -> str:
        other = opened(tmp_path / "clicks")
        other.refresh()
        other.commit(BatchCommit("q", 2, (spans(2, 3),), (written(other, rows(2, 3)),), rows=1, overwrite=True))
        return rewritten(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(compaction, "_rewrite", meanwhile)
    with pytest.raises(Conflicted):
        store.compact(1 << 20)
    assert numbers(opened(tmp_path / "clicks")) == [2]


def test_expiry_deletes_what_only_old_versions_named(tmp_path: Path) -> None:
    store = made(tmp_path / "clicks")
    for batch in range(4):
        append(store, batch * 5, batch * 5 + 5, batch=batch)
    old = {file.path for file in store.files()}
    store.compact(1 << 20)
    done = store.expire(FUTURE)
    assert (done.snapshots_removed, done.files_removed) == (4, 4 + 4 + 4), "data, manifests and their lists"
    assert not any(Path(path).exists() for path in old)
    append(store, 20, 25, batch=4)
    store.expire(FUTURE)
    assert sorted(numbers(opened(tmp_path / "clicks"))) == list(range(25))
    assert store.committed() == {KEY: 25}
    assert store.table.scan().to_arrow().num_rows == 25  # type: ignore[attr-defined]
    with pytest.raises(Missing, match="version 2"):
        store.files(version=2)
    assert store.expire(FUTURE).snapshots_removed == 0
    assert [commit.version for commit in store.commits()] == [6]


def later(**time: float) -> dt.datetime:
    return dt.datetime.now(dt.UTC) + dt.timedelta(**time)


def test_thinning_forgets_steps_first_and_files_when_readers_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.spark.lake.iceberg.store.KEEP_NEWEST", 2)
    store = made(tmp_path / "clicks")
    for batch in range(6):
        append(store, batch, batch + 1, batch=batch)
    store.compact(1 << 20)
    for batch in range(6, 10):
        append(store, batch, batch + 1, batch=batch)
    small = {file.path for file in store.files(version=6)}
    assert isinstance(store, IcebergStore)
    assert store.thin(later()).snapshots_removed == 0, "the last minutes stay"
    for _ in range(2):
        store.thin(later(minutes=11))
        # The newest two, and the compaction with the state before it, which alone has the files that were compacted.
        assert [commit.version for commit in store.commits()] == [6, 7, 10, 11]
    assert all(Path(path).exists() for path in small)
    assert sum(file.rows for file in store.files(version=6)) == 6
    for left in ([7, 10, 11], [10, 11]):
        store.thin(later(hours=3))
        assert [commit.version for commit in store.commits()] == left
    assert not any(Path(path).exists() for path in small)
    assert sorted(numbers(opened(tmp_path / "clicks"))) == list(range(10))


def test_overwritten_states_stay_up_to_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.spark.lake.iceberg.store.KEEP_NEWEST", 2)
    monkeypatch.setattr("penstock.spark.lake.iceberg.store.SNAPSHOTS_MOST", 3)
    store = made(tmp_path / "clicks")
    for batch in range(6):
        file = written(store, rows(batch, batch + 1))
        store.commit(BatchCommit("q", batch, (spans(batch, batch + 1),), (file,), rows=1, overwrite=True))
    assert isinstance(store, IcebergStore)
    store.thin(later(hours=1))
    assert len(list(store.commits())) == 6
    store.thin(later(hours=3))
    assert [commit.version for commit in store.commits()] == [4, 5, 6]
    assert len(list(Path(store.layout().directory).iterdir())) == 3
    assert numbers(store) == [5]


def test_only_old_files_that_nobody_names_are_orphans(tmp_path: Path) -> None:
    import os

    store = made(tmp_path / "clicks")
    append(store, 0, 5, batch=0)
    loser, running = written(store, rows(0, 5)), written(store, rows(5, 10))
    directory = Path(store.layout().directory)
    ledger = tmp_path / "clicks" / "_penstock" / "ledger" / "1.json"
    ledger.parent.mkdir(parents=True)
    ledger.write_text("{}")
    for path in (directory / loser.path, ledger, *(Path(file.path) for file in store.files())):
        os.utime(path, (1, 1))
    hour_ago = dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)
    assert store.orphans(hour_ago) == [str(directory / loser.path)]
    assert store.vacuum(hour_ago) == 1
    assert (directory / running.path).exists()
    assert ledger.exists()
    assert numbers(store) == list(range(5))


def test_metadata_does_not_pile_up(tmp_path: Path) -> None:
    store = made(tmp_path / "clicks")
    for batch in range(30):
        append(store, batch, batch + 1, batch=batch, files=())
    assert len(list((tmp_path / "clicks" / "metadata").glob("*.metadata.json"))) <= 22


def test_a_table_is_found_by_catalog_and_name(tmp_path: Path) -> None:
    named = {"table.format": "iceberg", "catalog": f"sqlite:///{tmp_path}/some.db", "table": "web.clicks"}
    store = open_store(LakeOptions.of(named))
    assert not store.exists()
    store.create(SCHEMA, [])
    append(store, 0, 3, batch=0)
    assert store.location == str(tmp_path / "clicks")
    assert numbers(open_store(LakeOptions.of(named))) == [0, 1, 2]
    with pytest.raises(BadOption, match="is at"):
        open_store(LakeOptions.of({**named, "path": str(tmp_path / "elsewhere")})).refresh()
    with pytest.raises(BadOption, match=r"namespace\.name"):
        open_store(LakeOptions.of({**named, "table": "clicks"}))


def test_what_is_not_there_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(Missing, match="no Iceberg catalog"):
        opened(tmp_path / "clicks").refresh()
    made(tmp_path / "clicks")
    with pytest.raises(Missing, match=r"no Iceberg table default\.other"):
        opened(tmp_path / "other").refresh()
    far = LakeOptions.of({"table.format": "iceberg", "path": "s3://bucket/clicks"})
    with pytest.raises(BadOption, match="needs option catalog"):
        open_store(far)


def test_properties_are_set_beside_other_writers(tmp_path: Path) -> None:
    store, other = made(tmp_path / "clicks"), opened(tmp_path / "clicks")
    other.refresh()
    append(store, 0, 1, batch=0)
    other.set_properties({"penstock.feed": "{}"})
    store.refresh()
    assert store.properties()["penstock.feed"] == "{}"
    assert store.committed() == {KEY: 1}


def test_a_rest_catalog_refuses_the_second_writer_too(tmp_path: Path) -> None:
    from tests.unit.spark.lake.rest_catalog import rest_catalog

    with rest_catalog(tmp_path) as uri:
        options = LakeOptions.of(
            {"table.format": "iceberg", "catalog": uri, "table": "web.clicks", "path": str(tmp_path / "clicks")}
        )
        first, second = open_store(options), open_store(options)
        first.create(SCHEMA, ["day(at)"])
        second.create(SCHEMA, ["day(at)"])
        append(first, 0, 10, batch=0)
        with pytest.raises(Conflicted):
            append(second, 0, 10, batch=0)
        second.refresh()
        assert second.committed() == {KEY: 10}
        append(second, 10, 20, batch=1)
        assert second.compact(1 << 20).files_removed == 2
        assert second.expire(FUTURE).snapshots_removed == 2
        assert sorted(numbers(second)) == list(range(20))
        assert second.partition_by() == ["day(at)"]


def test_a_catalog_that_does_not_answer_is_one_sentence() -> None:
    options = LakeOptions.of({"table.format": "iceberg", "catalog": "http://127.0.0.1:9", "table": "web.clicks"})
    with pytest.raises(CatalogSilent, match="is it running there"):
        open_store(options).refresh()
    unknown = LakeOptions.of({"table.format": "iceberg", "catalog": "name=nowhere", "table": "web.clicks"})
    with pytest.raises(CatalogSilent, match="see pyiceberg's configuration"):
        open_store(unknown).refresh()


def test_without_pyiceberg_the_way_to_get_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg", None)
    with pytest.raises(Missing, match=re.escape("pip install 'penstock[spark,iceberg]'")):
        open_store(LakeOptions.of({"path": str(tmp_path / "t"), "table.format": "iceberg"}))
