"""The shim does to a process what it is told, at once, and to nobody else."""

from __future__ import annotations

import errno
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.cluster.shim import CHANGES, Calls, Shim
from tests.patience import wait_for, within

# nanosleep and clock_nanosleep, by their numbers on x86-64 and elsewhere.
NAPPING = {"35", "230", "101", "115"}
CHILD = """
import os, sys, time
for line in sys.stdin:
    word, path = line.split()
    try:
        if word == "time":
            print(time.time(), time.monotonic(), flush=True)
            continue
        fd = os.open(path, os.O_RDWR | os.O_CREAT)
        if word == "write":
            os.pwrite(fd, b"x", 0)
        elif word == "sync":
            os.fdatasync(fd)
        elif word == "read":
            os.pread(fd, 1, 0)
        os.close(fd)
        print(0, flush=True)
    except OSError as failure:
        print(failure.errno, flush=True)
"""


class Child:
    def __init__(self, shim: Shim) -> None:
        command = [*shim.words, sys.executable, "-c", CHILD]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, word: str, path: Path | str = "-") -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word} {path}\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def ask(self, word: str, path: Path | str = "-") -> str:
        self.tell(word, path)
        return self.hear()

    def naps(self) -> bool:
        """Whether it waits for time to pass, and not for a line."""
        call = Path(f"/proc/{self._process.pid}/syscall").read_text().split()[0]
        return call in NAPPING

    def end(self) -> None:
        self._process.communicate(timeout=within(30))


@pytest.fixture
def shim(tmp_path: Path) -> Iterator[Shim]:
    made = Shim(tmp_path / "page")
    yield made
    made.close()


@pytest.fixture
def child(shim: Shim) -> Iterator[Child]:
    made = Child(shim)
    yield made
    shim.mend()
    made.end()


def test_the_wall_clock_is_stepped_and_the_other_is_not(shim: Shim, child: Child) -> None:
    for step_s in (0.0, 3_600.5, -86_400.0, 0.0):
        shim.step_clock(step_s)
        wall, monotonic = map(float, child.ask("time").split())
        assert abs(wall - time.time() - step_s) < within(0.4)
        assert abs(monotonic - time.monotonic()) < within(0.4)


def test_calls_fail_under_the_prefix_alone_and_as_long_as_they_shall(shim: Shim, child: Child, tmp_path: Path) -> None:
    bad, good = tmp_path / "bad" / "file", tmp_path / "good"
    bad.parent.mkdir()
    assert child.ask("write", bad) == child.ask("sync", bad) == "0"
    shim.fail(bad.parent)
    assert child.ask("write", bad) == child.ask("sync", bad) == str(errno.EIO)
    assert child.ask("read", bad) == child.ask("write", good) == child.ask("sync", good) == "0"
    shim.fail(bad.parent, Calls.OPENS, errno.ENOSPC)
    assert child.ask("read", bad) == str(errno.ENOSPC)
    shim.mend()
    assert child.ask("write", bad) == child.ask("sync", bad) == "0"


def test_calls_that_hang_go_on_when_they_are_let(shim: Shim, child: Child, tmp_path: Path) -> None:
    path = tmp_path / "file"
    shim.hang(path, CHANGES)
    child.tell("write", path)
    wait_for("the write to hang", child.naps, timeout_s=20)
    assert path.read_bytes() == b""
    shim.mend()
    assert child.hear() == "0"
    assert path.read_bytes() == b"x"
