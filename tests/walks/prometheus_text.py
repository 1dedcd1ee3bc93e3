"""Reads Prometheus' text format 0.0.4, and takes nothing that is not exactly that."""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"')
_TYPES = ("counter", "gauge", "histogram", "summary", "untyped")
_SUFFIXES = {"summary": ("", "_sum", "_count"), "histogram": ("_bucket", "_sum", "_count")}


class Found(NamedTuple):
    """One sample."""

    name: str
    labels: dict[str, str]
    value: float


class Family(NamedTuple):
    name: str
    type: str
    help: str
    samples: list[Found]


def families(page: str) -> dict[str, Family]:
    """Every family by its name. HELP and TYPE come once, before the samples, which stand together."""
    assert page.endswith("\n")
    found: dict[str, Family] = {}
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    helped: tuple[str, str] | None = None
    family: Family | None = None
    for line in page[:-1].split("\n"):
        if line.startswith("# HELP "):
            name, _, words = line.removeprefix("# HELP ").partition(" ")
            assert _NAME.fullmatch(name), line
            assert name not in found, f"{name} is described twice"
            helped = (name, words)
        elif line.startswith("# TYPE "):
            name, _, kind = line.removeprefix("# TYPE ").partition(" ")
            assert helped is not None, line
            assert (name, kind in _TYPES) == (helped[0], True), line
            family = found[name] = Family(name, kind, helped[1], [])
        else:
            sample = _sample(line)
            assert family is not None, line
            suffixes = _SUFFIXES.get(family.type, ("",))
            assert sample.name in [family.name + suffix for suffix in suffixes], f"{line} among {family.name}"
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in seen, f"{line} is told twice"
            seen.add(key)
            family.samples.append(sample)
    return found


def samples(page: str) -> list[Found]:
    return [sample for family in families(page).values() for sample in family.samples]


def _sample(line: str) -> Found:
    name = _NAME.match(line)
    assert name is not None, line
    rest, labels = line[name.end() :], {}
    if rest.startswith("{"):
        position = 1
        while rest[position] != "}":
            label = _LABEL.match(rest, position)
            assert label is not None, line
            assert label[1] not in labels, line
            labels[label[1]] = re.sub(r"\\(.)", lambda escaped: {"n": "\n"}.get(escaped[1], escaped[1]), label[2])
            position = label.end() + (rest[label.end()] == ",")
        rest = rest[position + 1 :]
    assert rest.startswith(" "), line
    assert re.fullmatch(r"[+-]?(\d+(\.\d+)?(e[+-]?\d+)?|Inf)|NaN", rest[1:]), line
    return Found(name[0], labels, float(rest[1:]))
