"""Upkeep beside the stream: a process of its own (`tidying.py`), one at a time for each table.

Rewriting files takes seconds. A sink that did it between two batches would hold its stream for as long, so `begin`
starts a process and returns. Where that process and the stream meet in a commit the stream goes first: an append lands
on top of a compaction, and a compaction is tried again on top of an append (`Conflicted` otherwise, and the next round
takes it up). A process that dies leaves files that nobody names, which go when they are old.

It is a child of the worker that committed, in the process group of Spark's Python workers, and goes with them.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.places import absolute

COMMAND: Final = (sys.executable, "-P", "-m", "penstock.spark.lake.tidying")
LOOK_EVERY_S: Final = 0.05

_started: list[subprocess.Popen[bytes]] = []
"""Kept until they have ended: whoever starts a process takes its end in."""


def begin(options: LakeOptions, wanted: Mapping[str, bool]) -> bool:
    """Starts what is `wanted` (the fields of `upkeep.Due`); False when the table is being tidied already."""
    _started[:] = [each for each in _started if each.poll() is None]
    with _lock_file(options).open("w") as lock:
        if not _locked(lock.fileno(), fcntl.LOCK_EX):
            return False
        # The lock goes to the child with the open file, so there is no moment at which nobody has it.
        child = subprocess.Popen(
            [*COMMAND, json.dumps({"options": _needed(options), "wanted": dict(wanted)})],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(lock.fileno(),),
        )
    _started.append(child)
    return True


def wait_until_done(options: LakeOptions, *, within_s: float) -> bool:
    """Whether nobody on this machine tidies the table, or does so no longer within that time."""
    deadline_s = time.monotonic() + within_s
    with _lock_file(options).open("a") as lock:
        while not _locked(lock.fileno(), fcntl.LOCK_SH):
            if time.monotonic() >= deadline_s:
                return False
            time.sleep(LOOK_EVERY_S)
    return True


def _needed(options: LakeOptions) -> dict[str, Any]:
    """What tidying asks of the options; what feeds a table may be long, and is no part of it."""
    return asdict(replace(options, feed="", checkpoint="", query_name="", mirror=""))


def _lock_file(options: LakeOptions) -> Path:
    table = [options.table_format, absolute(options.path) if options.path else "", options.catalog, options.table]
    directory = Path(tempfile.gettempdir()) / f"penstock-upkeep-{os.getuid()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory / hashlib.sha256(json.dumps(table).encode()).hexdigest()[:32]


def _locked(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
