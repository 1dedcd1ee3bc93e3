"""Reading the settings of tails and spool directories."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from penstock.agent.inputs.spooldir import kind as spooldir
from penstock.agent.inputs.spooldir.settings import SpoolDirSettings
from penstock.agent.inputs.tail import kind as tail
from penstock.agent.inputs.tail.settings import TailSettings
from penstock.agent.multiline import Multiline
from penstock.declared.fields import Notes, Table
from penstock.declared.positions import Positions

FOLDER = Path("/etc/agents")


def table_of(text: str) -> Table:
    return Table(tomllib.loads(text), (), Notes(Positions(text)), "inputs.app")


def test_a_tail() -> None:
    table = table_of(
        'paths = ["/var/log/*.log", "here/**"]\nexclude = ["*.gz", "here/not/*"]\nfrom = "end"\nmultiline = "java"\n'
        'line_bytes_max = "64 KB"\nrotate_wait = "1m"\nopen_files_max = 100\nignored_header_bytes = 80\n'
        'poll_min = "10ms"\npoll_max = "1s"\ndiscover = "3s"\nread_bytes = "1 MiB"'
    )
    found = tail.read(table, FOLDER)
    table.finish()
    assert table.notes.mistakes == []
    assert found.line_bytes_max in (64_000, 64 << 10)
    assert found == TailSettings(
        paths=("/var/log/*.log", "/etc/agents/here/**"), exclude=("*.gz", "/etc/agents/here/not/*"), from_end=True,
        ignored_header_bytes=80, poll_min_ms=10, poll_max_ms=1000, discover_ms=3000, rotate_wait_ms=60_000,
        read_bytes=1 << 20, open_files_max=100, line_bytes_max=found.line_bytes_max, multiline=Multiline(preset="java"),
    )  # fmt: skip


def test_a_tail_needs_nothing_but_paths() -> None:
    table = table_of('paths = "/var/log/app.log"')
    assert tail.read(table, FOLDER) == TailSettings(paths=("/var/log/app.log",))
    assert table.notes.mistakes == []


def test_a_spool_directory() -> None:
    table = table_of(
        'directory = "drop"\npattern = "*.csv"\nexclude = "*.tmp"\ndone = "move:finished"\nerrors = "/errors"\n'
        'subdirectories = true\nsettle = "5s"'
    )
    found = spooldir.read(table, FOLDER)
    table.finish()
    assert table.notes.mistakes == []
    assert found == SpoolDirSettings(
        directory=FOLDER / "drop", errors=Path("/errors"), pattern="*.csv", exclude=("*.tmp",), done="move",
        done_directory=FOLDER / "finished", subdirectories=True, settle_ms=5000,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (tail.read, "", "has no paths"),
        (tail.read, "paths = []", "paths is empty"),
        (tail.read, 'paths = "/x"\nfrom = "begining"', "did you mean 'beginning'?"),
        (tail.read, 'paths = "/x"\nread_bytes = "1 B"', "read_bytes"),
        (spooldir.read, "", "has no directory"),
        (spooldir.read, 'directory = "/x"\ndone = "moved"', '"move:DIRECTORY"'),
        (spooldir.read, 'directory = "/x"\ndone = "move:/x"', "must not move"),
        (spooldir.read, 'directory = "/x"\npattern = "a/*.log"', "names, not paths"),
    ],
)
def test_mistakes_are_told(read, text: str, words: str) -> None:  # type: ignore[no-untyped-def]
    table = table_of(text)
    read(table, FOLDER)
    assert any(words in mistake.words for mistake in table.notes.mistakes), table.notes.mistakes
