"""What records of `__penstock_agent` mean. Pure.

The key is JSON: `[agent, machine]` for the stamp of a transaction, `[agent, machine, input, row]` for a position. Every
transaction writes the stamp: who wrote last, and the number of its transaction. A null value takes a row back. What a
spool has sent is a row of the input `spool:NAME`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.agent.checkpoints import Row
from penstock.agent.exactly.identity import Identity

FORMAT: Final = 1
LIVES_MAX: Final = 32
"""Of so many lives before this one the last transaction is remembered, for what their spool still holds."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Of a transaction: the life of the agent that made it, and which of its transactions it was."""

    life: str
    number: int


@dataclass(slots=True)
class Found:
    """What the topic says of one agent."""

    stamp: Stamp | None = None
    lives: dict[str, int] = field(default_factory=dict)
    """Of each life the number of its last committed transaction."""
    rows: dict[str, dict[str, Row]] = field(default_factory=dict)
    """By input and key."""
    partition: int = 0
    offset: int = -1
    """Of the stamp."""


class UnknownFormat(ValueError):
    """Rows of a newer agent: to pass them over would be to read its files again."""


def key_of(identity: Identity, *place: str) -> bytes:
    # Names of files are not always UTF-8, and ASCII holds their surrogates.
    return json.dumps([identity.agent, identity.machine, *place], separators=(",", ":")).encode("ascii")


def stamp_record(identity: Identity, stamp: Stamp, lives: Mapping[str, int]) -> tuple[bytes, bytes]:
    known = list(lives.items())[-LIVES_MAX:]
    value = {"format": FORMAT, "life": stamp.life, "number": stamp.number, "lives": dict(known)}
    return key_of(identity), _packed(value)


def row_records(
    identity: Identity, input: str, rows: Iterable[Row], forgotten: Iterable[str]
) -> list[tuple[bytes, bytes | None]]:
    """Rows first: one that is in both is forgotten."""
    made: list[tuple[bytes, bytes | None]] = [(key_of(identity, input, row.key), _value(row)) for row in rows]
    return made + [(key_of(identity, input, key), None) for key in forgotten]


def take_in(found: Found, identity: Identity, key: bytes | None, value: bytes | None, offset: int) -> None:
    """One more record of the topic. Those of others, and what is no record of ours, change nothing."""
    place = _place(identity, key)
    if place is None:
        return
    if not place:
        if value is None:
            found.stamp, found.offset = None, -1
        else:
            _take_stamp(found, json.loads(value), offset)
        return
    input, row = place
    if value is None:
        found.rows.get(input, {}).pop(row, None)
        return
    told = json.loads(value)
    found.rows.setdefault(input, {})[row] = Row(row, told["path"], told["position"], told["facts"])


def _take_stamp(found: Found, told: Mapping[str, Any], offset: int) -> None:
    if told["format"] > FORMAT:
        raise UnknownFormat(f"positions of format {told['format']}")
    found.stamp, found.offset = Stamp(told["life"], told["number"]), offset
    found.lives = {**told["lives"], told["life"]: told["number"]}


def _place(identity: Identity, key: bytes | None) -> tuple[str, ...] | None:
    """Behind agent and machine: nothing for the stamp, input and row for a row; None for what is not ours."""
    try:
        place = json.loads(key or b"")
    except ValueError:
        return None
    if not isinstance(place, list) or place[:2] != [identity.agent, identity.machine] or len(place) not in (2, 4):
        return None
    return tuple(place[2:])


def _value(row: Row) -> bytes:
    return _packed({"path": row.path, "position": row.position, "facts": row.facts})


def _packed(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")
