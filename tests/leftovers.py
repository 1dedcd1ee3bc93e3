"""What a run that was killed has left behind is taken away by the next one.

Namespaces, mounts and child processes outlive whoever made them. So each process of tests keeps a file, named after
itself, with a line for everything of that kind: the command that takes it away, or the process to end. Whoever notes
its first looks for files of processes that are gone, and does what they say, the last line first. What belongs to a
process that lives is not touched.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests.patience import within

HOME = Path(tempfile.gettempdir()) / f"penstock-tests-left-{os.getuid()}"
_BEFORE = "-of-"


def note_command(*words: str) -> None:
    """A command that takes away what is about to be made; it may fail when there is nothing any more."""
    _note({"run": words})


def note_process(pid: int) -> None:
    """A child that is to end when this process did not see to it."""
    _note({"end": _named(pid)})


def _note(line: dict[str, object]) -> None:
    with _own().open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


@cache
def _own() -> Path:
    HOME.mkdir(exist_ok=True)
    sweep(HOME)
    path = HOME / _named(os.getpid())
    # A worker that was forked has a file of its own, and leaves that of its parent alone.
    atexit.register(lambda: path.unlink(missing_ok=True) if path.name == _named(os.getpid()) else None)
    return path


def sweep(home: Path) -> None:
    """Takes away what processes have left that are gone."""
    for path in sorted(home.iterdir()):
        if _lives(path.name.partition(_BEFORE)[0]):
            continue
        mine = home / f"{_named(os.getpid())}{_BEFORE}{path.name.rpartition(_BEFORE)[2]}"
        try:
            path.rename(mine)
        except FileNotFoundError:
            continue  # another run was faster
        for line in reversed(mine.read_text(encoding="utf-8").splitlines()):
            with suppress(ValueError):  # the last line of a process that was killed may be half of one
                _take_away(json.loads(line))
        mine.unlink()


def _take_away(line: dict[str, object]) -> None:
    match line:
        case {"end": str(name)} if _lives(name):
            with suppress(ProcessLookupError):
                os.kill(int(name.partition(".")[0]), signal.SIGKILL)
        case {"run": [*words]}:
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run([str(word) for word in words], capture_output=True, timeout=within(30), check=False)


def _named(pid: int) -> str:
    """A process by its number and by when it began: numbers come again."""
    return f"{pid}.{_began(pid)}"


def _began(pid: int) -> str:
    """In ticks of the machine; nothing when there is no such process, or only what is left of one."""
    try:
        # What comes behind the name, which may hold anything, begins with the state.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def _lives(name: str) -> bool:
    pid, _, began = name.partition(".")
    return began != "" and _began(int(pid)) == began
