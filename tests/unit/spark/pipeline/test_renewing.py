"""A flow that makes a table anew is the flow of now from the beginning, and touches nothing that the sink's own has."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.spark.errors import BadOption
from penstock.spark.pipeline.flow import AVAILABLE_NOW, Flow
from penstock.spark.pipeline.reading import examine
from penstock.spark.pipeline.renewing import Renewal, renewed
from penstock.spark.pipeline.swapping import plan_swap

FILE = """
name = "shop"
warehouse = "{warehouse}"
admin = "127.0.0.1:9646"
[sources.orders]
topic = "orders"
start = "latest"
dead_letters = "{letters}"
options = {{ startingOffsets = "latest", maxOffsetsPerTrigger = "10" }}
format = "json"
schema = "id BIGINT, country STRING"
[sinks.lake]
from = "orders"
table = "orders"
fresh_within = "5 seconds"
[sinks.ice]
from = "orders"
table = "ice"
table_format = "iceberg"
[sinks.out]
from = "orders"
topic = "out"
"""


def flow_of(folder: Path, letters: str = "topic:dead") -> Flow:
    found = examine(FILE.format(warehouse=folder / "lake", letters=letters), folder / "shop.toml")
    assert found.flow is not None, found.mistakes
    return found.flow


def test_it_has_names_and_places_of_its_own(tmp_path: Path) -> None:
    flow = flow_of(tmp_path)
    made = renewed(flow, Renewal("lake", "orders/new", "earliest"))
    (sink,) = made.sinks
    assert (made.name, made.admin, sink.name, sink.target) == (
        "shop-backfill",
        None,
        "lake-into-orders-new",
        "orders/new",
    )
    assert (sink.trigger, sink.fresh_within_s) == (AVAILABLE_NOW, 0.0)
    own = flow.sinks[0]
    assert made.checkpoint(sink) == f"{flow.checkpoints}/lake-into-orders-new" != flow.checkpoint(own)
    assert made.query_name(sink) != flow.query_name(own)


@pytest.mark.parametrize(("letters", "kept"), [("topic:dead", "drop"), ("table:dead", "drop"), ("fail", "fail")])
def test_it_reads_from_where_it_is_told_and_sends_no_letter_again(tmp_path: Path, letters: str, kept: str) -> None:
    made = renewed(flow_of(tmp_path, letters), Renewal("lake", "new", "2026-11-01T00:00Z"))
    (source,) = made.sources
    assert (source.start, source.dead_letters) == ("2026-11-01T00:00Z", kept)
    assert source.options == {"maxOffsetsPerTrigger": "10"}


@pytest.mark.parametrize(
    ("sink", "into", "words"),
    [
        ("lake", "orders", "is the table that sink lake fills already"),
        ("lake", "ice", "another sink of shop fills that table"),
        ("out", "new", "sink out fills a topic: only one table can be made anew"),
    ],
)
def test_what_cannot_be_made_anew_is_refused(tmp_path: Path, sink: str, into: str, words: str) -> None:
    with pytest.raises(BadOption, match=words):
        renewed(flow_of(tmp_path), Renewal(sink, into, "earliest"))


def test_a_swap_that_cannot_be_says_what_to_do(tmp_path: Path) -> None:
    flow = flow_of(tmp_path)
    with pytest.raises(BadOption, match=r"only Delta tables in a directory .* `penstock pipeline reset` its sink"):
        plan_swap(flow, "ice", "new")
    with pytest.raises(BadOption, match=r"`penstock pipeline backfill shop\.toml --sink lake --into new` makes it"):
        plan_swap(flow, "lake", "new")
    for table in ("orders", "new", "orders_before"):
        (tmp_path / "lake" / table / "_delta_log").mkdir(parents=True)
    with pytest.raises(BadOption, match="orders_before is there already, from an earlier swap"):
        plan_swap(flow, "lake", "new")
