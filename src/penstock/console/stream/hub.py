"""All tabs that are open, and what the samplers tell them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Final

from penstock.console.failures import Declined, bad_request
from penstock.console.people.vision import Vision
from penstock.console.sampler.happened import Logged
from penstock.console.sampler.sampler import Outage, Sampler
from penstock.console.stream.subscriptions import Subscriptions
from penstock.console.stream.tab import BrowserTab, framed
from penstock.console.views.overview import event_item
from penstock.console.views.seeing import outage_words

TABS_MAX: Final = 500
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{16,64}")

VisionOf = Callable[[str, str], Awaitable[Vision]]
"""What the owner of a tab may see of a cluster, by its name."""
EVENTS_WAITING_MAX: Final = 10_000


class Hub:
    """Lives on the loop that serves browsers; samplers speak to it from their threads."""

    def __init__(self, samplers: Iterable[Sampler], vision_of: VisionOf, subscriptions: Subscriptions) -> None:
        self._loop = asyncio.get_running_loop()
        self.subscriptions = subscriptions
        self._tabs: dict[str, BrowserTab] = {}
        self._vision_of = vision_of
        self._happened: asyncio.Queue[tuple[str, Logged]] = asyncio.Queue(EVENTS_WAITING_MAX)
        self._telling = asyncio.create_task(self._tell_what_happened())
        for sampler in samplers:
            sampler.listen(self._hear)

    def open(self, name: str, owner: str) -> BrowserTab:
        """A tab that comes again takes its own place; that of somebody else it cannot take."""
        if not _NAME.fullmatch(name):
            raise bad_request("tab: 16 to 64 letters, digits, _ or - were expected")
        known = self._tabs.get(name)
        if known is not None and known.owner != owner:
            raise Declined(403, "forbidden", "this tab is somebody else's")
        if known is None and len(self._tabs) >= TABS_MAX:
            raise Declined(429, "too_many", f"{TABS_MAX} tabs are open", "close some", retry_after_s=30)
        if known is not None:
            known.end("replaced", "the same tab has opened another stream")
        tab = self._tabs[name] = BrowserTab(name, owner)
        return tab

    async def events(self, tab: BrowserTab, hello: bytes) -> AsyncIterator[bytes]:
        try:
            yield framed("hello", hello)
            while not tab.ended:
                yield await tab.take()
            yield await tab.take()
        finally:
            self.forget(tab)

    def tab(self, name: str, owner: str) -> BrowserTab:
        """A tab whose stream is open."""
        found = self._tabs.get(name)
        if found is None or found.owner != owner:
            raise Declined(409, "conflict", "this tab has no event stream", "open api/v1/events?tab=… first")
        return found

    def forget(self, tab: BrowserTab) -> None:
        tab.ended = True
        self.subscriptions.forget(tab)
        if self._tabs.get(tab.name) is tab:
            del self._tabs[tab.name]

    def left(self, owner: str) -> None:
        """Who has logged out waits for nothing any more."""
        for tab in [each for each in self._tabs.values() if each.owner == owner]:
            self.subscriptions.forget(tab)
            tab.end("logged_out", "this login has ended")

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
            if what == "trouble":
                outage = told if isinstance(told, Outage) else None
                tab.put_newest(f"trouble {cluster}", what, {"cluster": cluster, "trouble": outage_words(outage)})
            elif isinstance(told, list):
                as_of = max(sampler.picture.at_ms.values(), default=None) if sampler.picture else None
                data = {"cluster": cluster, "parts": told, "as_of_ms": as_of}
                tab.put_newest(f"sampled {cluster} {','.join(told)}", what, data)

    async def _tell_what_happened(self) -> None:
        """One after the other: before somebody is told, it is asked what that very person may see."""
        while True:
            cluster, told = await self._happened.get()
            for owner in {tab.owner for tab in self._tabs.values()}:
                vision = await self._vision_of(owner, cluster)
                if vision.occurrence(told.what):
                    for tab in [each for each in self._tabs.values() if each.owner == owner]:
                        tab.put("event", {"cluster": cluster, **event_item(told)})
