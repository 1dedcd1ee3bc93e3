"""Tables that follow changes, by pipelines on the shared session: envelopes, replays, other writers, the audit."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock.spark
from penstock.blocking import Admin, Producer
from penstock.spark.lake.audit import audit
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.parquet_rows import rows_of
from penstock.spark.lake.store import TableStore
from penstock.spark.pipeline import home
from penstock.spark.pipeline.flow import Flow
from penstock.spark.pipeline.reading import read_flow
from penstock.spark.pipeline.retrying import Patience
from penstock.spark.pipeline.running import Runner

FORMATS = ("delta", "iceberg")
PLAIN = 'format = "json"\nschema = "id BIGINT, name STRING, version BIGINT, gone BOOLEAN"'
PLACES = ("_seq", "_topic", "_partition", "_offset")

Change = tuple[object, object]
Write = Callable[..., Flow]


@pytest.fixture
def write(bootstrap: str, topic: str, scratch: Path) -> Write:
    """write(source, sink, format): a flow of one keyed table `t`; its topic has two partitions."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, 2)

    def make(source: str, sink: str, table_format: str, steps: str = "", reads: str = "changes") -> Flow:
        path = scratch / "shop.toml"
        path.write_text(
            f'name = "shop"\nbootstrap = "{bootstrap}"\n'
            f'[sources.changes]\ntopic = "{topic}"\nstart = "earliest"\n{source}\n{steps}\n'
            f'[sinks.t]\nfrom = "{reads}"\ntable = "t"\ntable_format = "{table_format}"\n'
            f'trigger = "available-now"\nbuckets = 3\n{sink}\n'
        )
        return read_flow(path)

    return make


def send(bootstrap: str, topic: str, changes: Iterable[Change]) -> None:
    """(key, value), as JSON; a key stays in its partition."""
    with Producer(bootstrap_servers=bootstrap) as producer:
        for key, value in changes:
            producer.send(
                topic,
                None if value is None else json.dumps(value).encode(),
                key=None if key is None else json.dumps(key).encode(),
            )
        producer.flush()


def run(flow: Flow, spark: SparkSession) -> Runner:
    runner = Runner(flow, spark, patience=Patience(tries=1))
    runner.run(threading.Event())
    return runner


def finished(flow: Flow, spark: SparkSession) -> None:
    runner = run(flow, spark)
    assert runner.state == home.FINISHED, runner.progress()


def store_of(flow: Flow) -> TableStore:
    sink = flow.sinks[0]
    store = open_store(LakeOptions.of({"path": flow.table_path(sink), "table.format": sink.table_format}))
    store.refresh()
    return store


def rows(flow: Flow, leave_out: Sequence[str] = PLACES) -> list[dict[str, Any]]:
    store = store_of(flow)
    found = [row for file in store.files() for batch in rows_of(file.path, store.schema()) for row in batch.to_pylist()]
    kept = [{name: value for name, value in row.items() if name not in leave_out} for row in found]
    return sorted(kept, key=lambda row: str(list(row.values())))


def plain(id: int, name: str | None, version: int = 0, gone: bool | None = None) -> Change:
    return id, {"id": id, "name": name, "version": version, "gone": gone}


def row(id: int, name: str | None, version: int = 0) -> dict[str, Any]:
    return {"id": id, "name": name, "version": version, "gone": None}


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_table_follows_its_topic_and_the_audit_proves_it(
    spark: SparkSession, bootstrap: str, topic: str, write: Write, table_format: str
) -> None:
    flow = write(PLAIN, 'keys = ["id"]\ndelete_when = "gone"\nignore_when = "id IS NULL"', table_format)
    send(bootstrap, topic, [plain(1, "a"), plain(2, "b"), plain(1, "c"), (None, {"name": "nobody"})])
    finished(flow, spark)
    assert rows(flow) == [row(1, "c"), row(2, "b")]
    send(bootstrap, topic, [plain(2, None, gone=True), plain(3, "d"), plain(9, None, gone=True)])
    finished(flow, spark)
    assert rows(flow) == [row(1, "c"), row(3, "d")]
    store = store_of(flow)
    last = [commit for commit in store.commits() if commit.kind == "merge"][-1]
    assert (last.merged.inserted, last.merged.deleted, last.merged.ignored, last.rows) == (1, 1, 1, 1)
    found = audit(store)
    assert found.clean, str(found)
    assert "inserted + updated + deleted + superseded + ignored + dead letters" in str(found)

    shutil.rmtree(flow.checkpoint(flow.sinks[0]))
    send(bootstrap, topic, [plain(4, "e")])
    finished(flow, spark)
    assert rows(flow) == [row(1, "c"), row(3, "d"), row(4, "e")]
    changes = [commit.merged.changes for commit in store_of(flow).commits() if commit.kind == "merge"]
    assert sum(changes) == 8, "the table knows its offsets"


