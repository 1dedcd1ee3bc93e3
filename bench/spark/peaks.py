"""How much memory Python workers have had at most, by what the kernel keeps of each process."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil


def forget_peaks() -> None:
    """From here on peaks are counted anew."""
    for pid in _workers():
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5")


def largest_peak_mib() -> float:
    """Of the worker that had most."""
    peaks = [0.0]
    for pid in _workers():
        with contextlib.suppress(OSError, IndexError):
            peaks.append(int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]) / 1024)
    return max(peaks)


def _workers() -> list[int]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "python" in process.name():
                found.append(process.pid)
    return found
