"""The thread that looks at one cluster, keeps its past, and tells whoever listens what was looked at."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from penstock.client.admin import Admin
from penstock.client.errors import ClientError, NotReachable, TimedOutWaiting
from penstock.console.history.keeping import Keeper
from penstock.console.sampler import asking, changes
from penstock.console.sampler.changes import Occurrence
from penstock.console.sampler.happened import Happened, Logged
from penstock.console.sampler.lags import EndsSeen, GroupLag
from penstock.console.sampler.past import Past
from penstock.console.sampler.picture import GROUPS, HEALTH, LOG_DIRS, METADATA, OFFSETS, PARTS, STARTS, Picture
from penstock.console.sampler.schedule import Schedule
from penstock.console.settings import ClusterAddress
from penstock.model.errors import PenstockError

log = logging.getLogger(__name__)

PATIENCE_MS: Final = 8_000
AGAIN_AFTER_S: Final = 1.0
TELL_EVERY_S: Final = 2.0
"""So often it is looked whether something is due that was repeated and added up."""
STOP_WITHIN_S: Final = 10.0
LEAVE_WITHIN_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class Outage:
    """Why the cluster cannot be looked at, and since when."""

    code: str
    message: str
    since_ms: int


Listener = Callable[["Sampler", str, object], None]
"""Called in the sampler's thread: `sampled` with the parts, `trouble` with an Outage or None, `event` with a Logged."""


