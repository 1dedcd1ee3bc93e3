"""The settings of stdin and exec, and how they are written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

from penstock.declared.amounts import duration_of
from penstock.declared.fields import Table

Stderr = Literal["log", "capture"]
_INTERVAL_MS_MIN: Final = 100


@dataclass(frozen=True, slots=True)
class StdinSettings:
    line_bytes_max: int


@dataclass(frozen=True, slots=True)
class ExecSettings:
    command: tuple[str, ...]
    restart: Literal["always", "never", "interval"]
    interval_ms: int
    """From one start to the next; only for `interval`."""
    stderr: Stderr
    environment: tuple[tuple[str, str], ...]
    """Besides the agent's own."""
    working_dir: Path
    line_bytes_max: int


def read_stdin(table: Table) -> StdinSettings:
    return StdinSettings(_line_bytes_max(table))


def read_exec(table: Table, folder: Path) -> ExecSettings:
    restart, interval_ms = _read_restart(table)
    working_dir = folder / (table.text("working_dir") or ".")
    if not working_dir.is_dir():
        table.wrong("working_dir", f"working_dir: there is no directory {working_dir}")
    return ExecSettings(
        command=_read_command(table),
        restart=restart,
        interval_ms=interval_ms,
        stderr=cast(Stderr, table.choice("stderr", ("log", "capture"), "log")),
        environment=tuple(sorted(table.options("environment").items())),
        working_dir=working_dir,
        line_bytes_max=_line_bytes_max(table),
    )


def _read_command(table: Table) -> tuple[str, ...]:
    """A list is run as it is, a text by the shell."""
    if isinstance(table.values.get("command"), list):
        words = table.texts("command")
        if not words:
            table.wrong("command", "command is empty")
        return words
    text = table.required_text("command", 'what to run: ["vmstat", "-n", "5"], or a text for the shell')
    return ("/bin/sh", "-c", text) if text else ()


def _read_restart(table: Table) -> tuple[Literal["always", "never", "interval"], int]:
    text = table.text("restart")
    if text is None or text == "always":
        return "always", 0
    if text == "never":
        return "never", 0
    interval_ms = duration_of(text)
    if interval_ms is None or interval_ms < _INTERVAL_MS_MIN:
        table.wrong("restart", f'restart = {text!r} is not known: "always", "never", or an interval such as "60s"')
        return "always", 0
    return "interval", interval_ms


def _line_bytes_max(table: Table) -> int:
    return table.size_bytes("line_bytes_max", 1 << 20, low=1 << 10, high=64 << 20)
