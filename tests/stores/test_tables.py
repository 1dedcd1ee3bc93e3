"""Tables of both formats in an object store: what holds on a disk holds there, with keys that nobody else is shown."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from penstock.cli.lake import lake as lake_commands
from penstock.model.ids import TopicPartition
from penstock.spark.errors import CommitRefused
from penstock.spark.lake import landing
from penstock.spark.lake.audit import audit
from penstock.spark.lake.beside import begin, wait_until_done
from penstock.spark.lake.delta.store import DeltaStore
from penstock.spark.lake.iceberg.catalogs import CatalogSilent
from penstock.spark.lake.iceberg.store import IcebergStore
from penstock.spark.lake.landing import Wanted, land
from penstock.spark.lake.ledger import Ledger
from penstock.spark.lake.offset_log import ranges_of
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.parquet_rows import rows_of
from penstock.spark.lake.ranges import RangeKey
from penstock.spark.lake.store import BatchCommit, Commit, TableStore
from penstock.spark.lake.tiers import FAN_IN
from penstock.spark.lake.upkeep import Due, tidy
from penstock.spark.lake.warehouse import Warehouse
from penstock.spark.source.tables import standing
from penstock.spark.stores.storage import Storage
from penstock.spark.values.letter_table import LetterTable
from penstock.spark.values.letters import DeadLetter, Reader
from tests.object_store import SECRET, ObjectStore
from tests.patience import within
from tests.unit.spark.lake.queries import NUMBERS, TOPIC_ID, Query
from tests.unit.spark.lake.rest_catalog import rest_catalog

FUTURE = dt.timedelta(days=1)
FORMATS = ("delta", "iceberg")
READER = Reader("q", 1)
STORES = {"delta": DeltaStore, "iceberg": IcebergStore}

Make = Callable[..., Query]


@pytest.fixture(params=FORMATS)
def table_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def lake(store_server: ObjectStore, tmp_path: Path, table_format: str) -> dict[str, str]:
    """Options of a table. The catalog of Iceberg's is a file beside, as with whoever has one driver."""
    catalog = {"catalog": f"sqlite:///{tmp_path}/catalog.db"} if table_format == "iceberg" else {}
    return {"table.format": table_format, **catalog, **store_server.options()}


@pytest.fixture
def query(bucket: str, tmp_path: Path, lake: dict[str, str]) -> Make:
    def make(table: str = "orders", schema: pa.Schema = NUMBERS, **options: str) -> Query:
        return Query(tmp_path, f"s3://{bucket}/{table}", schema=schema, lake={**lake, **options})

    return make


def numbers(store: TableStore) -> list[int]:
    store.refresh()
    return sorted(
        number
        for file in store.files()
        for batch in rows_of(file.path, NUMBERS, file.partition, store.storage)
        for number in batch.column("n").to_pylist()
    )


def batches(query: Query, *ends: int) -> None:
    """Batches of one number a record, up to these ends."""
    start = 0
    for batch_id, end in enumerate(ends):
        query.reads(batch_id, end, starts=[start] if batch_id == 0 else None)
        query.run(batch_id, range(start, end))
        start = end


def test_batches_land_once_whoever_plays_them(query: Make) -> None:
    first = query(rows="record")
    batches(first, 3, 5, 9)
    first.run(2, range(5, 9))
    lost = query(rows="record")
    lost.reads(0, 5, starts=[0])
    with pytest.raises(CommitRefused, match="another query has brought"):
        lost.run(0, range(5))
    lost.reads(0, 11, starts=[7])
    with pytest.raises(CommitRefused, match="does not begin where the table"):
        lost.run(0, range(7, 11))
    store = first.store
    assert numbers(store) == list(range(9))
    assert store.committed() == {RangeKey(TOPIC_ID, 0, 0): 9}
    assert [each.batch_id for each in Ledger(store.location, store.storage).entries() if each.kind == "append"] == [
        0,
        1,
        2,
    ]
    found = audit(store)
    assert (found.clean, found.rows, found.offsets) == (True, 9, 9), str(found)


