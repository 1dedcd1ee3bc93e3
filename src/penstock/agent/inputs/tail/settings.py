"""What a tail is told, and how it is read from the agent's file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.agent.multiline import Multiline, read_multiline
from penstock.declared.fields import Table


@dataclass(frozen=True, slots=True)
class TailSettings:
    """Which files are followed, and how."""

    paths: tuple[str, ...]
    """Names or globs; `**` goes through folders."""
    exclude: tuple[str, ...] = ()
    """Globs of names, or of whole paths when there is a slash in them."""
    from_end: bool = False
    """Of files that are there at the very first start: only what comes from now on."""
    ignored_header_bytes: int = 0
    """So many bytes at the beginning do not count when files are told apart."""
    poll_min_ms: int = 50
    poll_max_ms: int = 2000
    discover_ms: int = 1000
    rotate_wait_ms: int = 5000
    """How long a file that was rotated away is held after its end was read; and how long a copy must be quiet."""
    read_bytes: int = 512 << 10
    open_files_max: int = 512
    line_bytes_max: int = 1 << 20
    multiline: Multiline | None = None


def read_tail(table: Table, folder: Path) -> TailSettings:
    paths = table.text_or_texts("paths")
    if "paths" not in table:
        table.wrong(None, f'{table.title} has no paths: which files to follow, such as ["/var/log/nginx/*.log"]')
    elif table.values["paths"] == []:
        table.wrong("paths", "paths is empty: which files are to be followed?")
    poll_min_ms = table.duration_ms("poll_min", 50, low=1)
    return TailSettings(
        paths=tuple(absolute(path, folder) for path in paths),
        exclude=tuple(absolute(glob, folder) if "/" in glob else glob for glob in table.text_or_texts("exclude")),
        from_end=table.choice("from", ("beginning", "end"), "beginning") == "end",
        ignored_header_bytes=table.size_bytes("ignored_header_bytes", 0, low=0, high=1 << 20),
        poll_min_ms=poll_min_ms,
        poll_max_ms=max(poll_min_ms, table.duration_ms("poll_max", 2000, low=1)),
        discover_ms=table.duration_ms("discover", 1000, low=1),
        rotate_wait_ms=table.duration_ms("rotate_wait", 5000, low=0),
        read_bytes=table.size_bytes("read_bytes", 512 << 10, low=4096, high=16 << 20),
        open_files_max=table.integer("open_files_max", 512, 8, 100_000),
        line_bytes_max=table.size_bytes("line_bytes_max", 1 << 20, low=16, high=64 << 20),
        multiline=read_multiline(table),
    )


def absolute(path: str, folder: Path) -> str:
    """As it is written when it begins at the root or at home; else from the folder of the agent's file."""
    return str(folder / Path(path).expanduser())
