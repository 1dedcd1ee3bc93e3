"""Where in a node's file a property stands, so that what is wrong with it is told with its line. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping

from penstock.declared.positions import Path, Positions
from penstock.model.config.files import property_lines


def lines_of(text: str, *, toml: bool) -> dict[str, int]:
    """The line of each property, counted from 1. The text was parsed before."""
    if not toml:
        return property_lines(text)
    positions = Positions(text)
    return {".".join(map(str, path)): positions.of(path).line for path in _leaves(tomllib.loads(text), ())}


def _leaves(table: Mapping[str, object], above: Path) -> Iterator[Path]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*above, name))
        else:
            yield (*above, name)


def placed(problems: Iterable[str], file: str, lines: Mapping[str, int]) -> list[str]:
    """Each problem under the line of the property that it names first; what names none of the file's comes last."""
    found = [(_line(problem, lines), problem) for problem in problems]
    told = [f"{file}:{line}: {problem}" for line, problem in sorted(each for each in found if each[0])]
    return [*told, *(problem for line, problem in found if not line)]


def _line(problem: str, lines: Mapping[str, int]) -> int:
    words = re.findall(r"[\w.-]*[\w-]", problem)
    return next((lines[word] for word in words if word in lines), 0)
