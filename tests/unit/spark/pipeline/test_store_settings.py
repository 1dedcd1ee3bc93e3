"""[storage] and [catalog] reach every table that a flow opens, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from penstock.spark.pipeline.wiring import lake_options, source_options
from tests.unit.spark.pipeline.files import changed, flow_of

STORE = """warehouse = "s3://lake"
[storage]
endpoint = "http://127.0.0.1:9000"
access_key = "shop"
secret_key = "env:SHOP_SECRET"
path_style = true
[catalog]
uri = "https://catalog.example.com"
credential = "file:/run/polaris"
"""
REACHED = {
    "storage.endpoint": "http://127.0.0.1:9000",
    "storage.access_key": "shop",
    "storage.secret_key": "env:SHOP_SECRET",
    "storage.path_style": "true",
}
FLOW = flow_of(changed(('warehouse = "lake"\n', STORE)))


def test_tables_of_both_formats_are_reached() -> None:
    sink = FLOW.sinks[0]
    delta = lake_options(FLOW, sink)
    assert {name: each for name, each in delta.items() if name.startswith(("storage.", "catalog"))} == REACHED
    assert delta["path"] == "s3://lake/orders"
    iceberg = lake_options(FLOW, replace(sink, table_format="iceberg"))
    assert {name: each for name, each in iceberg.items() if name.startswith(("storage.", "catalog"))} == {
        **REACHED,
        "catalog": "https://catalog.example.com",
        "catalog.credential": "file:/run/polaris",
    }


def test_files_with_secrets_lie_where_the_file_does() -> None:
    flow = flow_of(changed(('warehouse = "lake"\n', STORE.replace("env:SHOP_SECRET", "file:keys/secret"))))
    assert flow.storage["secret_key"] == "file:/somewhere/keys/secret"
    assert FLOW.catalog["credential"] == "file:/run/polaris"


def test_what_a_sink_says_itself_wins() -> None:
    sink = replace(FLOW.sinks[0], options={"storage.region": "eu-1", "storage.path_style": "false"})
    made = lake_options(FLOW, sink)
    assert (made["storage.region"], made["storage.path_style"]) == ("eu-1", "false")


def test_sources_reach_their_dead_letters_and_tables_are_told_nothing_of_it() -> None:
    options = source_options(FLOW, FLOW.sources[0])
    assert {name: each for name, each in options.items() if name in REACHED} == REACHED
    feed = lake_options(FLOW, FLOW.sinks[1])["feed"]
    assert "SHOP_SECRET" not in feed
    assert "9000" not in feed
