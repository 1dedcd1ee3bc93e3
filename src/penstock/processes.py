"""Which process a number means. Numbers are used again; a process and its birth are never the same twice.

Whoever leaves a process's number in a file for others leaves its birth beside it, and whoever reads both asks
`is_running`. A pid file of the usual kind has no place for a birth; whoever finds one asks what `command_line` runs.
"""

from __future__ import annotations

import os
import subprocess
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


def command_line(pid: int) -> str:
    """The command that a process runs, or nothing when there is no such process (any more)."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        if Path("/proc/self").exists():
            return ""
    # Systems without /proc.
    asked = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return asked.stdout
