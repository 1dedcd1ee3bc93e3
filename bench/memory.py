"""Free memory is made the machine's own again before a sample.

A virtual machine may give memory that lies free back to its host within seconds (free page reporting of the balloon
driver), and the first write to a page that was given back waits for the host: a GB into the page cache took 0.19 CPU
seconds from memory that was in use a moment before, and 0.6 to 1.6 from memory that was not. Which sample pays for that
hangs on who deleted what before it, so every sample begins with memory that the page cache had just now. Nothing of the
machine is changed by that, and on one that keeps its memory it costs a moment.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import psutil

_CHUNK = bytes(1 << 17)


def refresh(size: int, directory: Path) -> int:
    """Writes so many bytes into a file that is gone at once; returns how many there was room for.

    Through the page cache and in pieces like those of a log, because the kernel keeps pages for other uses and pieces
    of other sizes apart.
    """
    pieces = min(size, _room(directory)) // len(_CHUNK)
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        return sum(file.write(_CHUNK) for _ in range(pieces))


def _room(directory: Path) -> int:
    """Half of the free memory, or of the free disk if that is less: the brokers need the rest."""
    return min(psutil.virtual_memory().available, psutil.disk_usage(str(directory)).free) // 2