def test_a_commit_whose_answer_was_lost_is_recognised(
    query: Make, table_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = query()
    it.reads(0, 3, starts=[0])
    kind = STORES[table_format]
    real = kind.commit

    def lost(store: Any, batch: BatchCommit) -> Commit:
        real(store, batch)
        raise ConnectionError("the answer did not come")

    monkeypatch.setattr(kind, "commit", lost)
    with pytest.raises(ConnectionError):
        it.run(0, range(3))
    monkeypatch.undo()
    it.run(0, range(3))
    assert numbers(it.store) == [0, 1, 2]


def test_a_driver_that_died_before_the_ledger_leaves_a_hole_that_is_filled(
    query: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = query()
    batches(it, 2)
    monkeypatch.setattr(landing, "write_down", lambda *_: None)
    monkeypatch.setattr("penstock.spark.lake.sink.write_down", lambda *_: None)
    it.reads(1, 4)
    it.run(1, range(2, 4))
    monkeypatch.undo()
    it.reads(2, 5)
    it.run(2, [4])
    store = it.store
    told = [each.batch_id for each in Ledger(store.location, store.storage).entries() if each.kind == "append"]
    assert told == [0, 1, 2]


def test_of_many_writers_of_the_same_offsets_one_lands(query: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    # It says that whoever renames may overwrite: ours may not, whatever a host's environment has.
    monkeypatch.setenv("AWS_S3_ALLOW_UNSAFE_RENAME", "true")
    first = query()
    batches(first, 2)
    first.reads(1, 5)
    span = ranges_of(str(first.checkpoint), 1).ranges

    def write(number: int) -> str:
        store = open_store(first.options)
        batch = BatchCommit(f"query-{number}", 1, span, rows=0)
        try:
            return "landed" if land(store, first.options, Wanted(NUMBERS, ()), batch) is not None else "there"
        except CommitRefused:
            return "refused"

    with ThreadPoolExecutor(4) as pool:
        found = sorted(pool.map(write, range(4)))
    assert found == ["landed", "refused", "refused", "refused"]
    store = first.store
    assert store.committed() == {RangeKey(TOPIC_ID, 0, 0): 5}
    assert [len(each.ranges) for each in store.commits() if each.kind == "append"] == [1, 1]
    assert audit(store).clean


def test_upkeep_leaves_the_rows_and_takes_what_nobody_names(
    query: Make, store_server: ObjectStore, bucket: str
) -> None:
    it = query()
    batches(it, *range(1, 7))
    lost = it.written({"n": [99]}).written.files
    store = it.store
    before = len(store.files())
    now = dt.datetime.now(dt.UTC)
    done = tidy(store, target_bytes=1 << 20, expire_before=now + FUTURE, sweep_before=now + FUTURE)
    assert (done.compaction.files_removed, done.compaction.files_added) == (before, 1)
    assert done.orphans_removed >= len(lost) == 1
    assert numbers(store) == list(range(6))
    assert audit(store).clean
    left = [name for name in store_server.objects(f"{bucket}/orders") if name.endswith(".parquet")]
    assert len([name for name in left if "checkpoint" not in name]) == 1
    it.reads(6, 8)
    it.run(6, [6, 7])
    assert numbers(it.store) == list(range(8))


def test_upkeep_in_a_process_of_its_own_reaches_the_store(query: Make) -> None:
    it = query()
    batches(it, *range(1, FAN_IN + 1))
    assert begin(it.options, asdict(Due(compact=True))) is True
    assert wait_until_done(it.options, within_s=within(60))
    assert len(it.store.files()) == 1
    assert numbers(it.store) == list(range(FAN_IN))


def test_rows_that_do_not_fit_go_to_a_table_in_the_store(query: Make, bucket: str, store_server: ObjectStore) -> None:
    batches(query(), 2)
    bad = query(schema=pa.schema([("n", pa.string())]), deadLetters=f"table:s3://{bucket}/dead")
    bad.reads(0, 5, starts=[2])
    bad.run(0, ["2", "three", "4"])
    assert bad.store.committed() == {RangeKey(TOPIC_ID, 0, 0): 5}
    assert numbers(bad.store) == [0, 1]
    dead = Warehouse(f"s3://{bucket}", storage=store_server.settings).find("dead").open()
    assert sum(file.rows for file in dead.files()) == 3


def test_nobody_is_shown_the_key(
    query: Make, bucket: str, store_server: ObjectStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    it = query(feed='{"topics": ["orders"]}')
    with caplog.at_level(logging.DEBUG):
        batches(it, 2)
        said = str(audit(it.store))
    written = [*store_server.objects(bucket).values(), *(each.read_bytes() for each in tmp_path.rglob("*.db"))]
    assert any(b"penstock.feed" in each for each in written)
    assert not any(SECRET.encode() in each for each in written)
    assert SECRET not in caplog.text + said + repr(it.options) + repr(it.writer().plan)


def test_a_store_that_is_not_there_is_named() -> None:
    options = LakeOptions.of(
        {"path": "s3://lake/t", "storage.endpoint": "http://127.0.0.1:9", "storage.anonymous": "true"}
    )
    with pytest.raises(OSError, match="connect"):
        DeltaStore(options).exists()


def test_a_catalog_that_asks_for_a_token_is_given_it(
    bucket: str, store_server: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CATALOG_TOKEN", "let-me-in")
    files = Storage.of(store_server.settings).for_iceberg()
    with rest_catalog(tmp_path, files, token="let-me-in") as uri:
        lake = {"table.format": "iceberg", "catalog": uri, "table": "shop.orders", **store_server.options()}
        named = {"catalog.token": "env:CATALOG_TOKEN"}
        with pytest.raises(CatalogSilent, match="who are you"):
            Query(tmp_path, f"s3://{bucket}/orders", lake=lake).writer()
        it = Query(tmp_path, f"s3://{bucket}/orders", lake={**lake, **named})
        batches(it, 2, 3)
        assert numbers(it.store) == [0, 1, 2]
        found = Warehouse(
            f"s3://{bucket}", uri, storage=store_server.settings, catalog_settings={"token": "env:CATALOG_TOKEN"}
        ).tables()
        assert [(each.name, each.open().version()) for each in found] == [("shop.orders", 2)]


def test_reading_begins_where_a_table_in_the_store_stands(query: Make, bucket: str) -> None:
    it = query()
    batches(it, 4)
    at = TopicPartition("orders", 0)
    named = f"{it.options.catalog}#default.orders" if it.options.catalog else f"s3://{bucket}/orders"
    assert standing(named, {"orders": TOPIC_ID}, [at], it.options.reached) == {at: 4}


def test_dead_letters_are_in_the_store_once(bucket: str, store_server: ObjectStore) -> None:
    storage = Storage.of(store_server.settings)
    letters = [DeadLetter("orders", 0, offset, None, None, b"?", (), "no JSON") for offset in range(3)]
    when = dt.datetime.now(dt.UTC)

    def write(_: int) -> int:
        return LetterTable(f"s3://{bucket}/dead", storage).append(letters, READER, when)

    with ThreadPoolExecutor(3) as pool:
        assert sum(pool.map(write, range(3))) == 3
    assert (
        LetterTable(f"s3://{bucket}/dead", storage).append([*letters, replace(letters[0], offset=9)], READER, when) == 1
    )


def test_commands_reach_a_warehouse_in_the_store(query: Make, bucket: str, store_server: ObjectStore) -> None:
    it = query(rows="record")
    batches(it, 2, 4)
    given = [f"--storage={name}={value}" for name, value in store_server.settings.items()]
    given += ["--warehouse", f"s3://{bucket}"]
    if it.options.catalog:
        given += ["--catalog", it.options.catalog]

    def said(*words: str) -> str:
        done = CliRunner().invoke(lake_commands, [*words, *given])
        assert done.exit_code == 0, done.output
        return done.output

    assert "orders" in said("tables")
    assert said("query", "select sum(n) as total from orders", "--format", "csv").split() == ["total", "6"]
    assert "clean" in said("audit", "orders")
    assert "files_removed: 2" in said("compact", "orders", "--format", "yaml")
    assert "penstock" not in said("snapshots", "orders", "--ledger")
