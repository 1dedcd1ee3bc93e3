"""When the keys of an identity provider are fetched, and what is known until then. A machine without a clock.

| event | what it does |
|---|---|
| `due(now)` | tells when to fetch next; the shell sleeps until then and begins a fetch |
| `begin(now)` | one fetch is under way; another is not begun meanwhile |
| `fetched(keys, now)` | the keys count from now on; the next fetch is a period away |
| `failed(now)` | the keys that are known stay; the next try comes after 100 ms, then twice that, up to 10 s |
| `find(kid, now)` | the keys of that id; or `Missing`, which says whether a fetch that is now due may bring it |

A key id that nobody knows brings one fetch forward, and that id not again for a minute. Strangers choose key ids, so
the table of missing ones is bounded, and fetches that they bring forward are some seconds apart however many they draw.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.security.oauth.jws import Key

MISSING_MAX: Final = 16
MISSING_CHARACTERS_MAX: Final = 1_000
MISSING_FOR_MS: Final = 60_000
HASTENED_APART_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class RefreshPolicy:
    """`sasl.oauthbearer.jwks.endpoint.refresh.ms`, `.retry.backoff.ms` and `.retry.backoff.max.ms`."""

    refresh_ms: int = 3_600_000
    backoff_ms: int = 100
    backoff_max_ms: int = 10_000


@dataclass(frozen=True, slots=True)
class Missing:
    """No key of that id is known. `worth_waiting`: a fetch is due or under way that may bring it."""

    worth_waiting: bool


class KeySet:
    """The keys of one provider. `now` is monotonic time in milliseconds."""

    def __init__(self, policy: RefreshPolicy) -> None:
        self._policy = policy
        self._keys: Mapping[str | None, Sequence[Key]] = {}
        self._due_ms: float | None = None  # None: at once, nothing was ever fetched
        self._fetched_ms: float | None = None
        self._hastened_ms: float | None = None
        self._failures = 0
        self._fetching = False
        self._missing: OrderedDict[str, float] = OrderedDict()  # key id → when it brought a fetch forward

    def due(self, now: float) -> float:
        """When to fetch next; infinity while a fetch is under way."""
        if self._fetching:
            return float("inf")
        return now if self._due_ms is None else self._due_ms

    def age_ms(self, now: float) -> float | None:
        """How old the keys are, for metrics; None when there are none yet."""
        return None if self._fetched_ms is None else now - self._fetched_ms

    def begin(self, now: float) -> None:
        assert not self._fetching, "one fetch at a time"
        self._fetching = True

    def fetched(self, keys: Mapping[str | None, Sequence[Key]], now: float) -> None:
        self._keys, self._fetched_ms, self._failures = keys, now, 0
        self._fetching = False
        self._due_ms = now + self._policy.refresh_ms
        for key_id in [key_id for key_id in self._missing if key_id in keys]:
            del self._missing[key_id]

    def failed(self, now: float) -> None:
        wait_ms = min(self._policy.backoff_ms << min(self._failures, 20), self._policy.backoff_max_ms)
        self._failures += 1
        self._fetching = False
        self._due_ms = now + wait_ms

    def find(self, key_id: str | None, now: float) -> Sequence[Key] | Missing:
        """The keys that may have signed a token. A token without a key id may be signed by any key."""
        if key_id is None and self._keys:
            return [key for keys in self._keys.values() for key in keys]
        if (keys := self._keys.get(key_id)) is not None:
            return keys
        return Missing(self._fetch_helps(key_id, now))

    def _fetch_helps(self, key_id: str | None, now: float) -> bool:
        if self._fetching or self._fetched_ms is None:
            return True
        if key_id is None or not self._may_hasten(key_id, now):
            return False
        self._missing[key_id] = now
        self._missing.move_to_end(key_id)
        if len(self._missing) > MISSING_MAX:
            self._missing.popitem(last=False)
        # A fetch that failed keeps its wait: a provider in trouble is not helped by more questions.
        if self._failures == 0:
            self._due_ms = now
            self._hastened_ms = now
        return True

    def _may_hasten(self, key_id: str, now: float) -> bool:
        if len(key_id) >= MISSING_CHARACTERS_MAX:
            return False
        asked_ms = self._missing.get(key_id)
        if asked_ms is not None and now - asked_ms < MISSING_FOR_MS:
            return False
        return self._hastened_ms is None or now - self._hastened_ms >= HASTENED_APART_MS
