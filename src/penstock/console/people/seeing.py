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
"""Whoever looks later than this has it asked anew; where names take long to tell, somewhat later."""
STALE_S: Final = 4.0
HOLDS_S: Final = 5.0
"""No name older than this is believed, however long brokers take to tell it."""
CONFIGS_HOLD_S: Final = 30.0
COST_TIMES: Final = 20
"""What may be done with each topic costs brokers several times what its name does. It says only whether the retention
of a topic that is seen anyhow is seen too, so it holds for so many times what it cost, up to that time."""
WITHIN_S: Final = 15.0
HANG_UP_WITHIN_S: Final = 3.0
_SEES_CONFIGS: Final = "describe_configs"


class Eyes:
    """What one person sees of one cluster. The asking runs on the reading thread."""

    def __init__(self, keywords: Mapping[str, Any], thread: ReadingThread) -> None:
        self._keywords, self._thread = keywords, thread
        self._admin: Admin | None = None
        self._seen: Vision = NOTHING
        self._as_of_s = self._configs_until_s = float("-inf")
        self._took_s = 0.0
        self._asking: asyncio.Task[Vision] | None = None
        self._closed = False

    async def look(self) -> Vision:
        """ClientError when nobody can be asked: then nothing is seen. Nor by somebody who has gone."""
        if self._closed:
            return NOTHING
        age_s = time.monotonic() - self._as_of_s
        fresh_s = min(max(FRESH_S, COST_TIMES * self._took_s), STALE_S)
        if age_s >= fresh_s and (self._asking is None or self._asking.done()):
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
        self._seen, self._as_of_s, self._took_s = seen, began, time.monotonic() - began
        return seen

    async def _ask(self) -> Vision:
        if self._admin is None:
            self._admin = Admin(**self._keywords)
        cluster = await self._sees_cluster(self._admin)
        groups = frozenset(group.id for group in await self._admin.groups())
        began = time.monotonic()
        if not cluster and began >= self._configs_until_s:
            allowed = await self._admin.topic_operations()
            took_s = time.monotonic() - began
            self._configs_until_s = began + min(max(HOLDS_S, COST_TIMES * took_s), CONFIGS_HOLD_S)
            configs = frozenset(topic for topic, operations in allowed.items() if _SEES_CONFIGS in operations)
            return Vision(frozenset(allowed), groups, cluster=False, configs=configs)
        topics = frozenset(topic.name for topic in await self._admin.topics(internal=True))
        if cluster:
            self._configs_until_s = float("-inf")
            return Vision(topics, groups)
        return Vision(topics, groups, cluster=False, configs=self._seen.configs)

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
