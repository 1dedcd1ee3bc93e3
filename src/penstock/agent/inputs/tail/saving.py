"""Positions go to disk: all that changed at once, a few times a second, and again when the disk refused.

With `exactly_once` they go into transactions instead: whoever closes one takes them.
"""

from __future__ import annotations

import asyncio
from typing import Final

from penstock.agent.checkpoints import Change, CheckpointsUnwritable, Row
from penstock.agent.inputs.tail.followed import Followed
from penstock.agent.inputs.tail.tracked import Tracked

EVERY_S: Final = 0.2
RETRY_S: Final = 1.0
LAST_WITHIN_S: Final = 5.0
"""How long the end of an input waits for its last positions; none of them is behind a record."""
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
        self._loaded = False
        self._busy = asyncio.Lock()

    async def load(self) -> bool:
        """Takes up what is known of files. Whether the input was started before."""
        followed, env = self._followed, self._followed.env
        if env.positions is not None:
            env.positions.attach(env.input, self)
        for number, row in enumerate(await (env.positions or env.checkpoints).load(env.input)):
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
        self._loaded = True
        return self._begun

    async def run(self) -> None:
        """Until it is cancelled."""
        swept_ms = self._followed.now_ms()
        while True:
            saved = self._followed.env.positions is not None or await self.save()
            await asyncio.sleep(EVERY_S if saved else RETRY_S)
            if self._followed.now_ms() - swept_ms >= SWEEP_MS:
                swept_ms = self._followed.now_ms()
                self._followed.forget_the_long_gone()

    async def save(self) -> bool:
        """False when the disk refused; what was to be saved is kept for the next time."""
        env = self._followed.env
        if env.positions is not None:
            await env.positions.save(env.input)
            return True
        async with self._busy:
            return await self._save()

    async def close(self) -> None:
        """The last positions."""
        env = self._followed.env
        if env.positions is None:
            await self.save()
            return
        await env.positions.save(env.input, LAST_WITHIN_S)
        env.positions.detach(env.input, self)

    @property
    def pending(self) -> bool:
        followed = self._followed
        return self._loaded and bool(followed.dirty or followed.forgotten or not self._begun)

    def take(self) -> Change:
        """All that has changed; it counts as saved unless it is given back."""
        followed = self._followed
        dirty, followed.dirty = followed.dirty, {}
        forgotten, followed.forgotten = followed.forgotten, set()
        now_ms = followed.now_ms()
        rows = [file.row(now_ms) for file in dirty.values()]
        if not self._begun:
            rows.append(Row(BEGUN))

        def committed() -> None:
            self._begun = True

        def aborted() -> None:
            followed.dirty = dirty | followed.dirty
            followed.forgotten |= forgotten

        return Change(rows, sorted(forgotten), committed, aborted)

    async def _save(self) -> bool:
        if not self.pending:
            return True
        followed = self._followed
        change = self.take()
        try:
            await followed.env.checkpoints.save(followed.env.input, change.rows, change.forgotten)
        except CheckpointsUnwritable as error:
            change.aborted()
            followed.troubles.tell(SUBJECT, f"{error}; positions are kept in memory and tried again")
            return False
        except BaseException:
            change.aborted()
            raise
        change.committed()
        followed.troubles.well(SUBJECT)
        return True
