"""The columns that an Avro schema means, as Spark's own Avro reader would have them."""

from __future__ import annotations

import json
from typing import Any, Final

from pyspark.sql import types as T  # noqa: N812 - as everybody calls it

from penstock.spark.errors import BadOption

_PLAIN: Final[dict[str, T.DataType]] = {
    "boolean": T.BooleanType(),
    "int": T.IntegerType(),
    "long": T.LongType(),
    "float": T.FloatType(),
    "double": T.DoubleType(),
    "bytes": T.BinaryType(),
    "string": T.StringType(),
}
_LOGICAL: Final[dict[tuple[str, str], T.DataType]] = {
    ("int", "date"): T.DateType(),
    ("long", "timestamp-millis"): T.TimestampType(),
    ("long", "timestamp-micros"): T.TimestampType(),
    ("long", "local-timestamp-millis"): T.TimestampNTZType(),
    ("long", "local-timestamp-micros"): T.TimestampNTZType(),
    ("string", "uuid"): T.StringType(),
}


def struct_of_avro(text: str) -> T.StructType:
    """The columns of records with this schema."""
    found = _Reading().type(json.loads(text), "the value", ())
    if not isinstance(found[0], T.StructType):
        raise BadOption("value.avro.schema is not a record: columns come from the fields of one")
    return found[0]


class _Reading:
    """One walk over a schema; named types are known after they were met."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}

    def type(self, schema: Any, where: str, inside: tuple[str, ...]) -> tuple[T.DataType, bool]:
        """A type, and whether it may be null."""
        if isinstance(schema, list):
            return self._union(schema, where, inside)
        if isinstance(schema, str):
            return self._name(schema, where, inside)
        if not isinstance(schema, dict) or "type" not in schema:
            raise BadOption(f"value.avro.schema: {where} has no type")
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.type(kind, where, inside)
        return self._complex(kind, schema, where, inside), False

    def _name(self, name: str, where: str, inside: tuple[str, ...]) -> tuple[T.DataType, bool]:
        if name in _PLAIN:
            return _PLAIN[name], False
        known = self._named.get(name, self._named.get(name.rsplit(".", 1)[-1]))
        if known is None:
            raise BadOption(f"value.avro.schema: {where} has the unknown type {name}")
        return self._complex(known["type"], known, where, inside), False

    def _union(self, branches: list[Any], where: str, inside: tuple[str, ...]) -> tuple[T.DataType, bool]:
        others = [branch for branch in branches if branch != "null"]
        nullable = len(others) < len(branches)
        if len(others) == 1:
            return self.type(others[0], where, inside)[0], nullable
        if others and set(map(str, others)) <= {"int", "long"}:
            return T.LongType(), nullable
        if others and set(map(str, others)) <= {"float", "double"}:
            return T.DoubleType(), nullable
        raise BadOption(f"value.avro.schema: {where} may be one of {len(others)} types, and a column has one")

    def _complex(self, kind: str, schema: dict[str, Any], where: str, inside: tuple[str, ...]) -> T.DataType:
        logical = schema.get("logicalType")
        if logical == "decimal" and kind in ("bytes", "fixed"):
            return T.DecimalType(int(schema["precision"]), int(schema.get("scale", 0)))
        match kind:
            case "record":
                return self._record(schema, where, inside)
            case "enum":
                self._remember(schema)
                return T.StringType()
            case "fixed":
                self._remember(schema)
                return T.BinaryType()
            case "array":
                element, nullable = self.type(schema["items"], f"{where}[]", inside)
                return T.ArrayType(element, nullable)
            case "map":
                value, nullable = self.type(schema["values"], f"{where}{{}}", inside)
                return T.MapType(T.StringType(), value, nullable)
        return _LOGICAL.get((kind, str(logical))) or self._name(kind, where, inside)[0]

    def _record(self, schema: dict[str, Any], where: str, inside: tuple[str, ...]) -> T.StructType:
        name = str(schema.get("name"))
        if name in inside:
            raise BadOption(f"value.avro.schema: {where} contains itself ({name}), which a column cannot")
        self._remember(schema)
        fields = []
        for field in schema["fields"]:
            path = field["name"] if where == "the value" else f"{where}.{field['name']}"
            # A tombstone is a row of nulls, so the columns themselves may always be null.
            kind, nullable = self.type(field.get("type"), path, (*inside, name))
            fields.append(T.StructField(field["name"], kind, nullable or not inside))
        return T.StructType(fields)

    def _remember(self, schema: dict[str, Any]) -> None:
        self._named[str(schema.get("name"))] = schema
