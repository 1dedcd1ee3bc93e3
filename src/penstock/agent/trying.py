"""What would become of lines, without a broker: the same steps and the same routing, one event at a time."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.agent.portion import Headers, Origin, Portion
from penstock.agent.routing.router import Sorted
from penstock.agent.transforms.chain import Chain

if TYPE_CHECKING:
    from penstock.agent.settings.model import AgentSettings


@dataclass(frozen=True, slots=True)
class Tried:
    """A record that would be sent, or an event that would not."""

    line: bytes
    """The event as it came."""
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
    """A `Tried` for each record of each line, in order; one that says so for a line that is filtered.

    KeyError when there is no such input. `path` and `peer` are what templates and headers say of the origin.
    """
    chosen = settings.inputs[input_name]
    chain = Chain(chosen.steps, chosen.routing, input=input_name, host=settings.host, chance=chance or random.Random())
    origin = Origin(input_name, settings.host, path, peer)
    position = 0
    for line in lines:
        now = int(time.time() * 1_000) if now_ms is None else now_ms
        yield from _tried(line, chain.apply(Portion(origin, [line], positions=[position]), now))
        position += len(line) + 1


def _tried(line: bytes, sorted_: Sorted) -> Iterator[Tried]:
    if not sorted_.parcels:
        yield Tried(line, filtered=True, why=", ".join(sorted_.reasons))
    for index, parcel in enumerate(sorted_.parcels):
        headers = parcel.headers[0] if parcel.headers else ()
        yield Tried(
            line=line,
            topic=parcel.topic,
            key=parcel.keys[0] if parcel.keys else None,
            value=parcel.values[0],
            headers=headers,
            timestamp_ms=parcel.timestamps_ms[0] if parcel.timestamps_ms else None,
            why=next((value.decode() for name, value in headers if name == "agent.error"), ""),
            dead=bool(sorted_.dead) and index == len(sorted_.parcels) - 1,
        )
