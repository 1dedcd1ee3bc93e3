"""What tabs wait for beside what everybody hears: tails and searches, with bounds on how many there are."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from penstock.console.failures import Declined
from penstock.console.stream.tab import BrowserTab

A_TAB_MAX: Final = 4
SEARCHES_MAX: Final = 4
TAILS_MAX: Final = 50
TAILS_OF_ONE_MAX: Final = 10

Tell = Callable[[dict[str, Any]], None]


class Running(Protocol):
    """What is under way: a future of this loop or of a thread."""

    def cancel(self) -> bool: ...
    def add_done_callback(self, fn: Callable[[Any], object], /) -> None: ...


Begin = Callable[[Tell], Running]
"""Given whom to tell, starts it; it may tell from any thread."""


@dataclass(slots=True)
class _Subscription:
    id: str
    kind: str
    person: str
    tab: BrowserTab
    running: Running | None = None


class Subscriptions:
    """Lives on the loop that serves browsers."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._open: dict[str, _Subscription] = {}

    def begin(self, tab: BrowserTab, kind: str, person: str, begin: Begin) -> str:
        """Starts a tail or a search for a tab; Declined when there are too many, or nobody to tell any more."""
        if tab.ended:
            # It went while brokers were asked; nothing would ever end what is begun for it now.
            raise Declined(409, "conflict", "this tab has no event stream", "open api/v1/events?tab=… first")
        self._check(tab, kind, person)
        subscription = _Subscription(f"{kind[0]}{next(self._numbers)}", kind, person, tab)
        self._open[subscription.id] = subscription

        def tell(told: dict[str, Any]) -> None:
            self._soon(self._pass_on, subscription, told)

        try:
            subscription.running = begin(tell)
        except BaseException:
            del self._open[subscription.id]
            raise
        subscription.running.add_done_callback(lambda _: self._soon(self._open.pop, subscription.id, None))
        return subscription.id

    def end(self, tab: BrowserTab, subscription_id: str) -> bool:
        """Whether there was such a one of this tab."""
        found = self._open.get(subscription_id)
        if found is None or found.tab is not tab:
            return False
        if found.running is not None:
            found.running.cancel()
        return True

    def forget(self, tab: BrowserTab) -> None:
        """A tab that is gone waits for nothing."""
        for found in [each for each in self._open.values() if each.tab is tab]:
            self.end(tab, found.id)

    def _check(self, tab: BrowserTab, kind: str, person: str) -> None:
        mine = [each for each in self._open.values() if each.tab is tab]
        if len(mine) >= A_TAB_MAX:
            raise _too_many(f"this tab waits for {A_TAB_MAX} things already", "stop one of them")
        same = [each for each in self._open.values() if each.kind == kind]
        of_one = sum(each.person == person for each in same)
        if kind == "search":
            if of_one:
                raise _too_many("a search of yours is under way", "stop it, or wait for its end")
            if len(same) >= SEARCHES_MAX:
                raise _too_many(f"{SEARCHES_MAX} searches are under way", "try again in some seconds")
        elif of_one >= TAILS_OF_ONE_MAX:
            raise _too_many(f"{of_one} tails of yours are open", "close one of them")
        elif len(same) >= TAILS_MAX:
            raise _too_many(f"{TAILS_MAX} tails are open", "close one of them")

    def _soon(self, call: Callable[..., object], *arguments: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *arguments)

    def _pass_on(self, subscription: _Subscription, told: dict[str, Any]) -> None:
        subscription.tab.put(subscription.kind, {"id": subscription.id, **told})


def _too_many(message: str, attempt: str) -> Declined:
    return Declined(429, "too_many", message, attempt, retry_after_s=5)
