"""Looking at files that are known: did it change, is it still where it was, has it waited long enough?"""

from __future__ import annotations

import asyncio
import os
from typing import Final

from penstock.agent.inputs.files.inflating import PLAIN
from penstock.agent.inputs.files.troubles import in_words
from penstock.agent.inputs.tail.descriptors import Moved
from penstock.agent.inputs.tail.discovery import Discovery
from penstock.agent.inputs.tail.followed import Followed
from penstock.agent.inputs.tail.identity import Place
from penstock.agent.inputs.tail.rotations import is_rotation
from penstock.agent.inputs.tail.tracked import Tracked

SLICE: Final = 500
DEAR: Final = 50
"""A search that takes long is repeated so rarely that it takes a fiftieth of the time,"""
SLOWER_MAX: Final = 10
"""but not more rarely than this makes it."""


class Watch:
    """Of one tail: searches folders and looks at files, each when it is time."""

    def __init__(self, followed: Followed, discovery: Discovery) -> None:
        self._followed, self._discovery = followed, discovery
        self._settings = followed.settings

    async def run(self) -> None:
        """Until it is cancelled."""
        followed = self._followed
        search_ms, not_before_ms = followed.now_ms() + self._settings.discover_ms, 0.0
        while True:
            now_ms = followed.now_ms()
            if now_ms >= search_ms or (now_ms >= not_before_ms and followed.news.is_set()):
                news = followed.news.is_set()
                followed.news.clear()
                await self._discovery.round(news=news)
                every_ms, took_ms = self._settings.discover_ms, self._discovery.took_ms
                search_ms = followed.now_ms() + max(every_ms, min(took_ms * DEAR, every_ms * SLOWER_MAX))
                not_before_ms = followed.now_ms() + min(took_ms, every_ms)
            await self.look()
            await self._nap(search_ms)

    async def look(self) -> None:
        """At every file whose time has come."""
        followed, now_ms = self._followed, self._followed.now_ms()
        due = followed.looks.due(now_ms)
        for begin in range(0, len(due), SLICE):
            if begin:
                await asyncio.sleep(0)
            self._look_at_some(due[begin : begin + SLICE], now_ms)

    def _look_at_some(self, files: list[Tracked], now_ms: float) -> None:
        """Most are quiet, and are what this loop is fast for: thousands of times a second."""
        quiet: list[Tracked] = []
        looks, stat, here = self._followed.looks, os.stat, Place.HERE
        for file in files:
            if file.place is here and not file.rotated and file.gatherer is None and file.packing == PLAIN:
                try:
                    found = stat(file.path)
                except OSError:
                    pass
                else:
                    if (
                        found.st_size == file.size
                        and found.st_mtime_ns == file.modified_ns
                        and found.st_ino == file.inode
                        and found.st_dev == file.device
                    ):
                        quiet.append(file)
                        continue
            if file.ticket:
                looks.looked(file, now_ms, changed=self._look_at(file, now_ms))
        looks.all_quiet(quiet, now_ms)

    async def _nap(self, search_ms: float) -> None:
        followed = self._followed
        next_ms = followed.looks.next_ms()
        until_ms = search_ms if next_ms is None else min(search_ms, next_ms)
        wait_ms = until_ms - followed.now_ms()
        if wait_ms <= 0:
            await asyncio.sleep(0)
            return
        try:
            async with asyncio.timeout(wait_ms / 1000):
                await followed.news.wait()
        except TimeoutError:
            return
        # Many files may move at once; they are found by one search.
        await asyncio.sleep(self._settings.poll_min_ms / 1000)

    def _look_at(self, file: Tracked, now_ms: float) -> bool:
        """Whether it changed, or is expected to."""
        try:
            found = os.stat(file.path) if file.place is Place.HERE else os.fstat(file.descriptor)
        except FileNotFoundError:
            self._followed.leave(file)
            return True
        except OSError as error:
            self._followed.troubles.tell(file.path, in_words(error))
            return False
        if found.st_ino != file.inode or found.st_dev != file.device:
            self._followed.leave(file)
            return True
        if found.st_size == file.size and found.st_mtime_ns == file.modified_ns:
            return self._look_again(file, now_ms)
        if file.path != file.origin_path and not file.reach and file.place is Place.HERE:
            # A rotated file that was empty: what is in it now is rather what was rotated after it.
            self._followed.overwrite(file)
            return True
        if file.path == file.origin_path and not file.reach and file.place is Place.HERE:
            # It was empty: what was written to it first may have been copied away and cut already.
            self._followed.doubt(file)
        file.size, file.modified_ns = found.st_size, found.st_mtime_ns
        file.reach = max(file.reach, found.st_size)
        file.changed_ms = now_ms
        file.suspicious, file.drained, file.failed, file.ended = True, False, False, False
        if file.path != file.origin_path and is_rotation(file.path, file.real_path or file.origin_path):
            file.rotated = True
        self._hold(file)
        if file.cut_off is None:
            self._followed.want(file)
        return True

    def _hold(self, file: Tracked) -> None:
        """Opened now: what is renamed or deleted before its turn comes can still be read."""
        try:
            self._followed.descriptors.of(file)
        except Moved:
            self._followed.leave(file)
        except OSError as error:
            self._followed.troubles.tell(file.path, in_words(error))

    def _look_again(self, file: Tracked, now_ms: float) -> bool:
        """Unchanged. There may be a line that waits for company, or a last one without a line break."""
        quiet = now_ms - file.changed_ms >= self._settings.rotate_wait_ms
        if file.packing != PLAIN:
            if file.cut_off is not None and quiet and file.cut_off != (file.size, file.modified_ns):
                file.cut_off = None
                self._followed.want(file)
            elif file.place is Place.HELD and quiet and file.drained:
                self._followed.finish(file)
            return file.place is Place.HELD
        gatherer = file.gatherer
        if gatherer is not None and gatherer.due_ms is not None and now_ms >= gatherer.due_ms:
            self._followed.want(file)
            return True
        if file.rotated and file.drained and quiet:
            self._followed.want(file)
            return False
        return file.rotated or (gatherer is not None and gatherer.due_ms is not None)
