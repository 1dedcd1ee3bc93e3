"""Which process a number means. Numbers are used again; a process and its birth are never the same twice.

Whoever leaves a process's number in a file for others leaves its birth beside it, and whoever reads both asks
`is_running`.
"""

from __future__ import annotations

import os
from pathlib import Path


def birth_of(pid: int) -> str:
    """When a process began, as a text that no other process of that id shares; empty when there is none."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    # The second field is the command in parentheses and may hold anything; the state and 18 numbers follow it.
    after = stat.rpartition(")")[2].split()
    return "" if after[0] in "ZX" else f"{boot}/{after[19]}"


def is_running(pid: int, born: str) -> bool:
    """Whether the process of this number is the one that was born then. Without a birth, as an older release left it
    or a system without /proc, the number alone has to do."""
    if born:
        return birth_of(pid) == born
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # It is somebody else's, but it is there.
        return True
    return True
