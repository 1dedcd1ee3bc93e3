"""What a child is told, and what it tells, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from penstock.spark.lake.warehouse import TableName

ROWS_MAX: Final = 10_000
BYTES_MAX: Final = 16 << 20
SECONDS_MAX: Final = 30
MEMORY_BYTES: Final = 512 << 20
SQL_MAX: Final = 100_000


class TableOrder(msgspec.Struct, frozen=True):
    """A table that may be asked, with the directory that it must not lead out of."""

    name: str
    format: str
    location: str
    options: dict[str, Any]
    warehouse: str


class SqlOrder(msgspec.Struct, frozen=True):
    """One question and its bounds."""

    sql: str
    tables: list[TableOrder]
    rows: int = ROWS_MAX
    bytes: int = BYTES_MAX
    seconds: int = SECONDS_MAX
    memory_bytes: int = MEMORY_BYTES


class SqlTold(msgspec.Struct, omit_defaults=True):
    """An answer, or why there is none."""

    columns: list[dict[str, str]] = []
    rows: list[list[str | None]] = []
    cut: bool = False
    refused: str = ""


class SqlAnswer(msgspec.Struct):
    """The same for whoever hands it on: rows stay the text that they are, so that nobody takes them apart in vain."""

    columns: list[dict[str, str]] = []
    rows: msgspec.Raw = msgspec.Raw(b"[]")
    cut: bool = False
    refused: str = ""

    def cells(self) -> list[list[str | None]]:
        return msgspec.json.decode(self.rows, type=list[list[str | None]])


def table_order(table: TableName, warehouse: str) -> TableOrder:
    return TableOrder(table.name, table.format, table.location, asdict(table.options), warehouse)


def table_of(order: TableOrder) -> TableName:
    from penstock.spark.lake.options import LakeOptions
    from penstock.spark.lake.warehouse import TableName

    given: Mapping[str, Any] = {**order.options, "partition_by": tuple(order.options.get("partition_by", ()))}
    return TableName(order.name, order.format, order.location, LakeOptions(**given))
