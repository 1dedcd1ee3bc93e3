"""How results and failures look: tables for people, JSON and YAML for programs, exit codes for scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    PenstockError,
    Refused,
)

OK, FAILED, USAGE, NOT_FOUND, NOT_ALLOWED, UNREACHABLE, UNHEALTHY = 0, 1, 2, 3, 4, 5, 10

_NOT_FOUND = {UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID}
_NOT_ALLOWED = {TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED}

format_option = click.option(
    "--format", "style", type=click.Choice(["text", "json", "yaml"]), default="text", help="How to print the result."
)
bootstrap_option = click.option(
    "-b",
    "--bootstrap",
    default="localhost:9092",
    envvar="PENSTOCK_BOOTSTRAP",
    show_default=True,
    help="Brokers to ask first, as host:port, several separated by commas.",
)


def explain(failure: Exception) -> tuple[int, str | None]:
    """(exit code, sentence) for what went wrong; no sentence means that it is our bug and deserves its traceback."""
    from penstock.transport.dial import Unreachable

    if isinstance(failure, Refused):
        code = FAILED
        if failure.error in _NOT_FOUND:
            code = NOT_FOUND
        elif failure.error in _NOT_ALLOWED:
            code = NOT_ALLOWED
        return code, str(failure)
    if isinstance(failure, Unreachable):
        return UNREACHABLE, f"{failure}. Is a broker running there? `penstock dev` starts one."
    if isinstance(failure, (PenstockError, OSError)):
        return FAILED, str(failure)
    return FAILED, None


def pairs(given: tuple[str, ...]) -> dict[str, str]:
    """Repeated `-c KEY=VALUE` options as a mapping."""
    configs = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{pair!r} is not key=value", param_hint="-c")
        configs[name.strip()] = value
    return configs


def show(data: Any, style: str, text: str) -> None:
    """Prints `data` for programs or `text` for people."""
    if style == "json":
        click.echo(json.dumps(data, indent=2))
    elif style == "yaml":
        click.echo("\n".join(yaml_lines(data)))
    elif text:
        click.echo(text)


def table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Left-aligned columns, numbers to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(heading), *(len(row[i]) for row in cells)) if cells else len(heading)
              for i, heading in enumerate(headings)]  # fmt: skip
    numeric = [bool(rows) and all(isinstance(row[i], (int, float)) for row in rows) for i in range(len(headings))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()

    return "\n".join([line(headings), *(line(row) for row in cells)])


def yaml_lines(data: Any, indent: int = 0) -> list[str]:
    """Block-style YAML of plain data. Scalars are written as JSON, which YAML reads alike."""
    pad = "  " * indent
    if isinstance(data, Mapping) and data:
        lines = []
        for key, value in data.items():
            if isinstance(value, (Mapping, list, tuple)) and value:
                lines += [f"{pad}{json.dumps(str(key)) if not str(key).isidentifier() else key}:"]
                lines += yaml_lines(value, indent + 1)
            else:
                lines.append(
                    f"{pad}{json.dumps(str(key)) if not str(key).isidentifier() else key}: {json.dumps(value)}"
                )
        return lines
    if isinstance(data, (list, tuple)) and data:
        lines = []
        for item in data:
            inner = yaml_lines(item, indent + 1)
            lines.append(f"{pad}- {inner[0].lstrip()}")
            lines += inner[1:]
        return lines
    return [f"{pad}{json.dumps(data)}"]
