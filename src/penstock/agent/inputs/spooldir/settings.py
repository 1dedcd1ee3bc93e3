"""What a spool directory is told, and how it is read from the agent's file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.agent.multiline import Multiline, read_multiline
from penstock.declared.fields import Table

RENAME, MOVE, DELETE = "rename", "move", "delete"
_MOVE_TO: Final = "move:"


@dataclass(frozen=True, slots=True)
class SpoolDirSettings:
    """Which files are taken, and what becomes of them."""

    directory: Path
    errors: Path
    """Where files go that cannot be read, or changed while they were."""
    pattern: str = "*"
    exclude: tuple[str, ...] = ()
    done: str = RENAME
    """`rename` (`.done` is added), `move` or `delete`."""
    done_directory: Path | None = None
    subdirectories: bool = False
    settle_ms: int = 2000
    """A file that has not changed for so long is complete."""
    discover_ms: int = 1000
    read_bytes: int = 256 << 10
    line_bytes_max: int = 1 << 20
    multiline: Multiline | None = None


def read_spooldir(table: Table, folder: Path) -> SpoolDirSettings:
    given = table.required_text("directory", "the folder that files are dropped into")
    directory = folder / Path(given or ".").expanduser()
    errors = table.text("errors")
    done, done_directory = _read_done(table, folder)
    if done_directory == directory:
        table.wrong("done", "done must not move files to the directory they come from")
    return SpoolDirSettings(
        directory=directory,
        errors=folder / Path(errors).expanduser() if errors else directory / "errors",
        pattern=_name(table, "pattern", "*"),
        exclude=table.text_or_texts("exclude"),
        done=done,
        done_directory=done_directory,
        subdirectories=table.flag("subdirectories"),
        settle_ms=table.duration_ms("settle", 2000, low=1),
        discover_ms=table.duration_ms("discover", 1000, low=1),
        read_bytes=table.size_bytes("read_bytes", 256 << 10, low=4096, high=16 << 20),
        line_bytes_max=table.size_bytes("line_bytes_max", 1 << 20, low=16, high=64 << 20),
        multiline=read_multiline(table),
    )


def _name(table: Table, key: str, default: str) -> str:
    value = table.text(key) or default
    if "/" in value:
        table.wrong(key, f"{key} is about names, not paths; folders below are read with subdirectories = true")
    return value


def _read_done(table: Table, folder: Path) -> tuple[str, Path | None]:
    value = table.text("done") or RENAME
    if value.startswith(_MOVE_TO) and value != _MOVE_TO:
        return MOVE, folder / Path(value.removeprefix(_MOVE_TO)).expanduser()
    if value not in (RENAME, DELETE):
        table.wrong("done", f'done = {value!r} is not known; there is "rename", "delete" and "move:DIRECTORY"')
    return value, None
