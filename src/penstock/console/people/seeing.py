"""Asks brokers what one person may see, as that person: what they do not tell is not shown.

What was told holds for some seconds. Whoever loses a right loses sight of what it was for within that time; what is
asked of brokers directly, records above all, is refused at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

from penstock.client.admin import Admin
from penstock.client.errors import ClientError
from penstock.console.messages.thread import ReadingThread
from penstock.console.people.vision import NOTHING, Vision

HOLDS_S: Final = 3.0
COST_TIMES: Final = 50
"""At a cluster whose names take long to tell they hold for so many times as long."""


class Eyes:
    """What one person sees of one cluster, asked anew when it has got old. The asking runs on the reading thread."""

    def __init__(self, keywords: Mapping[str, Any], thread: ReadingThread) -> None:
        self._keywords, self._thread = keywords, thread
        self._admin: Admin | None = None
        self._seen: Vision = NOTHING
        self._until = 0.0
        self._asking: asyncio.Task[Vision] | None = None

    async def look(self) -> Vision:
        """ClientError when nobody can be asked: then nothing is seen."""
        if time.monotonic() < self._until:
            return self._seen
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._look_anew())
        return await asyncio.shield(self._asking)

    async def close(self) -> None:
        self._until = 0.0
        if self._asking is not None:
            self._asking.cancel()
        await self._thread.do(self._hang_up())

    async def _look_anew(self) -> Vision:
        began = time.monotonic()
        self._seen = await self._thread.do(self._ask())
        took = time.monotonic() - began
        self._until = began + took + max(HOLDS_S, COST_TIMES * took if took > 0.1 else 0)
        return self._seen

    async def _ask(self) -> Vision:
        if self._admin is None:
            self._admin = Admin(**self._keywords)
        topics = await self._admin.topics(internal=True)
        groups = await self._admin.groups()
        return Vision(
            frozenset(topic.name for topic in topics),
            frozenset(group.id for group in groups),
            await self._sees_cluster(),
        )

    async def _sees_cluster(self) -> bool:
        assert self._admin is not None, "topics were asked for"
        try:
            await self._admin.describe_quorum()
        except ClientError:
            return False
        return True

    async def _hang_up(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            await admin.close()
