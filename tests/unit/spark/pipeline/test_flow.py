"""What a flow knows of itself."""

from __future__ import annotations

from penstock.spark.pipeline.flow import AVAILABLE_NOW
from tests.unit.spark.pipeline.files import changed, flow_of


def test_a_sink_depends_on_its_own_ancestors_alone() -> None:
    flow = flow_of()
    by_sink = {sink.name: flow.lineage(sink) for sink in flow.sinks}
    names = {name: ([s.name for s in sources], [s.name for s in steps]) for name, (sources, steps) in by_sink.items()}
    assert names == {
        "lake": (["orders"], ["paid"]),
        "raw": (["orders"], []),
        "totals": (["orders"], ["paid", "totals"]),
    }


def test_one_row_a_record_is_promised_only_without_steps_or_by_the_user() -> None:
    flow = flow_of()
    assert {sink.name: flow.rows_of(sink) for sink in flow.sinks} == {"lake": "any", "raw": "record", "totals": "any"}
    said = flow_of(changed(('partition_by = ["country"]', 'rows = "record"')))
    assert said.rows_of(said.sinks[0]) == "record"


def test_each_sink_has_a_query_and_a_checkpoint_of_its_own() -> None:
    flow = flow_of()
    assert [flow.query_name(sink) for sink in flow.sinks] == ["orders-lake", "orders-raw", "orders-totals"]
    assert len({flow.checkpoint(sink) for sink in flow.sinks}) == 3


def test_tables_lie_in_the_warehouse_unless_they_say_where() -> None:
    flow = flow_of(changed(('table = "raw"', 'table = "s3://b/raw"')))
    assert [flow.table_path(sink) for sink in flow.sinks[:2]] == ["/somewhere/lake/orders", "s3://b/raw"]


def test_once_and_only_change_what_they_say() -> None:
    flow = flow_of()
    assert {sink.trigger for sink in flow.once().sinks} == {AVAILABLE_NOW}
    assert [sink.name for sink in flow.only(("raw",)).sinks] == ["raw"]
    moved = flow.on(bootstrap="b:1", master="spark://m:7077", kafka={"client.id": "x"})
    assert (moved.bootstrap, moved.spark.master, moved.kafka) == ("b:1", "spark://m:7077", {"client.id": "x"})
    assert flow.on() == flow