class Sampler:
    """Looks at a cluster until it is stopped. All attributes may be read from any thread."""

    def __init__(
        self, address: ClusterAddress, every_ms: int, keeper_of: Callable[[Past], Keeper] | None = None
    ) -> None:
        """`keeper_of` makes what keeps the past beyond this process; None keeps it in memory."""
        self.address = address
        self.picture: Picture | None = None
        self.outage: Outage | None = None
        self.past, self.ends_seen = Past(), EndsSeen()
        self.keeper = keeper_of(self.past) if keeper_of is not None else None
        self._happened, self._happened_lock = Happened(), threading.Lock()
        self._listeners: list[Listener] = []
        self._schedule = Schedule(every_ms)
        self._asked_ms = _monotonic_ms()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._stopping = False
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"penstock-sampler-{address.name}", daemon=True)

    # -- from any thread

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        self._stopping = True
        self._poke(())
        self._thread.join(STOP_WITHIN_S)

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def asked(self) -> None:
        """Somebody looks: brokers are asked as often as viewers need."""
        now = _monotonic_ms()
        idle_ms, self._asked_ms = now - self._asked_ms, now
        if idle_ms > 60_000:
            self._poke(PARTS)

    def soon(self, *parts: str) -> None:
        """Something was changed that these parts show."""
        self._poke(parts)

    def tell(self, what: Occurrence) -> None:
        """Puts something that happened into the log, for all who may see it."""
        with self._happened_lock:
            told = self._happened.tell(what, time.time_ns() // 1_000_000)
        self._speak_of(told)

    def log(self) -> list[Logged]:
        """What happened, newest first."""
        with self._happened_lock:
            return self._happened.newest()

    def _poke(self, parts: Iterable[str]) -> None:
        loop = self._loop
        if loop is None:
            return

        def poke() -> None:
            self._schedule.soon(parts, _monotonic_ms())
            assert self._wake is not None, "it is made before the loop is known"
            self._wake.set()

        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody looks any more
            loop.call_soon_threadsafe(poke)

    def _speak(self, what: str, told: object) -> None:
        for listener in self._listeners:
            listener(self, what, told)

    def _speak_of(self, entries: Iterable[Logged]) -> None:
        for entry in entries:
            self._speak("event", entry)

    # -- in the thread

    def _run(self) -> None:
        try:
            asyncio.run(self._look_on())
        except Exception:
            log.exception("the console's look at %s ended; its pages show what was seen last", self.address.name)

    async def _look_on(self) -> None:
        self._wake, self._loop = asyncio.Event(), asyncio.get_running_loop()
        self._ready.set()
        beside = [asyncio.create_task(self._tell_on())]
        if self.keeper is not None:
            beside.append(asyncio.create_task(self.keeper.run()))
        try:
            while not self._stopping:
                try:
                    keywords = {"request_timeout_ms": PATIENCE_MS // 2, "default_api_timeout_ms": PATIENCE_MS}
                    async with Admin(**{**keywords, **self.address.admin}) as admin:
                        await self._look_with(admin)
                except (PenstockError, OSError) as failure:
                    self._lost(failure)
                    await self._rest(AGAIN_AFTER_S * 1_000)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside, timeout=LEAVE_WITHIN_S)

    async def _tell_on(self) -> None:
        while True:
            await asyncio.sleep(TELL_EVERY_S)
            with self._happened_lock:
                told = self._happened.due(time.time_ns() // 1_000_000)
            self._speak_of(told)

    async def _look_with(self, admin: Admin) -> None:
        if self.picture is None:
            first = await asking.first_look(admin)
            first.carry(first)
            self.picture = first
        while not self._stopping:
            looked, part = [], self._schedule.next_due(_monotonic_ms())
            while part is not None and not self._stopping:
                if await self._look_at(admin, part):
                    looked.append(part)
                part = self._schedule.next_due(_monotonic_ms(), part)
            if looked:
                self._speak("sampled", looked)
            await self._rest(self._schedule.wait_ms(_monotonic_ms()))

    async def _look_at(self, admin: Admin, part: str) -> bool:
        """Whether it was seen. Who cannot be reached at all costs the whole look; a right that is missing one part.

        Everything that a look makes this thread do is counted as its cost.
        """
        before = self.picture
        assert before is not None, "the first look is over"
        began = time.thread_time()
        try:
            after = await asking.look(admin, before, part, self.ends_seen)
        except (NotReachable, TimedOutWaiting) as away:
            if part in (METADATA, OFFSETS):
                raise
            after = asking.without(before, part, str(away))
        except ClientError as refused:
            after = asking.without(before, part, str(refused))
        self.picture = after
        if self.outage is not None and part == METADATA:
            self.outage = None
            self._speak("trouble", None)
        failed = part in after.failed
        if not failed:
            self._remember(before, after, part)
        now = _monotonic_ms()
        idle_ms = now - self._asked_ms
        self._schedule.looked(part, now, (time.thread_time() - began) * 1_000, idle_ms)
        if not failed:
            for along in asking.TAKES_ALONG.get(part, ()):
                self._schedule.taken_along(along, now, idle_ms)
        if part == METADATA and before.topics is not after.topics:
            self._schedule.soon((OFFSETS, STARTS, LOG_DIRS, HEALTH), now)
        return not failed or part not in before.failed

    def _remember(self, before: Picture, after: Picture, part: str) -> None:
        if part in (OFFSETS, GROUPS):
            self._remember_rates(after)
        if part == GROUPS:
            self._remember_lags(after)
        if part in (METADATA, GROUPS):
            for what in changes.occurrences(before, after):
                self.tell(what)

    def _remember_rates(self, after: Picture) -> None:
        if not after.rates:
            return
        now_ms, topics = after.at_ms[OFFSETS], after.topic_rates
        brokers = {
            str(node): {"in": sum(after.rates.get(item, 0.0) for item in led)} for node, led in after.led_by.items()
        }
        cluster = {"in": sum(topics.values())}
        if after.byte_rates:
            cluster["bytes_in"] = sum(after.byte_rates.values())
        self.past.put("cluster", now_ms, {"": cluster})
        self.past.put("broker", now_ms, brokers)
        self.past.forget("topic", after.topics)
        self.past.put("topic", now_ms, {name: {"in": rate} for name, rate in topics.items()}, topics)

    def _remember_lags(self, after: Picture) -> None:
        self.past.forget("group", after.groups)
        numbers = {name: _numbers_of(lag) for name, lag in after.lags.items()}
        now_ms, consumed = after.at_ms[GROUPS], {name: each.get("consumed", 0.0) for name, each in numbers.items()}
        self.past.put("group", now_ms, numbers, consumed)
        if any("consumed" in each for each in numbers.values()):
            self.past.put("cluster", now_ms, {"": {"out": sum(consumed.values())}})

    def _lost(self, failure: Exception) -> None:
        code = "unreachable" if isinstance(failure, (NotReachable, TimedOutWaiting, OSError)) else "failed"
        since = self.outage.since_ms if self.outage else time.time_ns() // 1_000_000
        outage = Outage(code, str(failure), since)
        if outage != self.outage:
            self.outage = outage
            self._speak("trouble", outage)

    async def _rest(self, wait_ms: float) -> None:
        assert self._wake is not None, "the loop runs"
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), wait_ms / 1_000)
        self._wake.clear()


def _numbers_of(lag: GroupLag) -> dict[str, float]:
    told = {"lag": lag.records, "consumed": lag.consumed}
    return {name: float(number) for name, number in told.items() if number is not None}


def _monotonic_ms() -> float:
    return time.monotonic_ns() / 1e6
