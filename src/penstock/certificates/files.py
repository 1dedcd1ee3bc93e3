"""Files that hold keys: whole or not there, and nobody else's from the first byte on."""

from __future__ import annotations

import os
from pathlib import Path

_DRAFT = ".new"


def write_private(path: Path, data: bytes) -> None:
    """Mode 0600, synced, and in its place in one step."""
    move(_drafted(path, data), path)


def create_private(path: Path, data: bytes) -> None:
    """The same where nothing is yet; FileExistsError when there is something, which stays."""
    draft = _drafted(path, data)
    try:
        os.link(draft, path)
    finally:
        remove(draft)


def _drafted(path: Path, data: bytes) -> Path:
    draft = path.with_name(path.name + _DRAFT)
    draft.unlink(missing_ok=True)  # of somebody who was killed; it may have another mode
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)  # an odd umask may have taken our own right
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    return draft


def move(source: Path, target: Path) -> None:
    """Puts a file in another's place and makes sure that it stays there."""
    os.replace(source, target)
    sync_directory(target.parent)


def remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    sync_directory(path.parent)


def private_directory(path: Path) -> None:
    """Made if it is not there, for its owner alone."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
