"""Expectations as a file says them, and what the writer of a table is told of them."""

from __future__ import annotations

import pytest

from penstock.spark.feed import Feed
from penstock.spark.lake.judging import DEAD, DROP, KEEP, SENT, Rule
from penstock.spark.pipeline.expectations import Expectation, Otherwise, rules_of
from penstock.spark.pipeline.wiring import feed_of, lake_options, sends_rows
from tests.unit.spark.pipeline.files import WHOLE, changed, complaints, flow_of

RULES = (
    WHOLE
    + """\
[sources.orders.expect_or_drop]
positive = "amount > 0"
[sources.orders.expect]
cheap = "amount < 1000"
known = { rule = "country IS NOT NULL", otherwise = "drop" }
[sources.orders.expect_or_fail]
numbered = "id IS NOT NULL"
[sinks.raw.expect]
recent = { rule = "at > '2020-01-01'", otherwise = "dead", within = "0.1 %" }
"""
)


def whole() -> str:
    return changed(('table = "raw"', 'table = "raw"\ndead_letters = "table:raw_dead"'), text=RULES)


def test_short_and_long_forms_say_what_becomes_of_a_row() -> None:
    flow = flow_of(whole())
    assert [(each.name, each.rule, each.otherwise, each.within) for each in flow.sources[0].expect] == [
        ("cheap", "amount < 1000", Otherwise.KEEP, None),
        ("known", "country IS NOT NULL", Otherwise.DROP, None),
        ("positive", "amount > 0", Otherwise.DEAD, None),
        ("numbered", "id IS NOT NULL", Otherwise.FAIL, None),
    ]
    (recent,) = flow.sinks[1].expect
    assert (recent.otherwise, recent.within) == (Otherwise.DEAD, pytest.approx(0.001))


def test_without_dead_letters_what_is_dropped_is_counted_and_gone() -> None:
    flow = flow_of(changed(('dead_letters = "topic:orders.dead"\n', ""), text=whole()))
    assert flow.sources[0].expect[2].otherwise is Otherwise.DROP


def test_the_writer_of_a_table_has_the_rules_of_what_it_reads_and_its_own() -> None:
    source = (Expectation("a", "x > 0", Otherwise.DEAD), Expectation("b", "x > 1", Otherwise.FAIL))
    own = (Expectation("c", "x > 2", Otherwise.DEAD, 0.5), Expectation("d", "x > 3", Otherwise.DROP))
    assert rules_of(source, own) == [
        Rule("a", "x > 0", SENT),
        Rule("b", "x > 1", KEEP),
        Rule("c", "x > 2", DEAD, 0.5),
        Rule("d", "x > 3", DROP),
    ]
    flow = flow_of(whole())
    options = lake_options(flow, flow.sinks[1])
    assert options["deadLetters"] == "table:/somewhere/lake/raw_dead"
    assert '"sent"' in options["expect"]
    assert "expect" not in lake_options(flow, flow.sinks[0]), "a step is in between: its rows were judged before it"


def test_rows_of_a_source_are_sent_by_the_query_that_carries_its_letters() -> None:
    flow = flow_of(whole())
    (source,) = flow.sources
    assert [sends_rows(flow, source, sink) for sink in flow.sinks] == [True, False, False]
    to_table = flow_of(changed(("topic:orders.dead", "table:dead"), text=whole()))
    assert all(sends_rows(to_table, to_table.sources[0], sink) for sink in to_table.sinks)


def test_a_reader_of_the_log_leaves_out_what_the_table_leaves_out() -> None:
    flow = flow_of(whole())
    feed = Feed.of_property(feed_of(flow, flow.sinks[1]).to_property())
    assert feed.view == "orders__all"
    told = [(step.name, step.sql) for step in feed.steps]
    holds = "coalesce((country IS NOT NULL), false) AND coalesce((amount > 0), false)"
    assert told == [
        ("orders", f"SELECT * FROM orders__all WHERE {holds}"),
        ("orders__kept__all", "SELECT * FROM orders"),
        ("orders__kept", "SELECT * FROM orders__kept__all WHERE coalesce((at > '2020-01-01'), false)"),
    ]
    assert feed_of(flow_of(), flow_of().sinks[1]).steps == ()


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ('"amount > 0"\n[sources', "3\n[sources", "39:1: positive must be a text in quotes, not a number"),
        ("cheap =", "positive =", "the name 'positive' is taken in expect: counts go by names, give it one"),
        ("cheap =", '"a b" =', "41:1: 'a b' is no name for an expectation"),
        ('otherwise = "drop"', 'otherwise = "drpo"', "42:41: otherwise = 'drpo' is not known; did you mean 'drop'?"),
        ('rule = "country', 'rul = "country', "42:1: expect.known has no rule: the SQL that is to hold"),
        ('"0.1 %"', '"0.1"', "within = '0.1' is no share of rows such as \"0.1 %\", below 100 %"),
        ('"0.1 %"', '"100 %"', "within = '100 %' is no share of rows"),
        ('otherwise = "drop"', 'otherwise = "drop", within = "1 %"', "within is judged before a table's commit"),
        ('dead_letters = "table:raw_dead"', "", 'otherwise = "dead" needs a place for dead letters: dead_letters = '),
        ('"table:raw_dead"', '"topic:raw"', "dead_letters = 'topic:raw' is not table:PATH: rows of a table are kept"),
        ("[sinks.raw.expect]", "[sinks.raw.expects]", "'expects' means nothing in sinks.raw; did you mean 'expect'?"),
    ],
)
def test_a_mistake_is_told_with_its_place(before: str, after: str, complaint: str) -> None:
    found = complaints(changed((before, after), text=whole()))
    assert any(complaint in each for each in found), found


def test_too_many_expectations_of_one_place_are_refused() -> None:
    many = "".join(f'r{number} = "amount > {number}"\n' for number in range(21))
    found = complaints(WHOLE + f"[sources.orders.expect]\n{many}")
    assert any("sources.orders has 21 expectations, 20 are the most" in each for each in found), found