@pytest.mark.parametrize("table_format", FORMATS)
def test_debeziums_changes_make_the_table_that_they_are_from(
    spark: SparkSession, bootstrap: str, topic: str, write: Write, table_format: str
) -> None:
    source = 'format = "json"\ncdc = "debezium"\nschema = "id BIGINT, name STRING, bio STRING"'
    flow = write(source, 'keys = ["id"]\nsequence_by = "source.lsn"', table_format)

    def event(op: str, lsn: int, before: object, after: object) -> dict[str, object]:
        return {"op": op, "before": before, "after": after, "source": {"lsn": lsn, "table": "t"}, "ts_ms": 1}

    def of(id: int, name: str, bio: str = "long") -> dict[str, object]:
        return {"id": id, "name": name, "bio": bio}

    unchanged = "__debezium_unavailable_value"
    send(
        bootstrap,
        topic,
        [
            ({"id": 1}, event("r", 10, None, of(1, "a"))),
            ({"id": 2}, {"schema": {}, "payload": event("c", 11, None, of(2, "b"))}),
            ({"id": 1}, event("u", 12, None, of(1, "c", unchanged))),
            ({"id": 2}, event("d", 13, {"id": 2}, None)),
            ({"id": 2}, None),
        ],
    )
    finished(flow, spark)
    assert rows(flow) == [of(1, "c")]
    # The key of a row changes: Debezium deletes the one and creates the other. What is late stays out.
    send(
        bootstrap,
        topic,
        [
            ({"id": 1}, event("d", 20, {"id": 1}, None)),
            ({"id": 7}, event("c", 20, None, of(7, "c", "other"))),
            ({"id": 2}, event("u", 12, None, of(2, "late"))),
            ({"id": 7}, event("u", 21, None, of(7, "d", unchanged))),
        ],
    )
    finished(flow, spark)
    assert rows(flow) == [of(7, "d", "other")]
    assert audit(store_of(flow)).clean, str(audit(store_of(flow)))


def test_a_null_value_deletes_the_row_that_its_key_names(
    spark: SparkSession, bootstrap: str, topic: str, write: Write
) -> None:
    source = 'format = "json"\nschema = "id BIGINT, part STRING, name STRING"\ncdc = "upsert"'
    flow = write(source, 'keys = ["id", "part"]', "delta")
    one, other = {"id": 1, "part": "x"}, {"id": 1, "part": "y"}
    send(bootstrap, topic, [(one, {**one, "name": "a"}), (other, {"name": "by its key alone"}), (one, None)])
    finished(flow, spark)
    assert rows(flow) == [{**other, "name": "by its key alone"}]
    assert audit(store_of(flow)).clean


def test_flat_changes_delete_by_a_word_or_by_a_null_value(
    spark: SparkSession, bootstrap: str, topic: str, write: Write
) -> None:
    flow = write(
        'format = "json"\nschema = "id STRING, name STRING"\ncdc = "debezium-flat"', 'keys = ["id"]', "iceberg"
    )
    send(
        bootstrap,
        topic,
        [
            ("007", {"id": "007", "name": "a", "__op": "c", "__deleted": "false"}),
            ("b", {"id": "b", "name": "b", "__op": "r"}),
            ("c", {"id": "c", "name": "c", "__op": "r"}),
            ("b", {"id": "b", "name": "b", "__op": "d", "__deleted": "true"}),
            ("007", None),
        ],
    )
    finished(flow, spark)
    assert rows(flow) == [{"id": "c", "name": "c"}]


def test_raw_records_are_rows_by_their_keys(spark: SparkSession, bootstrap: str, topic: str, write: Write) -> None:
    flow = write("", 'keys = ["key"]\nsequence_by = "_timestamp"', "delta")
    send(bootstrap, topic, [(1, "a"), (2, "b"), (1, None), (2, "c")])
    finished(flow, spark)
    assert [(each["key"], each["value"]) for each in rows(flow)] == [(b"2", b'"c"')]


