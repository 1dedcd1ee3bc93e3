"""Chains from the text of a file, and what they make of lines."""

from __future__ import annotations

import json
import random
import tomllib
from typing import Any

from penstock.agent.portion import Origin, Parcel, Portion
from penstock.agent.routing.reading import read_routing
from penstock.agent.routing.router import Sorted
from penstock.agent.transforms import Chain
from penstock.declared.fields import Notes, Table
from penstock.declared.mistakes import Mistake
from penstock.declared.positions import Positions

NOW_MS = 1_794_823_200_000
"""2026-11-16T10:00:00Z"""

ORIGIN = Origin("web", "web-1", "/var/log/web.log")


def read(text: str) -> tuple[Chain, list[Mistake], list[Mistake]]:
    """The keys of an input's table, and its transforms as [[transforms]]."""
    notes = Notes(Positions(text))
    table = Table(tomllib.loads(text), (), notes, "inputs.web")
    routing = read_routing(table)
    steps = Chain.read(table.table_list("transforms"), (), notes, routing)
    table.finish()
    chain = Chain(steps, routing, input="web", host="web-1", chance=random.Random(7))
    return chain, sorted(notes.mistakes), sorted(notes.warnings)


def chain(text: str) -> Chain:
    found, mistakes, _ = read(text)
    assert mistakes == []
    return found


def mistakes(text: str) -> list[str]:
    return [mistake.at("agent.toml") for mistake in read(text)[1]]


def steps(*tables: str, head: str = 'topic = "t"') -> str:
    return "\n".join([head, *(f"[[transforms]]\n{table}" for table in tables)])


def apply(text: str, *lines: str | bytes, **portion: Any) -> Sorted:
    values = [line.encode() if isinstance(line, str) else line for line in lines]
    return chain(text).apply(Portion(portion.pop("origin", ORIGIN), values, **portion), NOW_MS)


def fields(text: str, *lines: str | bytes, **portion: Any) -> list[dict[str, Any]]:
    """The values of all records, which must be JSON."""
    return [json.loads(value) for parcel in apply(text, *lines, **portion).parcels for value in parcel.values]


def parcel(text: str, *lines: str | bytes, **portion: Any) -> Parcel:
    """Of what goes to one topic."""
    (only,) = apply(text, *lines, **portion).parcels
    return only


def header(parcel: Parcel, place: int, name: str) -> str | None:
    assert parcel.headers is not None
    return {key: value.decode() for key, value in parcel.headers[place]}.get(name)
