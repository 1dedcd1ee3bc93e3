"""What changes of tables by key mean in options of Spark's readers and writers. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from penstock.spark.lake.keyed.envelopes import DEBEZIUM, FLAT, value_schema
from penstock.spark.lake.keyed.settings import KeyedSettings
from penstock.spark.pipeline.flow import Flow, Sink, Source
from penstock.spark.values.ddl_grammar import names_in

OF_A_BATCH: Final = "1000000"
"""Records: a task holds the changes of its bucket in memory, and after a long rest there may be any number."""
EXPIRES_AFTER_DAYS: Final = "0.1"
"""A merge replaces the files of whole buckets: kept for days, what was replaced would be many times the table."""

_METADATA: Final = ("_key", "_topic", "_partition", "_offset", "_timestamp", "_tombstone")


def change_options(source: Source, sink: Sink | None) -> dict[str, str]:
    """Options of format("penstock") for a source in an envelope, or one whose rows go to a table by key."""
    made: dict[str, str] = {}
    keyed = sink is not None and sink.keyed is not None
    decoded = source.format not in (None, "raw")
    if source.cdc or (keyed and decoded):
        given = next((text for name, text in source.options.items() if name.lower() == "metadatacolumns"), "")
        wanted = [name.strip() for name in given.split(",") if name.strip()]
        needed = _METADATA if source.cdc else _METADATA[1:-1]
        made["metadataColumns"] = ",".join([*wanted, *(name for name in needed if name not in wanted)])
    if source.cdc in (DEBEZIUM, FLAT) and source.format == "json" and source.schema is not None:
        made["value.schema"] = value_schema(source.cdc, source.schema, tuple(names_in(source.schema)))
    if keyed:
        made["maxOffsetsPerTrigger"] = OF_A_BATCH
    return made


def keyed_settings(flow: Flow, sink: Sink) -> KeyedSettings:
    """What the table is changed by, with the envelope of its sources."""
    assert sink.keyed is not None, "rows of this table have keys"
    return replace(sink.keyed, cdc=next((source.cdc for source in flow.lineage(sink)[0]), ""))


def keyed_table_options(sink: Sink) -> dict[str, str]:
    """Options of format("penstock-lake") for a table by key."""
    return {} if sink.keyed is None else {"expire.after.days": EXPIRES_AFTER_DAYS}
