"""A file becomes a flow; each mistake in one is told with its place, and all of them at once."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from penstock.spark.pipeline.flow import Sink, SinkKind, Source, Step, Watermark
from penstock.spark.pipeline.mistakes import FlowBroken
from penstock.spark.pipeline.reading import read_flow
from tests.unit.spark.pipeline.files import WHOLE, changed, complaints, flow_of


def test_a_file_says_everything_once() -> None:
    flow = flow_of()
    assert flow.sources == (
        Source(
            name="orders",
            topics=("orders",),
            format="json",
            schema="id BIGINT, country STRING, amount DOUBLE, at TIMESTAMP",
            start="earliest",
            dead_letters="topic:orders.dead",
            watermark=Watermark("at", "10 minutes"),
            options={"maxOffsetsPerTrigger": "100000"},
            line=7,
        ),
    )
    assert flow.steps == (
        Step("paid", ("orders",), "SELECT * FROM orders WHERE amount > 0", line=21),
        Step("totals", ("paid",), "SELECT country, sum(amount) AS total\nFROM paid GROUP BY country\n", line=15),
    )
    assert flow.sinks == (
        Sink("lake", "paid", SinkKind.TABLE, "orders", "10 seconds", partition_by=("country",), line=24),
        Sink("raw", "orders", SinkKind.TABLE, "raw", "1 minute", line=28),
        Sink("totals", "totals", SinkKind.TOPIC, "totals", "continuous", mode="update", key="country", line=32),
    )
    assert flow.spark.settings == {"spark.sql.shuffle.partitions": "4", "spark.ui.enabled": "false"}


def test_relative_paths_begin_where_the_file_is() -> None:
    flow = flow_of()
    assert (flow.warehouse, flow.checkpoints) == ("/somewhere/lake", "/somewhere/lake/_checkpoints/orders")
    elsewhere = flow_of(changed(('warehouse = "lake"', 'warehouse = "s3://bucket/lake"\ncheckpoints = "state"')))
    assert (elsewhere.warehouse, elsewhere.checkpoints) == ("s3://bucket/lake", "/somewhere/state")


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ('topic = "orders"\n', "", "7:1: sources.orders has none of topic, topics, pattern and table: exactly one"),
        ('topic = "orders"\n', 'topic = "a"\npattern = "b"\n', "9:1: sources.orders has topic and pattern: exactly "),
        ("dead_letters =", "deadletters =", "12:1: 'deadletters' means nothing in sources.orders; did you mean 'dead_"),
        ('"topic:orders.dead"', '"orders.dead"', "12:1: dead_letters = 'orders.dead' is none of fail, drop, topic:N"),
        ('format = "json"', 'format = "jsn"', "9:1: format = 'jsn' is not known; did you mean 'json'?"),
        ('format = "json"\n', "", "9:1: sources.orders has a schema but no format"),
        ("amount DOUBLE", "amount DUBLE", "10:1: the schema 'id BIGINT, country STRING, amount DUBLE, at TIMESTAMP'"),
        ('start = "earliest"', 'start = "earlyest"', "11:1: start = 'earlyest' is none of earliest, latest, a time"),
        ('column = "at"', 'column = "att"', "13:15: the watermark's column 'att' is none of orders's; did you mean "),
        ('delay = "10 minutes"', 'delay = "10 mins"', "13:30: delay = '10 mins' is no interval such as"),
        ("maxOffsetsPerTrigger", "maxOffsetPerTrigger", "14:13: there is no option 'maxoffsetpertrigger'; did you m"),
        ("FROM paid GROUP", "FROM payd GROUP", "19:6: step totals reads 'payd', which is no source, reference or ste"),
        ('name = "paid"\n', "", "21:1: step 2 has no name: what others read it by"),
        ('sql = "SELECT * FROM orders WHERE amount > 0"', 'python = "x"', "23:1: python = 'x' is not module:function"),
        ('sql = "SELECT * FROM orders WHERE amount > 0"', "x = 1", "21:1: step paid has neither sql and python"),
        ('from = "paid"\ntable', 'from = "pad"\ntable', "25:1: sink lake reads 'pad', which is neither a source nor"),
        ('table = "orders"\n', "", "24:1: sinks.lake has none of table, topic, parquet, console and foreach_batch"),
        ('partition_by = ["country"]', 'partition_by = "country"', "27:1: partition_by must be a list of texts such"),
        ('trigger = "1 minute"', 'trigger = "contiuous"', "31:1: trigger = 'contiuous' is no interval such as \"10 "),
        ('key = "country"', "key = 3", "36:1: key must be a text in quotes, not a number"),
        ('mode = "update"', 'mode = "updat"', "35:1: mode = 'updat' is not known; did you mean 'update'?"),
        ('trigger = "1 minute"', 'mode = "update"', "31:1: mode = \"update\" cannot be for a table"),
        ('trigger = "1 minute"', 'key = "id"', "31:1: key is for topic sinks, and sinks.raw is table"),
        ('trigger = "1 minute"', "exactly_once = true", "31:1: exactly_once is for topic sinks, and sinks.raw is"),
        ('mode = "update"', 'exactly_once = "yes"', "35:1: exactly_once must be true or false, not a text"),
        ('mode = "update"', 'options = { "exactly.one" = true }', "35:13: there is no option 'exactly.one' to write"),
        ('table = "raw"', 'table = "orders"', "30:1: sinks lake and raw both write orders: give each its own"),
        ('trigger = "1 minute"', 'partition_by = ["contry"]', "31:17: partition_by: orders has no column 'contry'; "),
        ('trigger = "1 minute"', 'options = { "compact.evry" = 1 }', "31:13: penstock-lake has no option compact.evry"),
        ("[spark]", '[storage]\nacces_key = "x"\n[spark]', "5:1: storage.acces_key means nothing; did you mea"),
        ("[spark]", '[storage]\naccess_key = "x"\nsecret_key = "y"\n[spark]', "6:1: storage.secret_key is a secret"),
        ("[spark]", '[storage]\nendpoint = "x"\n[spark]', "5:1: storage.endpoint is no address such as https://s3.exam"),
        ("[spark]", '[catalog]\nuri = "http://c"\ntokn = "x"\n[spark]', "6:1: catalog.tokn means nothing; did you "),
        ("[spark]", '[catalog]\ntoken = "env:X"\n[spark]', "4:1: catalog has no uri: where it is, such as \"https://ca"),
        ('name = "orders"', 'name = "or/ders"', "1:1: name = 'or/ders' has more than letters, digits, - and _ in it"),
        ("[sources.orders]", "[sources.1orders]", "7:1: '1orders' is no name for SQL"),
        ("[spark]", "[spak]", "4:1: 'spak' means nothing in the file; did you mean 'spark'?"),
        ('name = "orders"', 'name = "orders', "1:15: this is not TOML: Illegal character"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_where_it_is(before: str, after: str, complaint: str) -> None:
    told = complaints(changed((before, after)))
    assert any(each.startswith(complaint) for each in told), told


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    text = changed(('topic = "orders"', 'tpic = "orders"'), ("FROM paid", "FROM payd"), ('"1 minute"', '"1 minit"'))
    assert [each.split(":")[0] for each in complaints(text)] == ["7", "8", "19", "31"]


def test_a_file_without_sources_or_sinks_is_told_what_to_write() -> None:
    assert complaints('name = "x"') == [
        "1:1: there are no sinks: write one under [sinks.lake]",
        "1:1: there are no sources: write one under [sources.orders]",
    ]


def test_starts_may_be_times_as_toml_writes_them() -> None:
    assert (
        flow_of(changed(('start = "earliest"', "start = 2026-11-01T00:00:00Z")))
        .sources[0]
        .start.startswith("2026-11-01T")
    )
    assert (
        flow_of(changed(('start = "earliest"', "start = 2026-11-01"))).sources[0].start == "2026-11-01T00:00:00+00:00"
    )


def test_reading_a_broken_file_raises_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(changed(('topic = "orders"', 'tpic = "orders"')))
    with pytest.raises(FlowBroken) as broken:
        read_flow(path)
    assert (
        str(broken.value).splitlines()[1]
        == f"{path}:8:1: 'tpic' means nothing in sources.orders; did you mean 'topic'?"
    )
    assert pickle.loads(pickle.dumps(broken.value)).mistakes == broken.value.mistakes
    path.write_text(WHOLE)
    assert read_flow(path).path == path
