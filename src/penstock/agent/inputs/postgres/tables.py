"""Tables are read before the log goes on: all rows as they are at one moment, in the order of their keys.

That moment is where the slot begins, when it was made just now: then nothing is told twice. In any case it is not
before the place where the log goes on, so the log, which is sent after it, ends at the table as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.agent.environment import Environment
from penstock.agent.inputs.input import Channel
from penstock.agent.inputs.postgres.beginning import Begun
from penstock.agent.inputs.postgres.log.wire import Values
from penstock.agent.inputs.postgres.portions import Gathered
from penstock.agent.inputs.postgres.position.progress import PostgresProgress, TableMark, TableReading
from penstock.agent.inputs.postgres.records.envelope import Envelopes, TableShape
from penstock.agent.inputs.postgres.server.catalog import Described, KnownTable, described
from penstock.agent.inputs.postgres.server.connecting import calling, connected
from penstock.agent.inputs.postgres.server.rows import TableRows, begin_state
from penstock.agent.inputs.postgres.settings import PostgresSettings
from penstock.agent.inputs.postgres.telling import PostgresCounts
from penstock.agent.portion import Origin


@dataclass(slots=True)
class TableReader:
    """Of one input."""

    settings: PostgresSettings
    channel: Channel
    env: Environment
    progress: PostgresProgress
    envelopes: Envelopes
    counts: PostgresCounts
    origin: Origin
    portion_bytes_max: int

    async def read(self, begun: Begun) -> None:
        """Every table that was not read to its end before."""
        left = []
        for table in begun.tables:
            reading = self.progress.table(table.name, table.oid)
            if self.settings.snapshot == "never" and not reading.done:
                reading.begin(0, TableMark(done=True))()
            elif not reading.done:
                left.append((table, reading))
        if not left:
            return
        state = await connected(self.settings)
        try:
            await calling(state, lambda: begin_state(state, begun.snapshot))
            for table, reading in left:
                await self._read_table(state, begun, table, reading)
        finally:
            state.close()
            self.counts.reading = ""

    async def _read_table(self, state: Any, begun: Begun, table: KnownTable, reading: TableReading) -> None:
        names = begun.columns.get(table.name)
        found = await calling(state, lambda: described(state, table, names))
        shape = TableShape.of(found.relation, found.types, found.keys)
        after = reading.ledger.last.after if found.keys else None
        partitioned = table.partitioned
        rows = await calling(
            state, lambda: TableRows(state, found, after, self.portion_bytes_max, partitioned=partitioned)
        )
        while True:
            self.counts.reading = f"{table.name}, {reading.ledger.end:,} rows"
            some = await calling(state, rows.next)
            if not some:
                break
            await self._put(found, shape, some, reading)
        await calling(state, rows.close)
        reading.begin(0, TableMark(done=True))()

    async def _put(self, table: Described, shape: TableShape, rows: list[Values], reading: TableReading) -> None:
        gathered = Gathered()
        lsn, now_ms = self.progress.position.restart, self.env.now_ms()
        for row in rows:
            gathered.add(self.envelopes.of_row(shape, row, lsn, now_ms))
        names = [column.name for column in table.relation.columns]
        # A key that is not published has no place to go on from.
        whole = bool(table.keys) and all(key in names for key in table.keys)
        after = tuple(str(rows[-1][names.index(key)]) for key in table.keys) if whole else None
        done = reading.begin(len(rows), TableMark(after))
        self.counts.take(gathered)
        await self.channel.put(gathered.portion(self.origin), done)
