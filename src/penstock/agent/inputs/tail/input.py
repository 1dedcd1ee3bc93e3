"""The input: its tasks, and how they begin and end.

Four tasks share what is in `followed.py`: one watches (folders and files), one reads, one reads what is compressed, one
saves positions. Reading waits for room in the channel; watching goes on meanwhile, so that files which are rotated away
while brokers are slow are held and not lost.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Final

from penstock.agent.environment import Environment
from penstock.agent.inputs.files.inflating import PLAIN, Broken, CutOff
from penstock.agent.inputs.files.jobs import Jobs
from penstock.agent.inputs.files.troubles import in_words
from penstock.agent.inputs.input import Channel, FileStatus, InputStatus
from penstock.agent.inputs.tail.descriptors import Moved
from penstock.agent.inputs.tail.discovery import Discovery
from penstock.agent.inputs.tail.followed import Followed
from penstock.agent.inputs.tail.identity import Place
from penstock.agent.inputs.tail.reading import Load, Reader, Turn
from penstock.agent.inputs.tail.saving import Saver
from penstock.agent.inputs.tail.settings import TailSettings
from penstock.agent.inputs.tail.tracked import Tracked
from penstock.agent.inputs.tail.unpacking import Overwritten, Unpacker
from penstock.agent.inputs.tail.watching import Watch
from penstock.agent.portion import Portion

WITHOUT_PAUSE_MS: Final = 3.0
ELSEWHERE: Final = (Place.UNSEEN, Place.GONE, Place.CUT)
"""There is nothing to read from."""


class TailInput:
    """Follows files. See the package."""

    def __init__(self, settings: TailSettings, channel: Channel, env: Environment) -> None:
        self.settings, self._channel, self._env = settings, channel, env
        self._events = self._bytes = self._truncated = 0
        self._jobs = Jobs()
        self._stopping = False
        self._make()

    def _make(self) -> None:
        self._followed = Followed(self.settings, self._env)
        self._discovery = Discovery(self._followed)
        self._watch = Watch(self._followed, self._discovery)
        self._reader = Reader(self._followed)
        self._unpacker = Unpacker(self._followed)
        self._saver = Saver(self._followed)

    async def run(self) -> None:
        if self._stopping:
            return
        if len(self._followed.catalogue):
            # A run that failed is begun anew, from what is on disk.
            self._followed.descriptors.close_all()
            self._make()
        await self._jobs.run(self._begin_and_watch(), self._read(), self._read_packed(), self._saver.run())

    async def stop(self) -> None:
        self._stopping = True
        await self._jobs.end()

    async def close(self) -> None:
        self._stopping = True
        await self._jobs.end()
        await self._saver.close()
        self._followed.descriptors.close_all()

    async def _begin_and_watch(self) -> None:
        begun = await self._saver.load()
        await self._discovery.round(first_ever=not begun)
        await self._saver.save()
        await self._watch.run()

    async def _read(self) -> None:
        """Turn by turn, as long as there is something; others have the loop in between."""
        followed, pause_ms = self._followed, 0.0
        while True:
            file = followed.turns.next()
            if file is None:
                followed.work.clear()
                await followed.work.wait()
                pause_ms = followed.now_ms() + WITHOUT_PAUSE_MS
                continue
            load = self._turn(file)
            if load is not None:
                await self._put(file, load)
            if followed.now_ms() >= pause_ms:
                await asyncio.sleep(0)
                pause_ms = followed.now_ms() + WITHOUT_PAUSE_MS

    def _turn(self, file: Tracked) -> Load | None:
        followed = self._followed
        if file.packing != PLAIN:
            followed.want(file)
            return None
        if file.place in ELSEWHERE or file.held_until_ms or self._waits_for_another(file):
            return None
        try:
            turn = self._read_some(file)
        except Moved:
            followed.leave(file)
            return None
        except OSError as error:
            followed.troubles.tell(file.path, in_words(error))
            followed.drain(file)
            # It is looked at again as if it had changed.
            file.size = -1
            return None
        if turn.replaced:
            self._replaced(file)
            return None
        followed.troubles.well(file.path)
        return turn.load

    def _replaced(self, file: Tracked) -> None:
        if file.place is Place.HERE and file.path != file.origin_path:
            # A rotated file is overwritten by what is rotated after it, which may be known.
            self._followed.overwrite(file)
        else:
            self._followed.begin_anew(file)

    def _waits_for_another(self, file: Tracked) -> bool:
        """What was at its path before is read first."""
        before = file.after
        if before is None:
            return False
        if before.drained or before.place in ELSEWHERE:
            file.after = None
            return False
        self._followed.queue_behind(file, before)
        return True

    def _read_some(self, file: Tracked) -> Turn:
        followed, now_ms = self._followed, self._followed.now_ms()
        turn = self._reader.read(file)
        if turn.replaced:
            return turn
        if turn.more:
            followed.want(file)
            return turn
        followed.drain(file)
        if turn.load is not None:
            return turn
        if file.rotated and now_ms - file.changed_ms >= self.settings.rotate_wait_ms:
            turn = self._reader.read_rest(file)
            if not turn.replaced:
                self._finished(file)
            return turn
        gatherer = file.gatherer
        if gatherer is not None and gatherer.due_ms is not None and now_ms >= gatherer.due_ms:
            return Turn(self._reader.flush(file))
        return turn

    def _finished(self, file: Tracked) -> None:
        """Rotated away, read to its end, quiet for long enough."""
        file.rotated, file.ended = False, True
        if file.place is Place.HELD:
            self._followed.finish(file)
        else:
            self._followed.descriptors.close(file)
            self._followed.mark_dirty(file)

    async def _put(self, file: Tracked, load: Load) -> None:
        if file.origin is None:
            file.origin = self._channel.origin(path=file.origin_path)
        file.anchors.append(load.anchor)
        done = file.ledger.begin(load.end, load.anchor)
        portion = Portion(
            file.origin, load.values, positions=load.positions, marks=load.marks, size_bytes=load.size_bytes
        )
        self._events += len(load.values)
        self._bytes += portion.size_bytes - 64 * len(load.values)
        self._truncated += len(load.marks)
        await self._channel.put(portion, done)

    async def _read_packed(self) -> None:
        followed = self._followed
        while True:
            file = followed.packed_turns.next()
            if file is None:
                followed.packed_work.clear()
                await followed.packed_work.wait()
                continue
            if file.packing == PLAIN:
                followed.want(file)
            elif file.place in ELSEWHERE or file.failed or file.held_until_ms or self._waits_for_another(file):
                continue
            else:
                await self._unpack(file)

    async def _unpack(self, file: Tracked) -> None:
        followed = self._followed
        seen = (file.size, file.modified_ns)
        try:
            async with aclosing(self._unpacker.read(file)) as loads:
                async for load in loads:
                    await self._put(file, load)
        except Moved:
            followed.leave(file)
        except Overwritten:
            self._replaced(file)
        except CutOff:
            file.cut_off = seen
            followed.troubles.tell(file.path, "is compressed and not complete; waiting for the rest")
        except Broken as error:
            file.failed = True
            followed.troubles.tell(file.path, f"is broken; what came before that is taken: {error}")
        except OSError as error:
            followed.troubles.tell(file.path, in_words(error))
            file.size = -1
        else:
            file.finished, file.ended = seen, True
            followed.mark_dirty(file)
            followed.troubles.well(file.path)
        followed.drain(file)

    def status(self, *, details: bool = False) -> InputStatus:
        followed = self._followed
        here = [file for file in followed.catalogue if file.place in (Place.HERE, Place.HELD)]
        plain = [file for file in here if file.packing == PLAIN]
        status = InputStatus(
            kind="tail",
            words=self._words(len(here)),
            events=self._events,
            bytes=self._bytes,
            truncated=self._truncated,
            behind_bytes=sum(max(0, file.size - file.ledger.safe) for file in plain),
            files=len(here),
            missed=followed.missed,
            errors=followed.troubles.count,
            last_error=followed.troubles.last,
        )
        if details:
            status.details = [self._details(file) for file in here]
        return status

    def _words(self, files: int) -> str:
        waiting, missed = self._discovery.waiting, self._followed.missed
        words = f"follows {files} file{'' if files == 1 else 's'}"
        words += f", {waiting} not decided yet" if waiting else ""
        return f"{words}; {missed} went away before all was read, see the log" if missed else words

    def _details(self, file: Tracked) -> FileStatus:
        state = self._followed.troubles.about(file.path)
        if not state:
            state = "rotated" if file.rotated else "open" if file.descriptor >= 0 else "quiet"
        return FileStatus(file.path, max(0, file.size), file.read, file.ledger.safe, state)
