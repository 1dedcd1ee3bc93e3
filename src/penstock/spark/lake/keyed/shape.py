"""How rows of a query become changes, as SQL. Pure: what Spark has to do is said here, `shaping.py` lets it be done.

rows      the columns of the sink's rows, with where each is from: _topic, _partition, _offset, _timestamp
debezium  columns of `after`, or of `before` for a delete, with _op and _source
flat      the row's, with _op; upsert: the row's, with keys from the record's key where the value is null
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.spark.lake.keyed.envelopes import SOURCE


def source_member(sequence_by: str) -> str | None:
    """`lsn` of `source.lsn`; None for any other sequence."""
    table, dot, member = sequence_by.strip().partition(".")
    return member if dot and table == SOURCE and member.isidentifier() else None


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def key_of_record(column: str, kind: str, others: Sequence[str]) -> str:
    """SQL for a key column of what a record's key says: a member of a JSON object, a JSON text, or the text itself."""
    text = "CAST(_key AS STRING)"
    path = column.replace("'", "\\'")
    member = f"coalesce(get_json_object({text}, '$.{path}'), get_json_object({text}, '$.payload.{path}'))"
    if others:
        return f"TRY_CAST({member} AS {kind})"
    plain = f"CASE WHEN {text} LIKE '\"%' THEN get_json_object({text}, '$') ELSE {text} END"
    return f"TRY_CAST(CASE WHEN {text} LIKE '{{%' THEN {member} ELSE {plain} END AS {kind})"
