"""All tabs that are open, and what the samplers tell them."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Final

from penstock.console.failures import Declined, bad_request
from penstock.console.people.vision import ANYBODY, Vision
from penstock.console.sampler.happened import Logged
from penstock.console.sampler.sampler import Outage, Sampler
from penstock.console.stream.subscriptions import Subscriptions
from penstock.console.stream.tab import BrowserTab, framed
from penstock.console.views.overview import event_item
from penstock.console.views.seeing import outage_words
from penstock.model.errors import PenstockError

log = logging.getLogger(__name__)

TABS_MAX: Final = 500
TABS_OF_ONE_MAX: Final = 50
"""Of one person, where people log in."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{16,64}")

VisionOf = Callable[[str, str], Awaitable[Vision]]
"""What the owner of a tab may see of a cluster, by its name. PenstockError when nobody can be asked."""
Belongs = Callable[[str, str], bool]
"""Whether the owner of a tab is in a cluster at all."""
EVENTS_WAITING_MAX: Final = 10_000
TOLD_AT_ONCE: Final = 200
ASKED_WITHIN_S: Final = 5.0
"""Whose brokers say nothing for so long is not told what happened: the others need not wait for longer."""


class Hub:
    """Lives on the loop that serves browsers; samplers speak to it from their threads."""

    def __init__(
        self, samplers: Iterable[Sampler], vision_of: VisionOf, belongs: Belongs, subscriptions: Subscriptions
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._belongs = belongs
        self.subscriptions = subscriptions
        self._tabs: dict[str, BrowserTab] = {}
        self._vision_of = vision_of
        self._happened: asyncio.Queue[tuple[str, Logged]] = asyncio.Queue(EVENTS_WAITING_MAX)
        self._telling = asyncio.create_task(self._tell_what_happened())
        for sampler in samplers:
            sampler.listen(self._hear)

    def open(self, name: str, owner: str, person: str = "") -> BrowserTab:
        """A tab that comes again takes its own place; that of somebody else it cannot take. No person is anybody."""
        if not _NAME.fullmatch(name):
            raise bad_request("tab: 16 to 64 letters, digits, _ or - were expected")
        known = self._tabs.get(name)
        if known is not None and known.owner != owner:
            raise Declined(403, "forbidden", "this tab is somebody else's")
        if known is None and len(self._tabs) >= TABS_MAX:
            raise Declined(429, "too_many", f"{TABS_MAX} tabs are open", "close some", retry_after_s=30)
        mine = sum(each.person == person for each in self._tabs.values()) if person else 0
        if known is None and mine >= TABS_OF_ONE_MAX:
            raise Declined(429, "too_many", f"{mine} tabs of yours are open", "close some", retry_after_s=30)
        if known is not None:
            known.end("replaced", "the same tab has opened another stream")
        tab = self._tabs[name] = BrowserTab(name, owner, person, self._let_go)
        return tab

    async def events(self, tab: BrowserTab, hello: bytes) -> AsyncIterator[bytes]:
        yield framed("hello", hello)
        while not tab.over:
            yield await tab.take()

    def tab(self, name: str, owner: str) -> BrowserTab:
        """A tab whose stream is open."""
        found = self._tabs.get(name)
        if found is None or found.owner != owner:
            raise Declined(409, "conflict", "this tab has no event stream", "open api/v1/events?tab=… first")
        return found

    def forget(self, tab: BrowserTab) -> None:
        """A tab whose stream is over, however that came."""
        tab.end("gone", "the stream is over")

    def _let_go(self, tab: BrowserTab) -> None:
        self.subscriptions.forget(tab)
        if self._tabs.get(tab.name) is tab:
            del self._tabs[tab.name]

    def left(self, owner: str) -> None:
        """Who has logged out waits for nothing any more."""
        for tab in self._of(owner):
            tab.end("logged_out", "this login has ended")
            # Whoever logs in next in this browser takes the place at once.
            self._tabs.pop(tab.name, None)

    def close(self) -> None:
        self._telling.cancel()
        for tab in list(self._tabs.values()):
            tab.end("stopping", "the console stops")

    def _hear(self, sampler: Sampler, what: str, told: object) -> None:
        """In the sampler's thread."""
        self._loop.call_soon_threadsafe(self._pass_on, sampler, what, told)

    def _pass_on(self, sampler: Sampler, what: str, told: object) -> None:
        cluster = sampler.address.name
        if isinstance(told, Logged):
            if not self._happened.full():
                self._happened.put_nowait((cluster, told))
            return
        for tab in list(self._tabs.values()):
            if not self._belongs(tab.owner, cluster):
                continue
            if what == "trouble":
                words = outage_words(told, told_all=tab.owner == ANYBODY) if isinstance(told, Outage) else None
                data: dict[str, Any] = {"cluster": cluster, "trouble": words}
                tab.put_newest(f"trouble {cluster}", what, data)
            elif isinstance(told, list):
                as_of = max(sampler.picture.at_ms.values(), default=None) if sampler.picture else None
                data = {"cluster": cluster, "parts": told, "as_of_ms": as_of}
                tab.put_newest(f"sampled {cluster} {','.join(told)}", what, data)

    async def _tell_what_happened(self) -> None:
        """Before somebody is told, it is asked what that very person may see: of all of them at once."""
        while True:
            happened = [await self._happened.get()]
            while len(happened) < TOLD_AT_ONCE and not self._happened.empty():
                happened.append(self._happened.get_nowait())
            try:
                owners = {tab.owner for tab in self._tabs.values()}
                await asyncio.gather(*(self._tell(owner, happened) for owner in owners))
            except Exception:
                log.exception("the console did not tell %d events; the log of what happened has them", len(happened))

    async def _tell(self, owner: str, happened: list[tuple[str, Logged]]) -> None:
        clusters = list(dict.fromkeys(cluster for cluster, _ in happened if self._belongs(owner, cluster)))
        seen = dict(zip(clusters, await asyncio.gather(*(self._seen(owner, each) for each in clusters)), strict=True))
        for cluster, told in happened:
            vision = seen.get(cluster)
            if vision is not None and vision.occurrence(told.what):
                for tab in self._of(owner):
                    tab.put("event", {"cluster": cluster, **event_item(told)})

    async def _seen(self, owner: str, cluster: str) -> Vision | None:
        """None for whom nobody can be asked about now, or who is just leaving."""
        try:
            return await asyncio.wait_for(self._vision_of(owner, cluster), ASKED_WITHIN_S)
        except (PenstockError, TimeoutError):
            return None

    def _of(self, owner: str) -> list[BrowserTab]:
        return [each for each in self._tabs.values() if each.owner == owner]
