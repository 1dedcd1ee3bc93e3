"""What the console knows beside brokers: tables, pipelines, agents. Looked at when somebody asks, once for all.

A warehouse and an agent belong to no cluster. Who may see what of them is decided by the cluster that is looked at.
"""

from __future__ import annotations

import asyncio
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Protocol

from penstock.console.agents.asking import Agents
from penstock.console.agents.positions import AgentPositions
from penstock.console.messages.thread import ReadingThread
from penstock.console.pipelines.heard import Heard
from penstock.console.settings import ConsoleSettings
from penstock.console.tables.sql.asking import SqlProcesses
from penstock.console.tables.warehouses import Look, Warehouses

if TYPE_CHECKING:
    from penstock.client.admin.rights import Rights
    from penstock.console.people.acting import Acting
    from penstock.console.sampler.sampler import Sampler
    from penstock.console.tables.rights import TableRights
    from penstock.console.tables.seen import SeenTable
    from penstock.console.views.seeing import Seeing

RIGHTS_HOLD_S: Final = 3.0
USUAL_MS: Final = 5_000
RIGHTS_KEPT_MAX: Final = 1_000
TOPICS_MAX: Final = 5_000
AUDITS_AT_ONCE: Final = 1


class Visitor(Protocol):
    """Who asks, as a request's desk knows it."""

    @property
    def key(self) -> str: ...

    @property
    def known(self) -> bool:
        """Whether this is one person, and not anybody."""

    @property
    def sampler(self) -> Sampler: ...

    @property
    def acting(self) -> Acting: ...

    def seeing(self) -> Seeing: ...


class Lakeside:
    """One for all clusters of a console."""

    def __init__(self, settings: ConsoleSettings, reading: ReadingThread) -> None:
        self.settings = settings
        self.warehouses = Warehouses(settings.warehouses, settings.every_ms / USUAL_MS)
        self.agents = Agents(settings.agents)
        self.sql = SqlProcesses()
        self._positions = {address.name: AgentPositions(address, reading) for address in settings.clusters}
        self._heard = {address.name: Heard(address, reading) for address in settings.clusters}
        self.audits = asyncio.Semaphore(AUDITS_AT_ONCE)
        self._rights: dict[tuple[str, str], tuple[float, frozenset[str], Rights]] = {}

    @property
    def has_sql(self) -> bool:
        return bool(self.settings.warehouses) and find_spec("duckdb") is not None

    async def tables(self, visitor: Visitor) -> tuple[Look, dict[str, SeenTable]]:
        """What was seen, and of that what this person may read."""
        look = await self.warehouses.look()
        rights = await self.table_rights(visitor, look)
        return look, {name: table for name, table in look.tables.items() if rights.may_read(table)}

    async def table_rights(self, visitor: Visitor, look: Look) -> TableRights:
        from penstock.console.tables.rights import TableRights, topics_told

        if not visitor.known:
            return TableRights(all=True)
        seeing = visitor.seeing()
        ids = {name: topic.id for name, topic in seeing.picture.topics.items()}
        named = {topic for table in look.tables.values() for topic in topics_told(table) if topic in ids}
        return TableRights.of(await self.rights(visitor, named), ids)

    async def rights(self, visitor: Visitor, topics: set[str]) -> Rights:
        """What a visitor may do, by the brokers' word of at most some seconds ago."""
        wanted, key, now = (
            frozenset(sorted(topics)[:TOPICS_MAX]),
            (visitor.key, visitor.sampler.address.name),
            time.monotonic(),
        )
        known = self._rights.get(key)
        if known is not None and now < known[0] and wanted <= known[1]:
            return known[2]
        found = await visitor.acting.admin.rights(wanted)
        while len(self._rights) >= RIGHTS_KEPT_MAX:
            del self._rights[next(iter(self._rights))]
        self._rights[key] = (now + RIGHTS_HOLD_S, wanted, found)
        return found

    def positions(self, cluster: str) -> AgentPositions:
        return self._positions[cluster]

    def heard(self, cluster: str) -> Heard:
        return self._heard[cluster]

    async def close(self) -> None:
        for heard in self._heard.values():
            await heard.close()
        await asyncio.to_thread(self.warehouses.close)
