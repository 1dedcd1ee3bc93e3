"""The input: one task takes files, one puts away what is acknowledged, one saves positions."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from dataclasses import asdict
from typing import Final

from penstock.agent.checkpoints import Change, CheckpointsUnwritable, Row
from penstock.agent.environment import Environment
from penstock.agent.inputs.files.inflating import Broken, CutOff
from penstock.agent.inputs.files.jobs import Jobs
from penstock.agent.inputs.files.ledger import Ledger
from penstock.agent.inputs.files.troubles import Troubles, in_words
from penstock.agent.inputs.input import Channel, FileStatus, InputStatus
from penstock.agent.inputs.spooldir.putting_away import put_aside, put_away
from penstock.agent.inputs.spooldir.searching import Facts, Search
from penstock.agent.inputs.spooldir.settings import SpoolDirSettings
from penstock.agent.inputs.spooldir.taking import Changed, Piece, take_file
from penstock.agent.portion import Portion

SAVE_EVERY_S: Final = 0.2
RETRY_S: Final = 1.0
LAST_WITHIN_S: Final = 5.0
"""How long the end waits for its last positions with `exactly_once`; none of them is behind a record."""
UNDER_WAY_MAX: Final = 1000
"""So many files may wait for acknowledgements before the next is begun."""
CHANGED: Final = "was changed after it was begun; files must be complete when they are dropped here"


class _File:
    """A file that was begun."""

    def __init__(self, path: str, facts: Facts, position: int, input: SpoolDirInput) -> None:
        self.path, self.facts = path, facts
        self.ledger = Ledger[None](position, None, lambda: input.moved(self))
        self.read = position
        self.ended = False
        """All of it was put."""
        self.wrong = ""
        """Why it goes to the errors instead."""
        self.leaving: asyncio.Task[bool] | None = None

    @property
    def complete(self) -> bool:
        return self.ended and not self.ledger.open_spans

    def row(self) -> Row:
        facts = self.facts
        return Row(self.path, self.path, self.ledger.outlook[0], asdict(facts))


class SpoolDirInput:
    """Takes the files of a folder. See the package."""

    def __init__(self, settings: SpoolDirSettings, channel: Channel, env: Environment) -> None:
        self.settings, self._channel, self._env = settings, channel, env
        self.troubles = Troubles(env.input)
        self._search = Search(settings)
        self._files: dict[str, _File] = {}
        self._rows: dict[str, Row] = {}
        """What an earlier life has begun."""
        self._dirty: dict[str, _File] = {}
        self._forgotten: set[str] = set()
        self._complete = asyncio.Event()
        self._jobs = Jobs()
        self._stopping = False
        self._saving = asyncio.Lock()
        self._events = self._bytes = self._truncated = 0
        self._waiting = self._waiting_bytes = 0

    async def run(self) -> None:
        if self._stopping:
            return
        await self._jobs.run(self._take_files(), self._put_away_files(), self._save_positions())

    async def stop(self) -> None:
        self._stopping = True
        await self._jobs.end()

    async def close(self) -> None:
        self._stopping = True
        await self._jobs.end()
        for file in [file for file in self._files.values() if file.complete]:
            await self._leave(file)
        if self._env.positions is None:
            await self._save()
            return
        await self._env.positions.save(self._env.input, LAST_WITHIN_S)
        self._env.positions.detach(self._env.input, self)

    def moved(self, file: _File) -> None:
        """More of it is safe, or goes into a transaction."""
        if file.ledger.untold:
            self._dirty[file.path] = file
            # One of this name was put away before, and this is another.
            self._forgotten.discard(file.path)
        if file.complete:
            self._complete.set()

    # Taking.

    async def _load(self) -> None:
        env = self._env
        if env.positions is not None:
            env.positions.attach(env.input, self)
        for row in await (env.positions or env.checkpoints).load(env.input):
            if os.path.lexists(row.key):
                self._rows[row.key] = row
            else:
                # It was put away, and the agent ended before it had noted that.
                self._forgotten.add(row.key)

    async def _take_files(self) -> None:
        await self._load()
        while True:
            try:
                rested, resting = await asyncio.to_thread(self._search.search, self._env.monotonic_ms())
            except OSError as error:
                self.troubles.tell(str(self.settings.directory), f"cannot be searched: {in_words(error)}")
                await asyncio.sleep(max(RETRY_S, self.settings.discover_ms / 1000))
                continue
            self.troubles.well(str(self.settings.directory))
            new = [(path, facts) for path, facts in rested if path not in self._files]
            self._waiting, self._waiting_bytes = len(new) + resting, sum(facts.size for _, facts in new)
            for path, facts in new:
                await self._take(path, facts)
                self._waiting -= 1
                self._waiting_bytes -= facts.size
            await asyncio.sleep(self.settings.discover_ms / 1000)

    async def _take(self, path: str, facts: Facts) -> None:
        while len(self._files) >= UNDER_WAY_MAX:
            await asyncio.sleep(SAVE_EVERY_S)
        file = self._begun(path, facts)
        try:
            if file.wrong:
                raise Changed
            async with aclosing(take_file(path, facts, file.read, self.settings, self._env.monotonic_ms())) as pieces:
                async for piece in pieces:
                    await self._put(file, piece)
            self.troubles.well(path)
        except Changed:
            file.wrong = CHANGED
        except CutOff:
            file.wrong = "is compressed and not complete"
        except Broken as error:
            file.wrong = f"is broken: {error}"
        except FileNotFoundError:
            self._forget(file)
            return
        except OSError as error:
            # A disk that fails now may not fail later: it stays where it is and is tried again.
            self.troubles.tell(path, in_words(error))
            self._files.pop(path, None)
            self._rows[path] = file.row()
            return
        file.ended = True
        if file.complete:
            self._complete.set()

    def _begun(self, path: str, facts: Facts) -> _File:
        row = self._rows.pop(path, None)
        before = Facts(**row.facts) if row is not None else None
        file = _File(path, facts, row.position if row is not None and before == facts else 0, self)
        if before is not None and before != facts and before.inode == facts.inode and before.device == facts.device:
            file.wrong = CHANGED
        self._files[path] = file
        return file

    async def _put(self, file: _File, piece: Piece) -> None:
        done = file.ledger.begin(piece.end, None)
        file.read = piece.end
        portion = Portion(
            self._channel.origin(path=file.path), piece.values, positions=piece.positions, marks=piece.marks
        )
        self._events += len(piece.values)
        self._bytes += sum(map(len, piece.values))
        self._truncated += len(piece.marks)
        await self._channel.put(portion, done)

    # Putting away.

    async def _put_away_files(self) -> None:
        while True:
            await self._complete.wait()
            self._complete.clear()
            left = False
            for file in [file for file in self._files.values() if file.complete]:
                left |= not await self._leave(file)
            if left:
                await asyncio.sleep(RETRY_S)
                self._complete.set()

    async def _leave(self, file: _File) -> bool:
        """False when it could not be moved; it stays begun and is not read again."""
        if file.leaving is None or file.leaving.done():
            file.leaving = asyncio.create_task(self._move(file))
        # A move that was begun ends, also when the input is stopped meanwhile; closing waits for it here.
        return await asyncio.shield(file.leaving)

    async def _move(self, file: _File) -> bool:
        try:
            if file.wrong:
                where = await asyncio.to_thread(put_aside, file.path, self.settings)
                self.troubles.tell(file.path, f"{file.wrong}; moved to {where}")
            else:
                await asyncio.to_thread(put_away, file.path, self.settings)
        except FileNotFoundError:
            self.troubles.tell(file.path, "was taken away by somebody before it was done with")
        except OSError as error:
            words = f"is done with, but cannot be put away: {in_words(error)}"
            self.troubles.tell(file.path, words)
            return False
        self._forget(file)
        return True

    def _forget(self, file: _File) -> None:
        self._files.pop(file.path, None)
        self._dirty.pop(file.path, None)
        self._forgotten.add(file.path)

    # Positions.

    async def _save_positions(self) -> None:
        while True:
            saved = self._env.positions is not None or await self._save()
            await asyncio.sleep(SAVE_EVERY_S if saved else RETRY_S)

    async def _save(self) -> bool:
        async with self._saving:
            if not self.pending:
                return True
            change = self.take()
            try:
                await self._env.checkpoints.save(self._env.input, change.rows, change.forgotten)
            except BaseException as error:
                change.aborted()
                if isinstance(error, CheckpointsUnwritable):
                    self.troubles.tell("checkpoints", f"{error}; positions are kept in memory and tried again")
                    return False
                raise
            self.troubles.well("checkpoints")
            return True

    @property
    def pending(self) -> bool:
        return bool(self._dirty or self._forgotten)

    def take(self) -> Change:
        """All that has changed; it counts as saved unless it is given back."""
        dirty, self._dirty = self._dirty, {}
        forgotten, self._forgotten = self._forgotten, set()

        def aborted() -> None:
            # What has happened to a name since is newer than what is given back.
            kept = {path: file for path, file in dirty.items() if path not in self._forgotten}
            self._forgotten |= forgotten - self._dirty.keys()
            self._dirty = kept | self._dirty

        return Change([file.row() for file in dirty.values()], sorted(forgotten), aborted=aborted)

    # Telling.

    def status(self, *, details: bool = False) -> InputStatus:
        files = list(self._files.values())
        behind = sum(max(0, file.facts.size - file.ledger.safe) for file in files if not file.complete)
        status = InputStatus(
            kind="spooldir",
            words=f"{self._waiting} waiting, {len(files)} begun",
            events=self._events,
            bytes=self._bytes,
            truncated=self._truncated,
            behind_bytes=behind + self._waiting_bytes,
            files=self._waiting + len(files),
            errors=self.troubles.count,
            last_error=self.troubles.last,
        )
        if details:
            status.details = [self._details(file) for file in files]
        return status

    def _details(self, file: _File) -> FileStatus:
        state = file.wrong or ("waiting" if file.ended else "open")
        return FileStatus(file.path, file.facts.size, file.read, file.ledger.safe, state)
