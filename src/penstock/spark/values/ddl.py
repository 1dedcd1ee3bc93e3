"""Spark's language for types and columns, read without a JVM: `id BIGINT NOT NULL, tags ARRAY<STRING>`.

Spark's own reader of it needs a running session; planners and workers of Python data sources have none. Reads every
type that Spark 4.3 writes except geography and geometry, `NOT NULL`, `COMMENT 'text'`, names in back-quotes, the colon
form `id: bigint` and a whole `struct<…>`. `BadOption` says where it stopped.
"""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import types as T  # noqa: N812 - as everybody calls it

from penstock.spark.errors import BadOption
from penstock.spark.values.ddl_grammar import read_columns

_UNQUOTED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def struct_of(ddl: str) -> T.StructType:
    """The columns that `ddl` declares."""
    found = T.StructType(read_columns(ddl, T))
    _refuse_twins(found, "")
    return found


def ddl_of(struct: T.StructType) -> str:
    """Columns as text that `struct_of` and Spark read back as they are, comments included."""
    return ", ".join(_column(field, " ") for field in struct.fields)


def _column(field: T.StructField, between: str) -> str:
    name = field.name if _UNQUOTED.fullmatch(field.name) else "`" + field.name.replace("`", "``") + "`"
    comment = (field.metadata or {}).get("comment")
    said = " COMMENT '" + comment.replace("\\", "\\\\").replace("'", "\\'") + "'" if comment else ""
    return f"{name}{between}{type_text(field.dataType)}{'' if field.nullable else ' NOT NULL'}{said}"


def type_text(kind: T.DataType) -> str:
    """A type as it is written in DDL."""
    if isinstance(kind, T.StructType):
        return f"STRUCT<{', '.join(_column(field, ': ') for field in kind.fields)}>"
    if isinstance(kind, T.ArrayType):
        return f"ARRAY<{type_text(kind.elementType)}>"
    if isinstance(kind, T.MapType):
        return f"MAP<{type_text(kind.keyType)}, {type_text(kind.valueType)}>"
    return kind.simpleString().upper()


def _refuse_twins(kind: T.DataType, where: str) -> None:
    """Spark's columns know no case, so two names that differ in nothing else cannot both be asked for."""
    if isinstance(kind, T.ArrayType):
        _refuse_twins(kind.elementType, where)
    elif isinstance(kind, T.MapType):
        _refuse_twins(kind.valueType, where)
    elif isinstance(kind, T.StructType):
        seen: dict[str, str] = {}
        for field in kind.fields:
            twin = seen.setdefault(field.name.lower(), field.name)
            if twin is not field.name:
                raise BadOption(f"the schema has {where}{field.name} twice: columns know no case")
            _refuse_twins(field.dataType, f"{where}{field.name}.")
