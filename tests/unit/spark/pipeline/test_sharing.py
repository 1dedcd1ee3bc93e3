"""Many tables and shared queries, as far as a file and pure rules go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.lake.ranges import AlreadyThere, Apply, Conflict, RangeKey, TableRange, decide, stretched
from penstock.spark.pipeline.table_pattern import TablePattern
from penstock.spark.pipeline.table_sources import table_source_options
from penstock.spark.pipeline.together import tables_last
from penstock.spark.pipeline.wiring import lake_options
from tests.unit.spark.pipeline.files import WHOLE, changed, complaints, flow_of

MANY = (
    WHOLE
    + """\
[sinks.each]
from = "orders"
table = "orders_{country}"
max_tables = 3
dead_letters = "table:odd"
together = "all"
[sinks.copy]
from = "paid"
topic = "copies"
trigger = "10 seconds"
together = "all"
"""
)


def test_sinks_that_stand_together_have_one_query_and_one_checkpoint() -> None:
    flow = flow_of(MANY)
    each, copy = flow.sinks[3:]
    assert flow.query_name(each) == flow.query_name(copy) == "orders-all"
    assert flow.checkpoint(each) == flow.checkpoint(copy) == "/somewhere/lake/_checkpoints/orders/all"
    assert flow.mates(copy) == (each, copy)
    assert [sink.name for sink in flow.only(("copy",)).sinks] == ["each", "copy"]
    assert (each.max_tables, each.judges, flow.table_path(each)) == (3, False, "/somewhere/lake/_fanned/each")


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("orders_{country}", "orders_{}", "has no name in its braces: the column whose values name the tables"),
        ("orders_{country}", "{country}_{id}", 'names no field: write one, once, such as table = "orders_{country}"'),
        ("orders_{country}", "orders_{county}", "orders has no column 'county'; did you mean 'country'?"),
        ("orders_{country}", "many", "max_tables is for a table of many"),
        ("max_tables = 3", "max_tables = 0", "max_tables = 0 is out of bounds: it must be from 1 to 1000"),
        ("max_tables = 3", 'mode = "complete"', 'mode = "complete" cannot be for many tables: rows are only added'),
        ("max_tables = 3", 'rows = "record"', "is a promise of one table: here a record goes to one of many"),
        (
            'table = "raw"',
            'table = "orders_nl"',
            "sink each makes tables orders_{country}, and sink raw writes orders_nl",
        ),
        ('topic = "copies"', 'parquet = "copies"', "knows its batches only by a query of its own"),
        ('topic = "copies"', 'topic = "copies"\nmode = "update"', 'share a query have mode = "append", and this one'),
        (
            'trigger = "10 seconds"\n',
            'trigger = "1 minute"\n',
            "a query has one trigger: '10 seconds', not '1 minute' too",
        ),
        ('together = "all"\n[', 'together = "raw"\n[', "together = 'raw' is the name of a sink"),
    ],
)
def test_a_mistake_is_told_with_what_to_do(before: str, after: str, complaint: str) -> None:
    found = complaints(changed((before, after), text=MANY))
    assert any(complaint in each for each in found), found


def test_tables_have_a_batch_last_for_they_say_where_a_lost_checkpoint_goes_on() -> None:
    flow = flow_of(MANY)
    assert [sink.name for sink in tables_last(flow.sinks[3:])] == ["copy", "each"]


def test_sinks_of_different_sources_do_not_stand_together() -> None:
    other = '[sources.clicks]\ntopic = "clicks"\n[sinks.clicks]\nfrom = "clicks"\ntopic = "c"\ntrigger = "10 seconds"\n'
    found = complaints(MANY + other + 'together = "all"\n')
    assert any("sinks each and clicks stand together, but read orders and clicks" in each for each in found), found


@given(st.text(max_size=70))
def test_a_value_names_a_table_inside_of_the_warehouse_or_none(value: str) -> None:
    pattern = TablePattern.of("orders_{country}_raw")
    assert pattern is not None
    name = pattern.name_of(value)
    if name is None:
        return
    assert pattern.may_name(name)
    assert name == f"orders_{value}_raw"
    assert value.isascii()
    assert not set(value) & set("/.\\ \0")


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=12), st.integers(0, 12))
def test_a_table_of_many_has_each_batch_that_brings_it_something_once(
    batches: list[tuple[int, bool]], again: int
) -> None:
    """A stream of batches, some of which have rows for the table; one of them is played again."""
    key, stands, at = RangeKey("id", 0), {}, 0
    played: list[TableRange] = []
    for count, brings in batches:
        given_range = TableRange("t", "id", 0, at, at + count + 1)
        at += count + 1
        if not brings:
            continue
        (told,) = stretched([given_range], stands)
        assert decide([told], stands) == Apply()
        assert told.start == stands.get(key, given_range.start)
        stands[key] = told.end
        played.append(given_range)
    if played:
        replay = played[again % len(played)]
        assert decide(stretched([replay], stands), stands) == AlreadyThere()
        beyond = TableRange("t", "id", 0, played[-1].start, played[-1].end + 1)
        assert isinstance(decide(stretched([beyond], stands), stands), Conflict)


TABLE = """\
name = "hop"
[sources.orders]
table = "orders"
start = 12
removals = "ignore"
[sinks.silver]
from = "orders"
table = "silver"
"""


def test_a_source_may_be_a_table() -> None:
    flow = flow_of(TABLE)
    (source,) = flow.sources
    assert (source.table, source.start, source.removals, source.topics) == ("orders", "12", "ignore", ())
    assert table_source_options(flow, source) == {
        "path": "/somewhere/lake/orders",
        "table.format": "delta",
        "startingVersion": "12",
        "removals": "ignore",
        "changes": "false",
    }
    options = lake_options(flow, flow.sinks[0])
    assert "feed" not in options, "no log goes on after it"
    assert options["rows"] == "any"
    assert flow_of(changed(("start = 12\n", ""), text=TABLE)).sources[0].start == "earliest"


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        (
            "start = 12",
            'start = "ealiest"',
            "4:1: start = 'ealiest' is none of earliest (all rows, then changes), latest",
        ),
        (
            "start = 12",
            'format = "json"',
            "4:1: format is for topics, and sources.orders reads a table: its columns are",
        ),
        ("start = 12", 'dead_letters = "drop"', "its rows were decoded when they were written"),
        ('"ignore"', '"ignor"', "removals = 'ignor' is not known; did you mean 'ignore'?"),
        ("start = 12", "changes = true", "removals is for rows alone: changes = true tells of rows that go"),
        ("start = 12", 'topic = "orders"', "sources.orders has topic and table: exactly one says what to read"),
        ('table = "orders"\nstart = 12', 'topic = "orders"', "removals is for sources that read a table"),
        ('table = "silver"', 'table = "orders"', "sink silver writes the table that source orders reads"),
    ],
)
def test_a_mistake_in_a_table_source_is_told(before: str, after: str, complaint: str) -> None:
    found = complaints(changed((before, after), text=TABLE))
    assert any(complaint in each for each in found), found
