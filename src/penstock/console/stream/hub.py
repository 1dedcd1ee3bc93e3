"""All tabs that are open, and what the samplers tell them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final

from penstock.console.failures import Declined, bad_request
from penstock.console.people.vision import Vision
from penstock.console.sampler.sampler import Logged, Outage, Sampler
from penstock.console.stream.tab import BrowserTab, framed
from penstock.console.views.overview import event_item
from penstock.console.views.seeing import outage_words

TABS_MAX: Final = 500
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{16,64}")

VisionOf = Callable[[str, str], Vision]
"""What the owner of a tab may see of a cluster, by its name."""


class Hub:
    """Lives on the loop that serves browsers; samplers speak to it from their threads."""

    def __init__(self, samplers: Iterable[Sampler], vision_of: VisionOf) -> None:
        self._loop = asyncio.get_running_loop()
        self._tabs: dict[str, BrowserTab] = {}
        self._vision_of = vision_of
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

    def forget(self, tab: BrowserTab) -> None:
        tab.ended = True
        if self._tabs.get(tab.name) is tab:
            del self._tabs[tab.name]

    def close(self) -> None:
        for tab in list(self._tabs.values()):
            tab.end("stopping", "the console stops")

    def _hear(self, sampler: Sampler, what: str, told: object) -> None:
        """In the sampler's thread."""
        self._loop.call_soon_threadsafe(self._pass_on, sampler, what, told)

    def _pass_on(self, sampler: Sampler, what: str, told: object) -> None:
        cluster = sampler.address.name
        for tab in list(self._tabs.values()):
            if isinstance(told, Logged):
                if self._vision_of(tab.owner, cluster).occurrence(told.what):
                    tab.put("event", {"cluster": cluster, **event_item(told)})
            elif what == "trouble":
                outage = told if isinstance(told, Outage) else None
                tab.put_newest(f"trouble {cluster}", what, {"cluster": cluster, "trouble": outage_words(outage)})
            elif isinstance(told, list):
                as_of = max(sampler.picture.at_ms.values(), default=None) if sampler.picture else None
                data = {"cluster": cluster, "parts": told, "as_of_ms": as_of}
                tab.put_newest(f"sampled {cluster} {','.join(told)}", what, data)
