"""Texts with holes: `logs.{service}`, `{http.status|none}`. Pure.

A hole is one of input, host, path, file, peer, which are the same for a whole portion, or else a field of the event;
`{.host}` means the field where the names are equal. Behind a bar stands what is filled in when it is not there.
`{{` and `}}` are braces.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final, TypeAlias

from penstock.agent.portion import Origin
from penstock.conditions.paths import Fields, getter, wrong_path
from penstock.conditions.texts import as_text

ORIGIN_NAMES: Final = ("input", "host", "path", "file", "peer")

Fill: TypeAlias = Callable[[Fields], str | None]

_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class TemplateBroken(ValueError):
    """A template that cannot be read; `at` is where in its text."""

    def __init__(self, words: str, at: int) -> None:
        super().__init__(words)
        self.words, self.at = words, at


@dataclass(frozen=True, slots=True)
class Hole:
    name: str
    """A name of the origin, or the path of a field."""
    of_origin: bool
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """A text and its holes, in order."""

    text: str
    parts: tuple[str | Hole, ...]

    @staticmethod
    def parse(text: str) -> Template:
        parts: list[str | Hole] = []
        end = 0
        for found in _PIECE.finditer(text):
            parts.append(text[end : found.start()])
            end = found.end()
            if found[0] in ("{{", "}}"):
                parts.append(found[0][0])
            elif found[1] is None:
                raise TemplateBroken(f"{found[0]!r} has no partner; write it twice to mean it", found.start())
            else:
                parts.append(_hole(found[1], found.start() + 1))
        parts.append(text[end:])
        return Template(text, _joined(parts))

    @property
    def constant(self) -> str | None:
        """The whole text when nothing is to be filled in."""
        return None if any(isinstance(part, Hole) for part in self.parts) else "".join(map(str, self.parts))

    @property
    def fields(self) -> tuple[str, ...]:
        """Which fields of an event it needs."""
        return tuple(part.name for part in self.parts if isinstance(part, Hole) and not part.of_origin)

    def filled(self, text: str) -> str:
        """With the same text in every hole that is a field's."""
        return "".join(part if isinstance(part, str) else text for part in self.parts)

    def bind(self, origin: Origin) -> str | Fill | None:
        """For the events of one origin: a text if that settles it, None if it never can be, else what fills it in."""
        parts: list[str | Hole] = []
        for part in self.parts:
            if isinstance(part, Hole) and part.of_origin:
                value = of_origin(origin, part.name) or part.default
                if value is None:
                    return None
                part = value
            parts.append(part)
        settled = _joined(parts)
        if all(isinstance(part, str) for part in settled):
            return "".join(map(str, settled))
        return _filler(settled)

    def copied(self) -> str | None:
        """The field that it is nothing but: such a value keeps its kind."""
        if len(self.parts) == 1 and isinstance(self.parts[0], Hole) and not self.parts[0].of_origin:
            return self.parts[0].name if self.parts[0].default is None else None
        return None


def of_origin(origin: Origin, name: str) -> str:
    return PurePath(origin.path).name if name == "file" else str(getattr(origin, name))


def _hole(inside: str, at: int) -> Hole:
    name, bar, default = inside.partition("|")
    own = name.startswith(".")
    path = name[1:] if own else name
    wrong = wrong_path(path)
    if wrong is not None or path != path.strip():
        raise TemplateBroken(f"{{{inside}}} must hold the name of a field or one of {', '.join(ORIGIN_NAMES)}", at)
    return Hole(path, not own and path in ORIGIN_NAMES, default if bar else None)


def _joined(parts: list[str | Hole]) -> tuple[str | Hole, ...]:
    joined: list[str | Hole] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif part != "":
            joined.append(part)
    return tuple(joined)


def _filler(parts: tuple[str | Hole, ...]) -> Fill:
    looked_up = [
        (part, None, None) if isinstance(part, str) else ("", getter(part.name), part.default) for part in parts
    ]

    def fill(fields: Fields) -> str | None:
        pieces = []
        for text, get, default in looked_up:
            if get is not None:
                value: Any = get(fields)
                if value is None:
                    if default is None:
                        return None
                    text = default
                else:
                    text = as_text(value)
            pieces.append(text)
        return "".join(pieces)

    return fill
