"""A table and the end of its log, as one. Tables are made by hand here: what writes them has tests of its own."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from penstock.blocking import Admin
from penstock.model.ids import TopicPartition
from penstock.spark import table
from penstock.spark.dialogue import for_process
from penstock.spark.errors import BadOption, DataLost, Missing
from penstock.spark.feed import Feed, FeedStep
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.ranges import TableRange
from penstock.spark.lake.store import BatchCommit, TableStore, WrittenFile
from tests.patience import within
from tests.spark.starting import started

COLUMNS = pa.schema([("id", pa.int64()), ("region", pa.string())])
FORMATS = ("delta", "iceberg")


@pytest.fixture(scope="module", autouse=True)
def hang_up() -> Iterator[None]:
    yield
    for_process().close()


class Lake:
    """A table that is fed by hand: ids 0, 1, 2… of each partition, at the offsets of the same number."""

    def __init__(self, path: Path, bootstrap: str, topic: str, *, kind: str = "delta", **feed: object) -> None:
        with Admin(bootstrap_servers=bootstrap) as admin:
            self.topic_id = admin.describe_topic(topic).id
        self.path, self.topic, self.batches = path, topic, 0
        self.store: TableStore = open_store(LakeOptions.of({"path": str(path), "table.format": kind}))
        options = {
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": topic,
            "startingOffsets": "earliest",
            "value.format": "json",
            "value.schema": "id BIGINT, region STRING",
        }
        given = Feed.of_source({**options, **feed.pop("options", {})}, query=f"q-{topic}", **feed)  # type: ignore[arg-type,dict-item]
        partition_by = ["region"] if kind == "delta" else []
        self.store.create(COLUMNS, partition_by, {"penstock.feed": given.to_property()})

    def commit(self, ranges: dict[int, tuple[int, int]], ids: Sequence[int], region: str = "eu") -> None:
        """Rows of a batch that read `ranges` by partition."""
        layout = self.store.layout()
        in_file = pa.table({"id": ids, "region": [region] * len(ids)}, schema=COLUMNS)
        name = f"{uuid.uuid4()}.parquet"
        if not layout.keeps_partition_columns:
            in_file, name = in_file.drop_columns("region"), f"region={region}/{name}"
        target = Path(layout.directory) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(in_file, target)
        partition = {} if layout.keeps_partition_columns else {"region": region}
        file = WrittenFile(name, target.stat().st_size, len(ids), partition, json.dumps({"numRecords": len(ids)}))
        made = [TableRange(self.topic, self.topic_id, part, *each) for part, each in sorted(ranges.items())]
        self.store.refresh()
        self.store.commit(BatchCommit("query", self.batches, tuple(made), (file,), rows=len(ids)))
        self.batches += 1


def values(ids: Sequence[int], region: str = "us") -> list[bytes]:
    return [json.dumps({"id": each, "region": region}).encode() for each in ids]


def ids_of(rows: object) -> list[int]:
    return sorted(row.id for row in rows.collect())  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", FORMATS)
def test_every_record_is_there_once(
    kind: str, spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Callable[..., None]
) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, 2)
    produce(topic, values(range(10)), partition=0)
    produce(topic, values(range(100, 105)), partition=1)
    lake = Lake(scratch / "orders", bootstrap, topic, kind=kind)
    assert ids_of(table(spark, topic, path=str(lake.path))) == [*range(10), *range(100, 105)]

    lake.commit({0: (0, 6)}, range(6))
    both = table(spark, topic, path=str(lake.path))
    assert both.columns == ["id", "region"]
    assert ids_of(both) == [*range(10), *range(100, 105)]
    assert both.where("region = 'eu'").count() == 6

    lake.commit({0: (6, 10), 1: (0, 5)}, [*range(6, 10), *range(100, 105)])
    assert ids_of(table(spark, topic, path=str(lake.path))) == [*range(10), *range(100, 105)]
    # What was read before is still what it was.
    assert both.where("region = 'eu'").count() == 6

    produce(topic, [*values([10]), b"no json", *values([12])], partition=0)
    assert ids_of(table(spark, topic, path=str(lake.path))) == [*range(11), 12, *range(100, 105)]


def test_a_compaction_changes_nothing(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Callable[..., None]
) -> None:
    produce(topic, values(range(6)))
    lake = Lake(scratch / "orders", bootstrap, topic)
    lake.commit({0: (0, 2)}, range(2))
    lake.commit({0: (2, 4)}, range(2, 4))
    before = table(spark, topic, path=str(lake.path))
    lake.store.compact(1 << 20)
    assert ids_of(before) == list(range(6))
    assert ids_of(table(spark, topic, path=str(lake.path))) == list(range(6))


def test_a_table_that_is_written_meanwhile_is_cut_where_it_stands(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Callable[..., None]
) -> None:
    produce(topic, values(range(1_000)))
    lake = Lake(scratch / "orders", bootstrap, topic)
    # Another path to the same table, as another process would have: nothing known of it is shared.
    (scratch / "alias").symlink_to(lake.path)
    enough = threading.Event()

    def write() -> None:
        for at in range(0, 1_000, 5):
            if enough.wait(0.02):
                return
            lake.commit({0: (at, at + 5)}, range(at, at + 5))

    writer = threading.Thread(target=write)
    writer.start()
    seen = []
    for _ in range(3):
        rows = table(spark, topic, path=str(scratch / "alias")).collect()
        seen.append(sum(row.region == "eu" for row in rows))
        assert sorted(row.id for row in rows) == list(range(1_000))
    enough.set()
    writer.join()
    assert seen == sorted(seen)
    assert seen[-1] > seen[0]


def test_sessions_do_not_disturb_each_other(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Callable[..., None]
) -> None:
    produce(topic, values(range(3)))
    lake = Lake(scratch / "orders", bootstrap, topic)
    lake.commit({0: (0, 2)}, range(2))
    other = spark.newSession()
    for each in (spark, other, spark):
        assert ids_of(table(each, topic, path=str(lake.path))) == [0, 1, 2]
    other.createDataFrame([], "used INT")
    assert ids_of(table(spark, topic, path=str(lake.path))) == [0, 1, 2]


def test_steps_of_the_feed_are_repeated_and_columns_are_the_tables(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Callable[..., None]
) -> None:
    produce(topic, [b'{"number": 1}', b'{"number": 2}'])
    spark.range(1).createOrReplaceTempView("orders")
    steps = [
        FeedStep("named", "select number as id, 'extra' as note from orders"),
        FeedStep("raised", "with more as (select * from named) select id * 10 as id, note from more;"),
    ]
    lake = Lake(
        scratch / "orders",
        bootstrap,
        topic,
        options={"value.schema": "number INT"},
        view="orders",
        steps=steps,
    )
    lake.commit({0: (0, 1)}, [10])
    both = table(spark, topic, path=str(lake.path))
    assert sorted((row.id, row.region) for row in both.collect()) == [(10, "eu"), (20, None)]
    assert [field.simpleString() for field in both.schema.fields] == ["id:bigint", "region:string"]
    assert spark.table("orders").columns == ["id"]
    spark.catalog.dropTempView("orders")


def test_a_feed_that_began_at_the_latest_does_not_read_what_was_before(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Callable[..., None]
) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, 2)
        produce(topic, values([0, 1]), partition=0)
        produce(topic, values([100, 101]), partition=1)
        lake = Lake(scratch / "orders", bootstrap, topic, options={"startingOffsets": "latest"})
        with pytest.raises(Missing, match="nobody knows yet"):
            table(spark, topic, path=str(lake.path))
        # The query began here, and has had something of partition 0 alone.
        admin.alter_group_offsets(f"spark-q-{topic}", {TopicPartition(topic, 0): 2, TopicPartition(topic, 1): 2})
        produce(topic, values([2, 3]), partition=0)
        lake.commit({0: (2, 3)}, [2])
        produce(topic, values([102]), partition=1)
        admin.grow_topic(topic, 3)
        produce(topic, values([200]), partition=2)
    assert ids_of(table(spark, topic, path=str(lake.path))) == [2, 3, 102, 200]


def test_a_stream_into_a_table_is_read_on_from_the_log(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    scratch: Path,
    produce: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    produce(topic, [b"1", None, b"3"], key=b"k", headers=[("h", b"v")])
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "includeHeaders": "true",
    }
    stream = spark.readStream.format("penstock").options(**options).load()
    writer = (
        stream.writeStream.format("penstock-lake")
        .option("path", str(scratch / "raw"))
        .option("partition.by", "topic")
        .option("rows", "record")
        .option("feed", Feed.of_source(options).to_property())
        .option("checkpointLocation", str(scratch / "checkpoint"))
    )
    query = started(writer.trigger(availableNow=True))
    assert query.awaitTermination(within(60))
    produce(topic, [b"4", None], key=b"k", headers=[("h", b"v")])
    both = table(spark, topic, warehouse=str(scratch))
    assert both.columns == stream.columns
    rows = both.orderBy("offset").collect()
    assert [(row.offset, row.value and bytes(row.value)) for row in rows] == [
        (0, b"1"),
        (1, None),
        (2, b"3"),
        (3, b"4"),
        (4, None),
    ]
    assert {(bytes(row.key), row.topic, row.headers[0].key, row.timestampType) for row in rows} == {
        (b"k", topic, "h", 0)
    }
    both.explain()
    assert "FileScan parquet" in capsys.readouterr().out


def test_what_cannot_be_read_together_is_told(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Callable[..., None]
) -> None:
    produce(topic, values(range(4)))
    counted = Lake(scratch / "counted", bootstrap, topic, rows="any")
    with pytest.raises(BadOption, match="does not hold one row a record"):
        table(spark, topic, path=str(counted.path))
    python = Lake(scratch / "python", bootstrap, topic, view="orders", steps=[FeedStep("scored")])
    with pytest.raises(BadOption, match=r"'scored' .* is not SQL"):
        table(spark, topic, path=str(python.path))
    with pytest.raises(BadOption, match=f"is fed from {topic}, not from other"):
        table(spark, "other", path=str(python.path))
    with pytest.raises(Missing, match="there is no table"):
        table(spark, topic, path=str(scratch / "nowhere"))


def test_the_table_is_found_in_the_warehouse(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Callable[..., None]
) -> None:
    produce(topic, values(range(3)))
    with pytest.raises(Missing, match=f"no table in .* says that topic {topic} feeds it"):
        table(spark, topic, warehouse=str(scratch))
    Lake(scratch / "sums", bootstrap, topic, rows="any")
    Lake(scratch / "orders", bootstrap, topic, kind="iceberg").commit({0: (0, 2)}, range(2))
    assert ids_of(table(spark, topic, warehouse=str(scratch))) == [0, 1, 2]
    assert ids_of(table(spark, topic, table="orders", warehouse=str(scratch))) == [0, 1, 2]
    Lake(scratch / "copies", bootstrap, topic)
    with pytest.raises(BadOption, match=r"feeds 2 tables of .*: copies, orders"):
        table(spark, topic, warehouse=str(scratch))


def test_a_log_that_does_not_go_on_after_the_table_is_told(
    spark: SparkSession, bootstrap: str, topic: str, scratch: Path, produce: Callable[..., None]
) -> None:
    produce(topic, values(range(4)))
    lake = Lake(scratch / "orders", bootstrap, topic)
    lake.commit({0: (0, 1)}, [0])
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.trim_topic(topic, {0: 3})
        with pytest.raises(DataLost, match=r"begins at 3, but .* has it only up to 1: 2 offsets"):
            table(spark, topic, path=str(lake.path))
        admin.delete_topic(topic)
        admin.create_topic(topic, 1)
    produce(topic, values(range(9)))
    with pytest.raises(DataLost, match="was deleted and created anew"):
        table(spark, topic, path=str(lake.path))
