"""Keeps the minutes of a cluster in its topic, and brings back those of a day when a console starts.

Of several consoles one writes: the member of the group that has the topic's only partition. The others see the same
cluster with samplers of their own and have read what was written before they came. A console that may not make the
topic, read it, write it or join the group keeps its past in memory, says why, and asks again some minutes later.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from penstock.client.admin import Admin
from penstock.client.consumer import Consumer
from penstock.client.errors import BrokerRefused, UnknownTopic
from penstock.client.producer import Producer
from penstock.console.history.minutes import MinutesIn, MinutesOut, NoMinute
from penstock.console.sampler.past import Past
from penstock.console.settings import ClusterAddress
from penstock.model.errors import TOPIC_ALREADY_EXISTS, PenstockError
from penstock.model.ids import TopicPartition

log = logging.getLogger(__name__)

TOPIC: Final = "__penstock_history"
GROUP: Final = "__penstock_console"
HOME: Final = TopicPartition(TOPIC, 0)
CONFIGS: Final = {"cleanup.policy": "delete", "retention.ms": str(14 * 86_400_000)}
MINUTE_MS: Final = 60_000
BACK_MS: Final = 86_400_000
"""So much is read back."""
LEAD_MS: Final = 11 * MINUTE_MS
"""So much before it is read too: there a whole record is found, from which differences count."""
RECORDS_MAX: Final = 5_000
READ_WITHIN_S: Final = 30.0
AFTER_MS: Final = 3_000
"""So long after the end of a minute it is written: looks take their time."""
LOOK_MS: Final = 1_000
AGAIN_AFTER_S: Final = 300.0


def clock_ms() -> int:
    return time.time_ns() // 1_000_000


class Keeper:
    """Runs on the sampler's loop. `state` is waiting, reading, writing, off (for `why`), or none while nobody keeps."""

    def __init__(
        self,
        address: ClusterAddress,
        past: Past,
        *,
        read_only: bool,
        now_ms: Callable[[], int] = clock_ms,
        again_after_s: float = AGAIN_AFTER_S,
    ) -> None:
        self._address, self._past, self._read_only = address, past, read_only
        self._now_ms, self._again_after_s = now_ms, again_after_s
        self._restored = False
        self._out = MinutesOut()
        self._written = now_ms() // MINUTE_MS - 1
        """The last minute that needs no writing any more."""
        self.state, self.why = "waiting", ""

    async def run(self) -> None:
        """Until it is cancelled. Nothing that fails here fails anything else."""
        while True:
            try:
                await self._keep()
            except (PenstockError, OSError) as failure:
                why = str(failure)
                if why != self.why:
                    log.warning("history of %s is kept in memory only: %s", self._address.name, why)
                self.state, self.why = "off", why
            except Exception as failure:
                log.exception("history of %s is kept in memory only", self._address.name)
                self.state, self.why = "off", str(failure)
            await asyncio.sleep(self._again_after_s)

    async def _keep(self) -> None:
        async with Admin(**self._address.admin) as admin:
            there = await _is_there(admin)
            if there and not self._restored:
                await self._read_back(admin)
            if not there and not self._read_only:
                # A cluster of a test or a demo is gone before there is anything to keep.
                await self._until_minute_ends()
                await _make(admin)
        if self._read_only:
            self.state, self.why = ("reading", "") if there else ("off", f"there is no topic {TOPIC}")
            return
        await self._take_part()

    async def _read_back(self, admin: Admin) -> None:
        """Minutes of a day, a thousand and some records, in one go."""
        since_ms = self._now_ms() - BACK_MS - LEAD_MS
        ends = (await admin.offsets({HOME: "latest"})).checked()[HOME].offset
        found = (await admin.offsets({HOME: since_ms})).checked()[HOME].offset
        if found < 0:
            self._restored = True
            return
        minutes, began = MinutesIn(), time.monotonic()
        async with Consumer(**{**self._address.consumer, "group_id": None}) as consumer:
            consumer.assign([HOME])
            consumer.seek(HOME, max(found, ends - RECORDS_MAX))
            while await consumer.position(HOME) < ends and time.monotonic() - began < READ_WITHIN_S:
                for record in await consumer.poll(max_records=100, timeout_ms=LOOK_MS):
                    try:
                        minutes.take(record.value or b"")
                    except NoMinute as other:
                        log.debug("offset %d of %s is no minute: %s", record.offset, TOPIC, other)
        now = self._now_ms() // MINUTE_MS
        self._past.restore(
            {
                of: {minute: mean for minute, mean in told.items() if now - BACK_MS // MINUTE_MS <= minute <= now}
                for of, told in minutes.told.items()
            }
        )
        self._restored = True

    async def _take_part(self) -> None:
        """A member of the group, which writes as long as it has the partition. What it has written it does not read."""
        keywords = {**self._address.consumer, "group_id": GROUP, "auto_commit": False, "offset_reset": "latest"}
        producing = {**self._address.producer, "acks": "all", "compression": "zstd", "create_topics": False}
        async with Consumer(TOPIC, **keywords) as consumer, Producer(**producing) as producer:
            while True:
                # Whoever does not poll is taken for dead; paused, a poll waits and fetches nothing.
                consumer.pause(*consumer.assignment())
                await consumer.poll(timeout_ms=LOOK_MS)
                ours = HOME in consumer.assignment()
                self.state, self.why = ("writing" if ours else "reading"), ""
                minute = (self._now_ms() - AFTER_MS) // MINUTE_MS - 1
                if minute <= self._written:
                    continue
                if ours:
                    await self._write(producer, minute)
                else:
                    self._out = MinutesOut()  # others write: what comes after that begins with a whole record
                self._written = minute

    async def _write(self, producer: Producer, minute: int) -> None:
        means = self._past.minute(minute * MINUTE_MS)
        if means:
            value = self._out.record(minute, means)
            await producer.send(TOPIC, value, partition=0, timestamp=minute * MINUTE_MS)

    async def _until_minute_ends(self) -> None:
        self.state, self.why = "waiting", ""
        while (self._now_ms() - AFTER_MS) // MINUTE_MS - 1 <= self._written:
            await asyncio.sleep(LOOK_MS / 1_000)


async def _is_there(admin: Admin) -> bool:
    try:
        await admin.describe_topic(TOPIC, offsets=False, configs=False)
    except UnknownTopic:
        return False
    return True


async def _make(admin: Admin) -> None:
    try:
        await admin.create_topic(TOPIC, 1, configs=CONFIGS)
    except BrokerRefused as refused:
        if refused.error is not TOPIC_ALREADY_EXISTS:
            raise
