"""How results look: tables for people, JSON and YAML for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

_YAML_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


def show(data: Any, style: str, text: str) -> None:
    """Prints `data` for programs or `text` for people."""
    if style == "json":
        click.echo(json.dumps(data, indent=2))
    elif style == "yaml":
        click.echo("\n".join(yaml_lines(data)))
    elif text:
        click.echo(text)


def table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Left-aligned columns, numbers to the right; None is a dash."""
    cells = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    numeric = [_numeric([row[i] for row in rows]) for i in range(len(headings))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()

    return "\n".join([line(headings), *(line(row) for row in cells)])


def _numeric(column: Sequence[Any]) -> bool:
    present = [cell for cell in column if cell is not None]
    return bool(present) and all(isinstance(cell, (int, float)) for cell in present)


def yaml_lines(data: Any, indent: int = 0) -> list[str]:
    """Block-style YAML of plain data. Scalars are written as JSON, which YAML reads alike."""
    pad = "  " * indent
    if not data or not isinstance(data, (Mapping, list, tuple)):
        return [f"{pad}{json.dumps(data)}"]
    lines = []
    if isinstance(data, Mapping):
        for key, value in data.items():
            if value and isinstance(value, (Mapping, list, tuple)):
                lines += [f"{pad}{_yaml_key(key)}:", *yaml_lines(value, indent + 1)]
            else:
                lines.append(f"{pad}{_yaml_key(key)}: {json.dumps(value)}")
        return lines
    for item in data:
        first, *rest = yaml_lines(item, indent + 1)
        lines += [f"{pad}- {first.lstrip()}", *rest]
    return lines


def _yaml_key(key: object) -> str:
    """Words such as `on` and `null` mean something else to YAML when they stand bare."""
    text = str(key)
    bare = text.isidentifier() and text.lower() not in _YAML_WORDS
    return text if bare else json.dumps(text)
