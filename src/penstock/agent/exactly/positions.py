"""What inputs are given in place of a database, and asked for when a transaction is closed.

Rows that were committed are kept in memory for inputs that are started again, and written to the local database too,
after the fact: whoever gives `exactly_once` up goes on from there.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from penstock.agent.checkpoints import Change, Checkpoints, CheckpointsUnwritable, Row, Source
from penstock.agent.exactly.beginning import INPUT, Begins, Note, note_in
from penstock.agent.exactly.rows import Found

COPY_EVERY_S: Final = 0.2
COPY_AGAIN_S: Final = 1.0


class Positions:
    """Of one agent, by input. `await load` waits until the topic was read."""

    def __init__(self, local: Checkpoints, tell: Callable[[str], None]) -> None:
        self._local, self._tell = local, tell
        self._sources: dict[str, Source] = {}
        self._rows: dict[str, dict[str, Row]] = {}
        self._seeds: dict[str, Change] = {}
        self._known = asyncio.Event()
        self._copies: dict[str, tuple[dict[str, Row], set[str]]] = {}
        self._copied: dict[str, Callable[[], None]] = {}
        self.hurry: Callable[[], None] = lambda: None
        """Asks for a commit soon."""
        self._saved: list[asyncio.Future[None]] = []
        self._over = False
        self._copying = asyncio.Lock()

    # What inputs call.

    async def load(self, input: str) -> list[Row]:
        await self._known.wait()
        return list(self._rows.get(input, {}).values())

    def attach(self, input: str, source: Source) -> None:
        self._sources[input] = source

    def detach(self, input: str, source: Source) -> None:
        if self._sources.get(input) is source:
            del self._sources[input]

    async def save(self, input: str, within_s: float | None = None) -> None:
        """Returns when what an input has is committed, when time is over, or when nothing will be any more."""
        source = self._sources.get(input)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while source is not None and source.pending and not self._over:
                    waiter = asyncio.get_running_loop().create_future()
                    self._saved.append(waiter)
                    self.hurry()
                    await waiter

    def give_up(self) -> None:
        """Nothing is committed any more; nobody waits."""
        self._over = True
        self._wake()

    def row(self, input: str, key: str) -> Row | None:
        """One of those that are committed."""
        return self._rows.get(input, {}).get(key)

    # What the loop of transactions calls.

    @property
    def pending(self) -> bool:
        return bool(self._seeds) or any(source.pending for source in self._sources.values())

    def take(self) -> dict[str, Change]:
        """All that has changed, by input."""
        if self._seeds:
            seeds, self._seeds = self._seeds, {}
            return {name: self._seed(name, change) for name, change in seeds.items()}
        return {name: source.take() for name, source in self._sources.items() if source.pending}

    def _seed(self, name: str, change: Change) -> Change:
        def again() -> None:
            self._seeds[name] = change

        return Change(change.rows, change.forgotten, aborted=again)

    def commit(self, changes: dict[str, Change]) -> None:
        """They are in the topic."""
        for name, change in changes.items():
            rows = self._rows.setdefault(name, {})
            copied, gone = self._copies.setdefault(name, ({}, set()))
            for row in change.rows:
                rows[row.key] = copied[row.key] = row
                gone.discard(row.key)
            for key in change.forgotten:
                rows.pop(key, None)
                copied.pop(key, None)
                gone.add(key)
            self._copied[name] = change.copied
            change.committed()
        self._wake()

    def _wake(self) -> None:
        waiting, self._saved = self._saved, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    def abort(self, changes: dict[str, Change]) -> None:
        for change in changes.values():
            change.aborted()

    # The beginning.

    async def note(self) -> Note | None:
        return note_in(await self._local.load(INPUT))

    async def write_note(self, note: Note) -> None:
        await self._local.save(INPUT, [note.row()])

    async def begin(self, found: Found, from_where: Begins) -> None:
        """Takes positions up; those that are not in the topic yet go into the first transaction."""
        if from_where is Begins.TOPIC:
            self._rows = found.rows
            return
        local = {name: await self._local.load(name) for name in await self._local.inputs() if name != INPUT}
        self._rows = {name: {row.key: row for row in rows} for name, rows in local.items()}
        for name in {*local, *found.rows}:
            old = [key for key in found.rows.get(name, {}) if key not in self._rows.get(name, {})]
            self._seeds[name] = Change(local.get(name, []), old)

    def opened(self) -> None:
        """The stamp of this life is in the topic."""
        self._known.set()

    # The local copy.

    async def keep_copies(self) -> None:
        """Until it is cancelled."""
        while True:
            copied = await self.copy()
            await asyncio.sleep(COPY_EVERY_S if copied else COPY_AGAIN_S)

    async def copy(self) -> bool:
        """False when the disk refused. The topic has them in any case."""
        async with self._copying:
            copies, self._copies = self._copies, {}
            copied, self._copied = self._copied, {}
            while copies:
                name, (rows, gone) = next(iter(copies.items()))
                try:
                    await self._local.save(name, rows.values(), gone)
                except CheckpointsUnwritable as refused:
                    self._tell(f"{refused}; positions are safe in their topic, the local copy is tried again")
                    self._restore(copies)
                    self._copied = {each: told for each, told in copied.items() if each in copies} | self._copied
                    return False
                del copies[name]
                copied[name]()
        return True

    def _restore(self, copies: dict[str, tuple[dict[str, Row], set[str]]]) -> None:
        for name, (rows, gone) in copies.items():
            newer, gone_since = self._copies.get(name, ({}, set()))
            kept = {key: row for key, row in rows.items() if key not in gone_since}
            self._copies[name] = (kept | newer, (gone - newer.keys()) | gone_since)
