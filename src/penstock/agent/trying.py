"""What would become of lines, without a broker: the same steps and the same routing, one event at a time."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.agent.portion import MALFORMED, Headers, Origin, Portion
from penstock.agent.routing.router import Sorted
from penstock.agent.routing.routing import ERROR_HEADER
from penstock.agent.transforms.chain import Chain

if TYPE_CHECKING:
    from penstock.agent.multiline import Multiline
    from penstock.agent.settings.model import AgentSettings, InputSettings


@dataclass(frozen=True, slots=True)
class Tried:
    """A record that would be sent, or an event that would not."""

    line: bytes
    """The event as it came; of several lines where the input joins them."""
    topic: str = ""
    """Empty when it was filtered."""
    key: bytes | None = None
    value: bytes = b""
    headers: Headers = ()
    timestamp_ms: int | None = None
    """None: the time of sending."""
    filtered: bool = False
    why: str = ""
    """Which step took it out, or what failed."""
    dead: bool = False
    """Whether the topic is that of dead letters."""


def try_lines(
    settings: AgentSettings,
    input_name: str,
    lines: Iterable[bytes],
    *,
    path: str = "",
    peer: str = "",
    now_ms: int | None = None,
    chance: random.Random | None = None,
) -> Iterator[Tried]:
    """A `Tried` for each record of each event, in order; one that says so for an event that is filtered.

    KeyError when there is no such input. `path` and `peer` are what templates and headers say of the origin.
    """
    chosen = settings.inputs[input_name]
    chain = Chain(chosen.steps, chosen.routing, input=input_name, host=settings.host, chance=chance or random.Random())
    origin = Origin(input_name, settings.host, path, peer)
    for event, start in _events(lines, getattr(chosen.own, "multiline", None)):
        now = int(time.time() * 1_000) if now_ms is None else now_ms
        yield from _tried(event, chain.apply(_portion(chosen, origin, event, start, now), now))


def _events(lines: Iterable[bytes], multiline: Multiline | None) -> Iterator[tuple[bytes, int]]:
    """Lines, or what a multiline setting joins, with where each begins."""
    start = 0
    gatherer = None if multiline is None else multiline.gatherer()
    for line in lines:
        end = start + len(line) + 1
        if gatherer is None:
            yield line, start
        else:
            for event in gatherer.feed([line], [start], end, 0.0):
                yield event.value, event.start
        start = end
    last = None if gatherer is None else gatherer.flush()
    if last is not None:
        yield last.value, last.start


def _portion(chosen: InputSettings, origin: Origin, event: bytes, start: int, now_ms: int) -> Portion:
    """With the fields that the input itself would make."""
    match chosen.kind:
        case "syslog":
            from penstock.agent.inputs.syslog.parsing import SyslogParser

            parsed = SyslogParser(chosen.own.format, chosen.own.zone).parse(event, now_ms)
            times_ms = None if parsed.time_ms is None else [parsed.time_ms]
            marks = {0: MALFORMED} if parsed.malformed else {}
            return Portion(origin, [event], fields=[parsed.fields], timestamps_ms=times_ms, marks=marks)
        case "http" if event.lstrip().startswith(b"{"):
            from penstock.agent.transforms.parsing.json_lines import parse_json

            # A body of JSON comes with its fields; anything else is taken as it is.
            found = parse_json([event])
            return Portion(origin, [event], fields=None if found.why else found.fields)
    return Portion(origin, [event], positions=[start])


def _tried(event: bytes, result: Sorted) -> Iterator[Tried]:
    if not result.parcels:
        yield Tried(event, filtered=True, why=", ".join(result.reasons))
    for index, parcel in enumerate(result.parcels):
        headers = parcel.headers[0] if parcel.headers else ()
        yield Tried(
            line=event,
            topic=parcel.topic,
            key=parcel.keys[0] if parcel.keys else None,
            value=parcel.values[0],
            headers=headers,
            timestamp_ms=parcel.timestamps_ms[0] if parcel.timestamps_ms else None,
            why=next((value.decode() for name, value in headers if name == ERROR_HEADER), ""),
            dead=bool(result.dead) and index == len(result.parcels) - 1,
        )
