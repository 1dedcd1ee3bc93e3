"""Clocks that are stepped and disks that fail or hang, for one process, whenever a test likes.

`shim.c` is preloaded into a node and looks at a page of memory before it asks the kernel; a `Shim` is that page. Wall
clocks are stepped without the machine's being touched; calls to files under a prefix fail with an error of choice, or
wait until they are let go on. The library is compiled once a session with the C compiler that the kernels need, too.
"""

from __future__ import annotations

import errno
import mmap
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntFlag
from functools import cache
from pathlib import Path

from tests.patience import within

_SOURCE = Path(__file__).with_name("shim.c")
_PAGE = struct.Struct("=qIiII1024s")


class Calls(IntFlag):
    """Which calls to a file something happens to; the numbers are those of `shim.c`."""

    OPENS = 1
    READS = 2
    WRITES = 4
    SYNCS = 8


CHANGES = Calls.WRITES | Calls.SYNCS
EVERY_CALL = CHANGES | Calls.READS | Calls.OPENS


@cache
def library() -> Path:
    """The compiled shim."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler is not None, "a C compiler makes the shim"
    made = Path(tempfile.mkdtemp(prefix="penstock-shim-")) / "shim.so"
    command = [compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(made), str(_SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=within(60), check=False)
    assert done.returncode == 0, done.stderr
    return made


class Shim:
    """What one process believes. It outlives the process: a node that is started again believes it still."""

    def __init__(self, page: Path) -> None:
        self.page = page
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_bytes(bytes(_PAGE.size))
        with page.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _PAGE.size)
        self.clock_step_s = 0.0
        self._disk: tuple[Calls, int, bool, bytes] = (Calls(0), 0, False, b"")

    @property
    def words(self) -> tuple[str, ...]:
        """What a command line begins with so that its process is one of these."""
        return ("env", f"LD_PRELOAD={library()}", f"PENSTOCK_SHIM={self.page}")

    def step_clock(self, seconds: float) -> None:
        """From now on the wall clock is so far from the machine's; the clock that only rises is not touched."""
        self.clock_step_s = seconds
        self._write()

    def fail(self, prefix: Path, calls: Calls = CHANGES, error: int = errno.EIO) -> None:
        self._disk = (calls, error, False, str(prefix).encode())
        self._write()

    def hang(self, prefix: Path, calls: Calls = CHANGES) -> None:
        """Calls wait until `mend`, and then do what they should."""
        self._disk = (calls, 0, True, str(prefix).encode())
        self._write()

    def mend(self) -> None:
        """The disk is well again; the clock stays where it is."""
        self._disk = (Calls(0), 0, False, b"")
        self._write()

    def _write(self) -> None:
        calls, error, hanging, prefix = self._disk
        step_ns = int(self.clock_step_s * 1e9)
        # The calls come last in effect: while none is named, nobody looks at the rest.
        self._memory[8:12] = bytes(4)
        packed = _PAGE.pack(step_ns, 0, error, hanging, len(prefix), prefix)
        self._memory[:8], self._memory[12:] = packed[:8], packed[12:]
        self._memory[8:12] = struct.pack("=I", calls)

    def close(self) -> None:
        self._memory.close()


@contextmanager
def shims(home: Path, node_ids: Iterator[int] | list[int]) -> Iterator[dict[int, Shim]]:
    """One for each node; what was made goes away."""
    made = {node_id: Shim(home / f"shim-{node_id}") for node_id in node_ids}
    try:
        yield made
    finally:
        for shim in made.values():
            shim.close()
