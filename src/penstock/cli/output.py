"""How results look: tables for people, JSON and YAML for programs."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import click

_UNBROKEN = re.compile(r"(?:`[^`]*`|[^\s`]|`)+")
_YAML_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


def show(data: Any, style: str, text: str) -> None:
    """Prints `data` for programs or `text` for people."""
    if style == "json":
        click.echo(json.dumps(data, indent=2))
    elif style == "yaml":
        click.echo("\n".join(yaml_lines(data)))
    elif text:
        click.echo(text)


def table(headings: Sequence[str], rows: Sequence[Sequence[Any]], *, width: int | None = None) -> str:
    """Left-aligned columns, numbers to the right; None is a dash.

    What is wider than `width`, the terminal's if None, is folded: each row becomes lines of its own, a cell on each.
    Nothing is cut, and an id is never broken by us.
    """
    cells = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    numeric = [_numeric([row[i] for row in rows]) for i in range(len(headings))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()

    lines = [line(headings), *(line(row) for row in cells)]
    room = terminal_columns(sys.stdout) if width is None else width
    if room is None or not cells or max(map(len, lines)) <= room:
        return "\n".join(lines)
    return "\n\n".join(_folded(headings, row) for row in cells)


def _folded(headings: Sequence[str], cells: Sequence[str]) -> str:
    width = max(map(len, headings))
    return "\n".join(f"{heading:{width}}  {cell}".rstrip() for heading, cell in zip(headings, cells, strict=True))


def wrapped(line: str, *, indent: int = 0, width: int | None = None) -> str:
    """A line of prose as lines that fit into `width`, the terminal's if None; all but the first are indented.

    What stands in backticks is a command that somebody will copy, so it is never broken, however long it is.
    """
    room = terminal_columns(sys.stdout) if width is None else width
    if room is None or len(line) <= room:
        return line
    first, *words = _UNBROKEN.findall(line)
    lines = [line[: len(line) - len(line.lstrip())] + first]
    for word in words:
        if len(lines[-1]) + 1 + len(word) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(" " * indent + word)
    return "\n".join(lines)


def terminal_columns(stream: TextIO) -> int | None:
    """How wide the terminal behind a stream is; None when there is none, and lines may be as long as they are."""
    if not stream.isatty():
        return None
    try:
        return int(os.environ.get("COLUMNS", "")) or None
    except ValueError:
        return os.get_terminal_size(stream.fileno()).columns or None


def _numeric(column: Sequence[Any]) -> bool:
    present = [cell for cell in column if cell is not None]
    return bool(present) and all(isinstance(cell, (int, float)) for cell in present)


def yaml_lines(data: Any, indent: int = 0) -> list[str]:
    """Block-style YAML of plain data."""
    pad = "  " * indent
    if not data or not isinstance(data, (Mapping, list, tuple)):
        return [f"{pad}{_yaml_scalar(data)}"]
    lines = []
    if isinstance(data, Mapping):
        for key, value in data.items():
            if value and isinstance(value, (Mapping, list, tuple)):
                lines += [f"{pad}{_yaml_key(key)}:", *yaml_lines(value, indent + 1)]
            else:
                lines.append(f"{pad}{_yaml_key(key)}: {_yaml_scalar(value)}")
        return lines
    for item in data:
        first, *rest = yaml_lines(item, indent + 1)
        lines += [f"{pad}- {first.lstrip()}", *rest]
    return lines


def _yaml_scalar(value: Any) -> str:
    """As JSON, which YAML reads alike but for what is corrected here."""
    if isinstance(value, float):
        if value in (float("inf"), float("-inf")):
            return ".inf" if value > 0 else "-.inf"
        text = repr(value)
        # Without a point YAML takes 1e+16 for a word.
        return text if "." in text else text.replace("e", ".0e")
    if not isinstance(value, str):
        return json.dumps(value)
    return "".join(char if char.isprintable() else _yaml_escape(char) for char in json.dumps(value, ensure_ascii=False))


def _yaml_escape(char: str) -> str:
    number = ord(char)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _yaml_key(key: object) -> str:
    """Words such as `on` and `null` mean something else to YAML when they stand bare."""
    text = str(key)
    bare = text.isascii() and text.isidentifier() and text.lower() not in _YAML_WORDS
    return text if bare else _yaml_scalar(text)
