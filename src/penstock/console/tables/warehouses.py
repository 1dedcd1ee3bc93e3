"""The thread that looks at warehouses: once for all viewers, when somebody asks, and not again for some seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, TypeVar

from penstock.console.settings import WarehouseAddress

if TYPE_CHECKING:
    from penstock.console.tables.seen import SeenTable
    from penstock.spark.lake.warehouse import TableName

T = TypeVar("T")
HOLDS_S: Final = 3.0
COST_TIMES: Final = 10
"""Warehouses that take long to look at are looked at as much less often."""
TABLES_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Look:
    """All tables at one moment, by the names that viewers know them by."""

    at_ms: int = 0
    tables: dict[str, SeenTable] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """Warehouses that could not be looked at, and why."""


class Warehouses:
    """Asked on one loop; looks in its own thread, to which the stores of tables belong."""

    def __init__(self, addresses: Sequence[WarehouseAddress], pace: float = 1.0) -> None:
        """`pace` stretches how long a look holds, as everything else that is looked at."""
        self.addresses, self._pace = tuple(addresses), pace
        self._thread = ThreadPoolExecutor(1, "penstock-console-tables")
        self._seen = Look()
        self._until = 0.0
        self._looking: asyncio.Task[Look] | None = None

    async def look(self) -> Look:
        if not self.addresses or time.monotonic() < self._until:
            return self._seen
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_anew())
        return await asyncio.shield(self._looking)

    async def _look_anew(self) -> Look:
        began = time.monotonic()
        self._seen = await self.do(self._look_at_all)
        took = time.monotonic() - began
        self._until = began + took + max(HOLDS_S, COST_TIMES * took) * self._pace
        return self._seen

    async def do(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _look_at_all(self) -> Look:
        from penstock.console.tables.seen import look

        known = {table.found: table for table in self._seen.tables.values()}
        tables: dict[str, SeenTable] = {}
        failed: dict[str, str] = {}
        for address in self.addresses:
            try:
                for found in self._found_in(address):
                    named = _named(found, address.directory, tables)
                    if len(tables) < TABLES_MAX:
                        tables[named.name] = look(named, address.directory, found.name, known.get(named))
            except Exception as failure:  # nor does one warehouse
                failed[address.directory] = str(failure) or type(failure).__name__
        return Look(time.time_ns() // 1_000_000, tables, failed)

    def _found_in(self, address: WarehouseAddress) -> list[TableName]:
        from penstock.spark.lake.warehouse import Warehouse

        return Warehouse(
            address.directory,
            address.catalog,
            storage=address.storage,
            catalog_settings=address.catalog_settings,
        ).tables()


def _named(found: TableName, directory: str, taken: dict[str, SeenTable]) -> TableName:
    """A name that no other warehouse's table has."""
    name, number = found.name, 1
    while name in taken:
        number += 1
        where = PurePath(directory).name or "warehouse"
        name = f"{found.name}@{where}" if number == 2 else f"{found.name}@{where}-{number}"
    return found if name == found.name else replace(found, name=name)
