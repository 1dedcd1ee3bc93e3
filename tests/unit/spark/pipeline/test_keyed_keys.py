"""Keys of the file that make a table follow changes: each mistake has its line and what to do."""

from __future__ import annotations

import pytest

from penstock.spark.lake.keyed.declared import interval_ms
from penstock.spark.lake.keyed.settings import KEEP_DELETES_MS, KeyedSettings
from tests.unit.spark.pipeline.files import complaints, flow_of

FILE = """\
name = "shop"
[sources.changes]
topic = "customers"
format = "json"
schema = "id BIGINT, name STRING, version BIGINT"
[sinks.customers]
from = "changes"
table = "customers"
keys = ["id"]
sequence_by = "version"
delete_when = "name IS NULL"
ignore_when = "id < 0"
keep_deletes = "2 days 12 hours"
buckets = 4
"""


def file(*pairs: tuple[str, str]) -> str:
    text = FILE
    for before, after in pairs:
        assert before in text
        text = text.replace(before, after)
    return text


def test_a_file_says_how_a_table_follows_changes() -> None:
    (sink,) = flow_of(FILE).sinks
    assert sink.keyed == KeyedSettings(("id",), "version", "name IS NULL", "id < 0", 216_000_000, 4)
    (plain,) = flow_of(FILE[: FILE.index("sequence_by")]).sinks
    assert plain.keyed == KeyedSettings(("id",), "_offset", keep_deletes_ms=KEEP_DELETES_MS, buckets=16)
    assert [sink.keyed for sink in flow_of().sinks] == [None, None, None]


def test_a_source_says_its_envelope() -> None:
    (source,) = flow_of(file(('format = "json"', 'format = "json"\ncdc = "debezium"'))).sources
    assert source.cdc == "debezium"
    flow_of(file(('format = "json"', 'format = "json"\ncdc = "debezium"'), ('"version"', '"source.lsn"')))


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        (
            'keys = ["id"]',
            "",
            "10:1: sequence_by is for tables that follow changes: say by which keys, such as keys = [",
        ),
        ('keys = ["id"]', "keys = []", "9:1: keys has no column: name those that tell one row from another"),
        ('keys = ["id"]', 'keys = ["id", "ID"]', "9:15: keys has 'ID' twice"),
        ('keys = ["id"]', 'keys = ["lower(id)"]', "9:9: keys holds 'lower(id)', which is no column's name: make one"),
        ('keys = ["id"]', 'keys = "id"', '9:1: keys must be a list of texts such as ["a", "b"], not a text'),
        ("buckets = 4", "buckets = 0", "14:1: buckets = 0 is out of bounds: it must be from 1 to 1024"),
        ("buckets = 4", "bucket = 4", "14:1: 'bucket' means nothing in sinks.customers; did you mean 'buckets'?"),
        (
            '"2 days 12 hours"',
            '"2 fortnights"',
            '13:1: keep_deletes must be a time such as "7 days" or "12 hours", not ',
        ),
        (
            'sequence_by = "version"\n',
            "",
            "12:1: keep_deletes is for changes that may come late, and those that follow",
        ),
        (
            "buckets = 4",
            'partition_by = ["name"]',
            "14:1: a table with keys is split by them into buckets, not by part",
        ),
        ("buckets = 4", 'mode = "complete"', "14:1: a table with keys takes changes as they come: leave mode out"),
        (
            'table = "customers"',
            'parquet = "customers"',
            "9:1: keys is for table sinks, and sinks.customers is parquet",
        ),
        ('"version"\ndel', '"source.lsn"\ndel', '10:1: sequence_by = "source.lsn" is of sources with cdc = "debezium"'),
        (
            'topic = "customers"',
            'pattern = "shop.*"\ncdc = "debezum"',
            "4:1: cdc = 'debezum' is not known; did you mean",
        ),
        (
            'format = "json"\n',
            'format = "json"\ncdc = "upsert"\n',
            '11:1: cdc = "upsert" deletes by null values, which have no version: sequence_by can be _offset or _timest',
        ),
        (
            '"id BIGINT, name STRING, version BIGINT"',
            '"infer"\ncdc = "debezium"',
            '5:1: cdc = "debezium" needs the columns of the table as schema, such as "id BIGINT, name STRING"',
        ),
        (
            'format = "json"\nschema = "id BIGINT, name STRING, version BIGINT"\n',
            'cdc = "debezium"\n',
            '4:1: cdc = "debezium" is of records that have columns: say format = "json" and the schema of the rows',
        ),
    ],
)
def test_mistakes_are_told_with_their_place(before: str, after: str, complaint: str) -> None:
    assert any(found.startswith(complaint) for found in complaints(file((before, after)))), complaints(
        file((before, after))
    )


def test_offsets_are_no_order_of_several_topics() -> None:
    text = file(
        ('topic = "customers"', 'pattern = "shop.*"'), ('sequence_by = "version"\n', ""), ("keep_deletes", "# ")
    )
    assert complaints(text)[0].startswith(
        "9:1: sink customers reads more than one topic, whose offsets have no order among each other: give sequence_by"
    )


def test_a_member_of_the_source_that_nobody_reads_is_told() -> None:
    text = file(('format = "json"', 'format = "json"\ncdc = "debezium"'), ('"version"', '"source.lns"'))
    assert complaints(text)[0].startswith(
        "11:1: sequence_by: 'lns' is not read of Debezium's source; did you mean 'lsn'?"
    )


def test_times_are_read_as_people_write_them() -> None:
    assert interval_ms("1 week 1 day") == 8 * 86_400_000
    assert interval_ms("0 days") == 0
    assert interval_ms("7") is None
    assert interval_ms("7 days of it") is None
