"""The log of what happened, newest first, in bounded memory; what is repeated many times becomes one entry. Pure.

Whoever sends records through the console does so again and again. The first time is told at once; those that follow
within some seconds are added up and told together, so that they neither fill the log nor wake every browser each time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from penstock.console.sampler.changes import Occurrence

REMEMBERED: Final = 2_000
"""So many happenings are remembered."""
TOGETHER_MS: Final = 10_000
SUMMED: Final = {"send_records": "records"}
"""Changes that are told together, and what of them is added up."""
SHOWN: Final = 20
TEXT_SHOWN: Final = 500
"""What happened is kept and sent to every tab: of long lists in it so many entries, and so much of long texts. All of
a reset of a thousand partitions is in the audit."""
_APART_MAX: Final = 500
"""Of so many persons and topics it is known that they repeat something; of any more each time is told."""


@dataclass(frozen=True, slots=True)
class Logged:
    """Something that happened, with its number and time."""

    id: int
    at_ms: int
    what: Occurrence


@dataclass(slots=True)
class _Repeated:
    """What was told once, and what came of the same since."""

    until_ms: int
    first: Occurrence
    times: int = 0
    total: int = 0


class Happened:
    """Who tells it something gets the entries that are worth telling on."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._entries: deque[Logged] = deque(maxlen=most)
        self._told = 0
        self._repeated: dict[tuple[Any, ...], _Repeated] = {}

    def tell(self, what: Occurrence, now_ms: int) -> list[Logged]:
        """Takes something into the log, or adds it to what is told later."""
        summed = SUMMED.get(what.params.get("action", ""))
        if summed is None:
            return [self._add(what, now_ms)]
        told = self.due(now_ms)
        key = (what.params.get("by"), what.params["action"], what.topics)
        known = self._repeated.get(key)
        if known is not None:
            known.times += 1
            known.total += what.params.get(summed, 0)
            return told
        if len(self._repeated) < _APART_MAX:
            self._repeated[key] = _Repeated(now_ms + TOGETHER_MS, what)
        return [*told, self._add(what, now_ms)]

    def due(self, now_ms: int) -> list[Logged]:
        """What was added up long enough; what was repeated goes on being added up."""
        told = []
        for key, known in list(self._repeated.items()):
            if known.until_ms > now_ms:
                continue
            if known.times:
                told.append(self._add(_together(known), now_ms))
                self._repeated[key] = _Repeated(now_ms + TOGETHER_MS, known.first)
            else:
                del self._repeated[key]
        return told

    def newest(self) -> list[Logged]:
        return list(reversed(self._entries))

    def _add(self, what: Occurrence, now_ms: int) -> Logged:
        self._told += 1
        entry = Logged(self._told, now_ms, replace(what, text=_brief(what.text), params=_brief(what.params)))
        self._entries.append(entry)
        return entry


def _brief(value: Any) -> Any:
    """A value with short lists and texts; an object says beside a list how many more there were."""
    if isinstance(value, str):
        return value if len(value) <= TEXT_SHOWN else f"{value[:TEXT_SHOWN]}…"
    if isinstance(value, (list, tuple)):
        return [_brief(each) for each in value[:SHOWN]]
    if isinstance(value, dict):
        shown = {name: _brief(each) for name, each in islice(value.items(), SHOWN)}
        for name in list(shown):
            whole = value[name]
            if isinstance(whole, (list, tuple, dict)) and len(whole) > SHOWN:
                shown[f"{name}_more"] = len(whole) - SHOWN
        return shown
    return value


def _together(known: _Repeated) -> Occurrence:
    first, summed = known.first, SUMMED[known.first.params["action"]]
    where = f" to {', '.join(first.topics)}" if first.topics else ""
    text = f"{first.params.get('by')}: {known.total} {summed} sent{where}, in {known.times} requests"
    return replace(first, text=text, params={**first.params, summed: known.total, "times": known.times})
