"""Tables that steps join: what a file says of them, and when a query begins again for them."""

from __future__ import annotations

import pytest

from penstock.spark.pipeline.flow import Flow, Reference
from penstock.spark.pipeline.references import ReferenceWatch, reference_options
from penstock.spark.pipeline.wiring import lake_options
from tests.unit.spark.pipeline.files import WHOLE, changed, complaints, flow_of

JOINED = (
    changed(
        ("SELECT * FROM orders WHERE amount > 0", "SELECT * FROM orders LEFT JOIN customers USING (id)"),
        text=WHOLE,
    )
    + """\
[references.customers]
table = "customers"
refresh = "2 minutes"
"""
)


def test_a_step_reads_a_reference_by_its_name() -> None:
    flow = flow_of(JOINED)
    (customers,) = flow.references
    assert customers == Reference("customers", "customers", refresh_ms=120_000, line=37)
    assert reference_options(flow, customers) == {"path": "/somewhere/lake/customers", "table.format": "delta"}
    lake, raw, totals = flow.sinks
    assert [flow.references_of(sink) for sink in (lake, raw, totals)] == [(customers,), (), (customers,)]
    assert [source.name for source in flow.lineage(lake)[0]] == ["orders"]
    assert "feed" not in lake_options(flow, lake), "no log has what it joins"


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ('refresh = "2 minutes"', 'refresh = "often"', "39:1: refresh = 'often' is no interval such as \"5 minutes\""),
        ('table = "customers"', 'tabel = "customers"', "references.customers has no table"),
        ("[references.customers]", "[references.orders]", "the name 'orders' is taken by source orders"),
        (
            "[references.customers]",
            "[references.custmers]",
            "which is no source, reference or step; did you mean 'custmers'",
        ),
        ('from = "orders"\ntable = "raw"', 'from = "customers"\ntable = "raw"', "sink raw reads 'customers'"),
    ],
)
def test_a_mistake_in_a_reference_is_told(before: str, after: str, complaint: str) -> None:
    found = complaints(changed((before, after), text=JOINED))
    assert any(complaint in each for each in found), found


def test_a_query_begins_again_when_a_reference_has_moved_and_is_looked_at_once_in_its_interval() -> None:
    versions: list[int | None] = [3, 3, None, 4]
    asked: list[str] = []

    def version(flow: Flow, reference: Reference) -> int | None:
        asked.append(reference.name)
        return versions.pop(0)

    flow = flow_of(JOINED)
    watch = ReferenceWatch(flow, flow.sinks[0], version_of=version)
    watch.begun(0.0)
    assert [watch.moved(now) for now in (1.0, 119.0, 120.0, 121.0, 240.0, 360.0)] == [False] * 5 + [True]
    assert len(asked) == 4, "one that cannot be looked at has not moved"
    assert [watch.late(now) for now in (400.0, 421.0)] == [False, True]
    versions.append(4)
    watch.begun(430.0)
    assert not watch.moved(431.0)
    quiet = ReferenceWatch(flow.once(), flow.once().sinks[0], version_of=version)
    quiet.begun(0.0)
    assert not quiet.moved(1e6), "a query that ends by itself sees what is there when it begins"
