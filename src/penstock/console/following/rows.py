"""The row that a record became, and the letter in a table of letters: by SQL, in the process that answers people too.

The questions are the console's own and name one record, which whoever asks has just read: so a table of letters may be
asked for it, whatever else is in it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from penstock.console.following.way import FoundLetter
from penstock.console.tables.sql.order import SqlAnswer, SqlOrder, table_order

if TYPE_CHECKING:
    from penstock.console.following.way import FoundRecord
    from penstock.console.tables.seen import SeenTable
    from penstock.console.tables.sql.asking import SqlProcesses

SECONDS: Final = 10
ROW_CHARS: Final = 2_000
LETTER_COLUMNS: Final = frozenset(("topic", "partition", "offset", "error", "query", "batch_id", "seen_at"))
FOLLOWING: Final = "following "
"""Before a person's name: one may follow a record while a question is answered."""


def keeps_places(table: SeenTable) -> bool:
    """Whether rows say which record they are from."""
    return {"_partition", "_offset"} <= {name for name, _, _ in table.columns}


def is_of_letters(table: SeenTable) -> bool:
    return {name for name, _, _ in table.columns} >= LETTER_COLUMNS


async def find_row(processes: SqlProcesses, person: str, table: SeenTable, record: FoundRecord) -> str | None:
    """The first row of the record, as text; None when there is none. Declined when it cannot be looked for."""
    names = {name for name, _, _ in table.columns}
    topic = f' AND "_topic" = {_text(record.topic)}' if "_topic" in names else ""
    told = await _ask(
        processes,
        person,
        table,
        f'WHERE "_partition" = {record.partition:d} AND "_offset" = {record.offset:d}{topic} LIMIT 1',
    )
    rows = told.cells()
    if not rows:
        return None
    cells = {column["name"]: cell for column, cell in zip(told.columns, rows[0], strict=True)}
    text = json.dumps(cells, ensure_ascii=False)
    return text if len(text) <= ROW_CHARS else f"{text[:ROW_CHARS]}…"


async def find_letters(
    processes: SqlProcesses, person: str, tables: Sequence[SeenTable], record: FoundRecord
) -> list[FoundLetter]:
    found = []
    for table in tables:
        told = await _ask(
            processes,
            person,
            table,
            f'WHERE "topic" = {_text(record.topic)} AND "partition" = {record.partition:d}'
            f' AND "offset" = {record.offset:d} LIMIT 1',
        )
        names = [column["name"] for column in told.columns]
        for row in told.cells():
            cells = dict(zip(names, row, strict=True))
            error, query = cells.get("error") or "", cells.get("query") or ""
            found.append(FoundLetter(f"table {table.own_name}", error, query=query))
    return found


async def _ask(processes: SqlProcesses, person: str, table: SeenTable, rest: str) -> SqlAnswer:
    name = ".".join(f'"{part}"' for part in _parts(table.name))
    order = SqlOrder(
        f"SELECT * FROM {name} {rest}", [table_order(table.found, table.warehouse)], rows=1, seconds=SECONDS
    )
    return await processes.ask(f"{FOLLOWING}{person}", order)


def _parts(name: str) -> list[str]:
    *schema, last = name.replace('"', '""').split(".")
    return [".".join(schema), last] if schema else [last]


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
