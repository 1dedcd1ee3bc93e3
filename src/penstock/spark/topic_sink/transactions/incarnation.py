"""Which driver this process belongs to: its JVM, of which a machine never has two with one number and birth."""

from __future__ import annotations

import os
import socket
from hashlib import blake2b
from pathlib import Path
from typing import Final

_PARENT, _STARTED = 1, 19
"""Fields of /proc/PID/stat after the name, which may hold blanks."""
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_JVM: Final = "java"


def driver_run() -> str:
    """A word that is the same in all processes that Spark starts beside one driver, and in no others."""
    return _run(*_jvm_above(os.getpid()))


def run_of(pid: int) -> str:
    """The same word, for the process that has started the JVM with this number."""
    return _run(pid, _stat(pid)[1][_STARTED])


def _run(pid: int, started: str) -> str:
    words = f"{socket.gethostname()} {_BOOT.read_text().strip()} {pid} {started}"
    return blake2b(words.encode(), digest_size=6).hexdigest()


def _jvm_above(pid: int) -> tuple[int, str]:
    """The nearest JVM that this process descends from; the process itself where there is none."""
    above = pid
    while above > 1:
        name, fields = _stat(above)
        if name == _JVM:
            return above, fields[_STARTED]
        above = int(fields[_PARENT])
    return pid, _stat(pid)[1][_STARTED]


def _stat(pid: int) -> tuple[str, list[str]]:
    head, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    return head.partition("(")[2], rest.split()
