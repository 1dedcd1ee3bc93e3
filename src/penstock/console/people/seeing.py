"""Asks brokers what one person may see, as that person: what they do not tell is not shown.

What was told holds for a few seconds and is asked anew before it has got old, so that nobody waits for it at every
page. Whoever loses a right loses sight of what it was for within that time; what is asked of brokers directly, records
above all, is refused at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

from penstock.client.admin import Admin
from penstock.client.errors import ClientError, TimedOutWaiting
from penstock.console.messages.thread import ReadingThread
from penstock.console.people.vision import NOTHING, Vision

FRESH_S: Final = 2.5
"""Whoever looks later than this has it asked anew."""
HOLDS_S: Final = 5.0
"""Nothing older than this is believed, however long brokers take to tell it."""
WITHIN_S: Final = 15.0
HANG_UP_WITHIN_S: Final = 3.0
_SEES_CONFIGS: Final = "describe_configs"


class Eyes:
    """What one person sees of one cluster. The asking runs on the reading thread."""

    def __init__(self, keywords: Mapping[str, Any], thread: ReadingThread) -> None:
        self._keywords, self._thread = keywords, thread
        self._admin: Admin | None = None
        self._seen: Vision = NOTHING
        self._as_of_s = float("-inf")
        self._asking: asyncio.Task[Vision] | None = None
        self._closed = False

    async def look(self) -> Vision:
        """ClientError when nobody can be asked: then nothing is seen. Nor by somebody who has gone."""
        if self._closed:
            return NOTHING
        age_s = time.monotonic() - self._as_of_s
        if age_s >= FRESH_S and (self._asking is None or self._asking.done()):
            self._asking = asyncio.create_task(self._look_anew())
            self._asking.add_done_callback(_heard)
        if age_s < HOLDS_S:
            return self._seen
        assert self._asking is not None, "what is old is being asked anew"
        return await self._told(self._asking)

    async def close(self) -> None:
        """ClientError, or a time-out, when brokers do not let go: then connections end with the thread."""
        self._closed = True
        if self._asking is not None:
            self._asking.cancel()
        async with asyncio.timeout(HANG_UP_WITHIN_S):
            await self._thread.do(self._hang_up())

    async def _told(self, asking: asyncio.Task[Vision]) -> Vision:
        # Whoever waits here may be cancelled, and the asking may be; neither has to end the other.
        await asyncio.wait([asking], timeout=WITHIN_S)
        if not asking.done():
            raise TimedOutWaiting("brokers did not tell in time what you may see")
        return NOTHING if asking.cancelled() else asking.result()

    async def _look_anew(self) -> Vision:
        began = time.monotonic()
        seen = await self._thread.do(self._ask())
        self._seen, self._as_of_s = seen, began
        return seen

    async def _ask(self) -> Vision:
        if self._admin is None:
            self._admin = Admin(**self._keywords)
        cluster = await self._sees_cluster(self._admin)
        groups = frozenset(group.id for group in await self._admin.groups())
        if cluster:
            topics = await self._admin.topics(internal=True)
            return Vision(frozenset(topic.name for topic in topics), groups)
        # What may be done with each topic costs brokers more to say; who sees the cluster has no need of it.
        allowed = await self._admin.topic_operations()
        configs = frozenset(topic for topic, operations in allowed.items() if _SEES_CONFIGS in operations)
        return Vision(frozenset(allowed), groups, cluster=False, configs=configs)

    async def _sees_cluster(self, admin: Admin) -> bool:
        try:
            await admin.describe_quorum()
        except ClientError:
            return False
        return True

    async def _hang_up(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            await admin.close()


def _heard(asking: asyncio.Task[Vision]) -> None:
    """Why it failed is told to those who wait; there may be nobody."""
    if not asking.cancelled():
        asking.exception()
