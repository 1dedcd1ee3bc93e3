"""Positions go to disk: all that changed at once, a few times a second, and again when the disk refused."""

from __future__ import annotations

import asyncio
from typing import Final

from penstock.agent.checkpoints import CheckpointsUnwritable, Row
from penstock.agent.inputs.tail.followed import Followed
from penstock.agent.inputs.tail.tracked import Tracked

EVERY_S: Final = 0.2
RETRY_S: Final = 1.0
SWEEP_MS: Final = 600_000.0
SLICE: Final = 200
BEGUN: Final = "begun"
"""The key of the row which says that this input was started before."""
SUBJECT: Final = "checkpoints"


class Saver:
    """Of one tail."""

    def __init__(self, followed: Followed) -> None:
        self._followed = followed
        self._begun = False
        self._busy = asyncio.Lock()

    async def load(self) -> bool:
        """Takes up what is known of files. Whether the input was started before."""
        followed = self._followed
        for number, row in enumerate(await followed.env.checkpoints.load(followed.env.input)):
            if number % SLICE == SLICE - 1:
                await asyncio.sleep(0)
            if row.key == BEGUN:
                self._begun = True
                continue
            try:
                followed.restore(Tracked.from_row(row, followed.mark_dirty))
            except (KeyError, TypeError, ValueError):
                followed.troubles.tell(row.path, "what is known of it makes no sense; it is read anew")
                followed.forgotten.add(row.key)
        return self._begun

    async def run(self) -> None:
        """Until it is cancelled."""
        swept_ms = self._followed.now_ms()
        while True:
            saved = await self.save()
            await asyncio.sleep(EVERY_S if saved else RETRY_S)
            if self._followed.now_ms() - swept_ms >= SWEEP_MS:
                swept_ms = self._followed.now_ms()
                self._followed.forget_the_long_gone()

    async def save(self) -> bool:
        """False when the disk refused; what was to be saved is kept for the next time."""
        async with self._busy:
            return await self._save()

    async def _save(self) -> bool:
        followed = self._followed
        if not followed.dirty and not followed.forgotten and self._begun:
            return True
        dirty, followed.dirty = followed.dirty, {}
        forgotten, followed.forgotten = followed.forgotten, set()
        now_ms = followed.now_ms()
        rows = [file.row(now_ms) for file in dirty.values()]
        if not self._begun:
            rows.append(Row(BEGUN))
        try:
            await followed.env.checkpoints.save(followed.env.input, rows, forgotten)
        except CheckpointsUnwritable as error:
            followed.dirty = dirty | followed.dirty
            followed.forgotten |= forgotten
            followed.troubles.tell(SUBJECT, f"{error}; positions are kept in memory and tried again")
            return False
        except BaseException:
            followed.dirty = dirty | followed.dirty
            followed.forgotten |= forgotten
            raise
        self._begun = True
        followed.troubles.well(SUBJECT)
        return True
