"""Files that are done with leave the folder: renamed, moved, deleted. Nothing is ever written over. Blocks."""

from __future__ import annotations

import os
import shutil
from itertools import count
from pathlib import Path

from penstock.agent.inputs.spooldir.settings import DELETE, MOVE, SpoolDirSettings


def put_away(path: str, settings: SpoolDirSettings) -> None:
    """All of it is acknowledged. Raises `OSError`; then it is where it was."""
    if settings.done == DELETE:
        os.unlink(path)
    elif settings.done == MOVE and settings.done_directory is not None:
        _move(path, settings.done_directory / os.path.basename(path))
    else:
        _move(path, Path(f"{path}.done"))


def put_aside(path: str, settings: SpoolDirSettings) -> Path:
    """It cannot be read, or was changed. Where it is now. Raises `OSError`."""
    return _move(path, settings.errors / os.path.basename(path))


def _move(path: str, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    free = _free(target)
    # Across file systems it is copied under another name first, so that nobody sees half of it.
    if os.stat(path).st_dev == os.stat(free.parent).st_dev:
        os.rename(path, free)
        return free
    half = free.with_name(f".{free.name}.part")
    try:
        shutil.copy2(path, half)
        with half.open("rb") as copied:
            os.fsync(copied.fileno())
        os.rename(half, free)
    except BaseException:
        half.unlink(missing_ok=True)
        raise
    os.unlink(path)
    return free


def _free(target: Path) -> Path:
    if not os.path.lexists(target):
        return target
    return next(each for n in count(1) if not os.path.lexists(each := target.with_name(f"{target.name}.{n}")))
