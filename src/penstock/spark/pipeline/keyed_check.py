"""What must hold between the sources of a flow and its tables that follow changes. Needs no Spark."""

from __future__ import annotations

from penstock.declared.fields import Notes
from penstock.declared.mistakes import did_you_mean
from penstock.spark.lake.keyed.envelopes import BY_KEY, DEBEZIUM, SOURCE_COLUMNS
from penstock.spark.lake.keyed.settings import OFFSET, TIMESTAMP
from penstock.spark.lake.keyed.shape import source_member
from penstock.spark.pipeline.flow import Flow, Sink, Source

_DECODED = ("json", "avro")


def check_keyed(flow: Flow, notes: Notes) -> None:
    for source in flow.sources:
        if source.cdc:
            _check_envelope(source, notes)
    for sink in flow.sinks:
        if sink.keyed is not None:
            _check_sequence(flow, sink, notes)
            _check_sources(flow, sink, notes)


def _check_envelope(source: Source, notes: Notes) -> None:
    path = ("sources", source.name)
    if source.format not in _DECODED:
        notes.wrong(
            (*path, "cdc"),
            f'cdc = "{source.cdc}" is of records that have columns: say format = "json" and the schema of the rows',
        )
    elif source.cdc != BY_KEY and source.schema is not None and source.schema.strip().lower() == "infer":
        notes.wrong(
            (*path, "schema"),
            f'cdc = "{source.cdc}" needs the columns of the table as schema, such as "id BIGINT, name STRING": they '
            "cannot be inferred from its envelope",
        )


def _check_sequence(flow: Flow, sink: Sink, notes: Notes) -> None:
    assert sink.keyed is not None
    path = ("sinks", sink.name, "sequence_by")
    sequence = sink.keyed.sequence_by
    sources = flow.lineage(sink)[0]
    member = source_member(sequence)
    if member is not None:
        if any(source.cdc != DEBEZIUM for source in sources):
            notes.wrong(path, f'sequence_by = "{sequence}" is of sources with cdc = "debezium"')
        elif member not in SOURCE_COLUMNS:
            words = f"sequence_by: {member!r} is not read of Debezium's source{did_you_mean(member, SOURCE_COLUMNS)}"
            notes.wrong(path, words)
    elif sequence not in (OFFSET, TIMESTAMP) and any(source.cdc == BY_KEY for source in sources):
        notes.wrong(
            path,
            f'cdc = "upsert" deletes by null values, which have no {sequence}: sequence_by can be _offset or '
            "_timestamp",
        )


def _check_sources(flow: Flow, sink: Sink, notes: Notes) -> None:
    """Offsets are an order only within a partition, and so only of one topic."""
    assert sink.keyed is not None
    sources, _ = flow.lineage(sink)
    path = ("sinks", sink.name, "keys")
    if sink.keyed.in_log_order and (len(sources) != 1 or sources[0].pattern is not None or len(sources[0].topics) != 1):
        notes.wrong(
            path,
            f"sink {sink.name} reads more than one topic, whose offsets have no order among each other: give "
            "sequence_by a column that orders changes",
        )
    if len({source.cdc for source in sources}) > 1:
        kinds = " and ".join(sorted({source.cdc or "rows" for source in sources}))
        notes.wrong(path, f"sink {sink.name} reads {kinds}: changes of one table come in one envelope")