def test_two_changes_of_one_record_are_refused_and_the_sink_says_why(
    spark: SparkSession, bootstrap: str, topic: str, write: Write
) -> None:
    steps = '[[steps]]\nname = "twice"\nsql = "SELECT * FROM changes LATERAL VIEW explode(array(1, 2)) AS n"'
    flow = write(PLAIN, 'keys = ["id"]', "delta", steps, "twice")
    send(bootstrap, topic, [plain(1, "a")])
    runner = run(flow, spark)
    assert runner.state == home.FAILED
    assert "gave two rows of the key {'id': 1}" in runner.progress().sinks[0].error


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_table_is_read_as_its_log_leaves_it(
    spark: SparkSession, bootstrap: str, topic: str, write: Write, table_format: str
) -> None:
    """What the union says now is what the table says after the next batch, to the last column."""
    flow = write(PLAIN, 'keys = ["id"]\ndelete_when = "gone"', table_format)
    send(bootstrap, topic, [plain(id, "a") for id in range(8)])
    finished(flow, spark)
    assert fresh(spark, flow) == rows(flow, leave_out=())
    send(bootstrap, topic, [plain(1, "b"), plain(2, None, gone=True), plain(1, "c"), plain(9, "new")])
    send(bootstrap, topic, [plain(4, None, gone=True), plain(4, "back"), plain(99, None, gone=True)])
    before = rows(flow, leave_out=())
    now = fresh(spark, flow)
    assert now != before
    finished(flow, spark)
    assert now == rows(flow, leave_out=())


def test_late_changes_deletes_and_values_that_were_left_out_are_read_as_they_will_be_merged(
    spark: SparkSession, bootstrap: str, topic: str, write: Write
) -> None:
    columns = "id BIGINT, name STRING, bio STRING, tags ARRAY<STRING>, marks ARRAY<BIGINT>"
    source = f'format = "json"\ncdc = "debezium"\nschema = "{columns}"'
    steps = '[[steps]]\nname = "some"\nsql = "SELECT *, upper(name) AS loud FROM changes WHERE coalesce(id, 0) < 90"'
    flow = write(source, 'keys = ["id"]\nsequence_by = "source.lsn"', "delta", steps, "some")
    unchanged = "__debezium_unavailable_value"

    def event(id: int, lsn: int, name: str, bio: str = "long", op: str = "u") -> Change:
        lists = ([unchanged], list(unchanged.encode())) if bio == unchanged else ([bio], [id])
        row = {"id": id, "name": name, "bio": bio, "tags": lists[0], "marks": lists[1]}
        return {"id": id}, {"op": op, "after": None if op == "d" else row, "before": row, "source": {"lsn": lsn}}

    send(bootstrap, topic, [event(id, 10, "a") for id in range(4)] + [event(7, 15, "", op="d"), event(95, 10, "a")])
    finished(flow, spark)
    send(
        bootstrap,
        topic,
        [
            event(0, 11, "b", unchanged),
            event(1, 9, "late"),
            event(2, 11, "c", "other"),
            event(2, 12, "d", unchanged),
            event(3, 11, "", op="d"),
            event(7, 14, "late after its delete"),
            event(8, 11, "new", unchanged),
        ],
    )
    now = fresh(spark, flow)
    finished(flow, spark)
    assert now == rows(flow, leave_out=())
    assert [(each["id"], each["loud"], each["bio"]) for each in now] == [
        (0, "B", "long"),
        (1, "A", "long"),
        (2, "D", "other"),
        (8, "NEW", unchanged),
    ]
    lists = [(each["tags"], each["marks"]) for each in now]
    assert lists == [(["long"], [0]), (["long"], [1]), (["other"], [2]), ([unchanged], list(unchanged.encode()))]


def fresh(spark: SparkSession, flow: Flow) -> list[dict[str, Any]]:
    """All of the table and its log, with the columns that say where a row is from."""
    found = penstock.spark.table(spark, flow.sources[0].topics[0], path=flow.table_path(flow.sinks[0]))
    return sorted(found.toArrow().to_pylist(), key=lambda row: str(list(row.values())))
