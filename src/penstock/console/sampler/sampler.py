"""The thread that looks at one cluster, keeps its past, and tells whoever listens what was looked at."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from penstock.client.admin import Admin
from penstock.client.errors import AuthenticationFailed, ClientError, NotReachable, NotTrusted, TimedOutWaiting
from penstock.console.sampler import asking, changes
from penstock.console.sampler.changes import Occurrence
from penstock.console.sampler.lags import EndsSeen, lag_of
from penstock.console.sampler.past import Measured, Past
from penstock.console.sampler.picture import GROUPS, HEALTH, LOG_DIRS, METADATA, OFFSETS, PARTS, Picture
from penstock.console.sampler.schedule import Schedule
from penstock.console.settings import ClusterAddress
from penstock.model.errors import PenstockError

log = logging.getLogger(__name__)

PATIENCE_MS: Final = 8_000
AGAIN_AFTER_S: Final = 1.0
REMEMBERED: Final = 2_000
"""So many happenings are remembered."""
STOP_WITHIN_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Outage:
    """Why the cluster cannot be looked at, and since when."""

    code: str
    message: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class Logged:
    """Something that happened, with its number and time."""

    id: int
    at_ms: int
    what: Occurrence


Listener = Callable[["Sampler", str, object], None]
"""Called in the sampler's thread: `sampled` with the parts, `trouble` with an Outage or None, `event` with a Logged."""


class Sampler:
    """Looks at a cluster until it is stopped. All attributes may be read from any thread."""

    def __init__(self, address: ClusterAddress, every_ms: int) -> None:
        self.address = address
        self.picture: Picture | None = None
        self.outage: Outage | None = None
        self.past, self.ends_seen = Past(), EndsSeen()
        self.happened: deque[Logged] = deque(maxlen=REMEMBERED)
        self._happened_lock = threading.Lock()
        self._told = 0
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
            self._told += 1
            entry = Logged(self._told, time.time_ns() // 1_000_000, what)
            self.happened.append(entry)
        self._speak("event", entry)

    def log(self) -> list[Logged]:
        """What happened, newest first."""
        with self._happened_lock:
            return list(reversed(self.happened))

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

    # -- in the thread

    def _run(self) -> None:
        try:
            asyncio.run(self._look_on())
        except Exception:
            log.exception("the console's look at %s ended; its pages show what was seen last", self.address.name)

    async def _look_on(self) -> None:
        self._wake, self._loop = asyncio.Event(), asyncio.get_running_loop()
        self._ready.set()
        while not self._stopping:
            try:
                keywords = {"request_timeout_ms": PATIENCE_MS // 2, "default_api_timeout_ms": PATIENCE_MS}
                async with Admin(**{**keywords, **self.address.admin}) as admin:
                    await self._look_with(admin)
            except (PenstockError, OSError) as failure:
                self._lost(failure)
                await self._rest(AGAIN_AFTER_S * 1_000)

    async def _look_with(self, admin: Admin) -> None:
        if self.picture is None:
            self.picture = await asking.first_look(admin)
        while not self._stopping:
            looked = [part for part in self._schedule.due(_monotonic_ms()) if await self._look_at(admin, part)]
            if looked:
                self._speak("sampled", looked)
            await self._rest(self._schedule.wait_ms(_monotonic_ms()))

    async def _look_at(self, admin: Admin, part: str) -> bool:
        """Whether it was seen. Who cannot be reached at all costs the whole look; a right that is missing one part."""
        before = self.picture
        if self._stopping or before is None:
            return False
        began = time.thread_time()
        try:
            after = await asking.look(admin, before, part)
        except AuthenticationFailed:
            # Nobody answers whom the other side does not know, or who cannot be trusted: that is no missing right.
            raise
        except (NotReachable, TimedOutWaiting) as away:
            if part in (METADATA, OFFSETS):
                raise
            after = asking.without(before, part, str(away))
        except ClientError as refused:
            after = asking.without(before, part, str(refused))
        after.carry(before)
        now = _monotonic_ms()
        self._schedule.looked(part, now, (time.thread_time() - began) * 1_000, now - self._asked_ms)
        self.picture = after
        if self.outage is not None and part == METADATA:
            self.outage = None
            self._speak("trouble", None)
        if part in after.failed:
            return part not in before.failed
        self._remember(before, after, part)
        return True

    def _remember(self, before: Picture, after: Picture, part: str) -> None:
        now_ms = after.at_ms[part]
        if part == OFFSETS:
            read = dict.fromkeys(item for positions in after.committed.values() for item in positions)
            self.ends_seen.put(now_ms, after.ends, read)
            self._remember_rates(after, now_ms)
        elif part == GROUPS:
            self._remember_lags(before, after, now_ms)
        if part in (METADATA, GROUPS):
            for what in changes.occurrences(before, after):
                self.tell(what)
        if part == METADATA and before.topics is not after.topics:
            self._schedule.soon((OFFSETS, LOG_DIRS, HEALTH), _monotonic_ms())

    def _remember_rates(self, after: Picture, now_ms: int) -> None:
        if not after.rates:
            return
        topics: dict[str, float] = {}
        brokers: dict[int, float] = dict.fromkeys(after.led_by, 0.0)
        for item, rate in after.rates.items():
            topics[item.topic] = topics.get(item.topic, 0.0) + rate
        for node, led in after.led_by.items():
            brokers[node] = sum(after.rates.get(item, 0.0) for item in led)
        self.past.forget("topic", set(after.topics))
        self.past.put(Measured("cluster", "", "in"), now_ms, sum(topics.values()))
        for node, rate in brokers.items():
            self.past.put(Measured("broker", str(node), "in"), now_ms, rate)
        for name, rate in topics.items():
            self.past.put(Measured("topic", name, "in"), now_ms, rate)

    def _remember_lags(self, before: Picture, after: Picture, now_ms: int) -> None:
        self.past.forget("group", set(after.groups))
        seconds = (now_ms - before.at_ms[GROUPS]) / 1_000 if GROUPS in before.at_ms else 0.0
        consumed = 0.0
        for group, positions in after.committed.items():
            offsets = {item: found.offset for item, found in positions.items()}
            self.past.put(Measured("group", group, "lag"), now_ms, sum(lag_of(offsets, after.ends).values()))
            earlier = before.committed.get(group)
            if earlier is not None and seconds > 0:
                read = sum(max(offset - earlier[item].offset, 0) for item, offset in offsets.items() if item in earlier)
                consumed += read / seconds
                self.past.put(Measured("group", group, "consumed"), now_ms, read / seconds)
        if seconds > 0:
            self.past.put(Measured("cluster", "", "out"), now_ms, consumed)

    def _lost(self, failure: Exception) -> None:
        match failure:
            case NotTrusted():
                code = "not_trusted"
            case AuthenticationFailed():
                code = "own_login"
            case NotReachable() | TimedOutWaiting() | OSError():
                code = "unreachable"
            case _:
                code = "failed"
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


def _monotonic_ms() -> float:
    return time.monotonic_ns() / 1e6
