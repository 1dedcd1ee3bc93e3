"""Files of checkpoints, on this machine's disk or wherever pyarrow reaches."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


def is_begun(checkpoint: str) -> bool:
    """Whether a query has ever planned a batch there: only then does Spark go on from it."""
    return any(name.isdigit() for name in _names(f"{checkpoint}/offsets"))


def last_batch(checkpoint: str) -> int:
    """The last batch that was committed there, -1 if none."""
    return max((int(name) for name in _names(f"{checkpoint}/commits") if name.isdigit()), default=-1)


def remove(place: str) -> None:
    """A directory with all that is in it; nothing happens when it is not there."""
    local = local_path(place)
    if local is not None:
        if local.is_dir():
            shutil.rmtree(local)
        return
    system, path = _remote(place)
    system.delete_dir_contents(path, missing_dir_ok=True)


def read_json(place: str) -> dict[str, Any] | None:
    """None when it is not there or cannot be understood."""
    try:
        local = local_path(place)
        if local is not None:
            found = json.loads(local.read_text())
        else:
            system, path = _remote(place)
            with system.open_input_file(path) as file:
                found = json.loads(file.read())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write_json(place: str, values: dict[str, Any]) -> None:
    local = local_path(place)
    if local is not None:
        local.parent.mkdir(parents=True, exist_ok=True)
        local.write_text(json.dumps(values))
        return
    system, path = _remote(place)
    with system.open_output_stream(path) as file:
        file.write(json.dumps(values).encode())


def remove_file(place: str) -> None:
    local = local_path(place)
    if local is not None:
        local.unlink(missing_ok=True)
        return
    system, path = _remote(place)
    try:
        system.delete_file(path)
    except OSError:
        return


def local_path(place: str) -> Path | None:
    """None for what is not on this machine."""
    if place.startswith("file:"):
        return Path(unquote(urlsplit(place).path))
    return None if "://" in place else Path(place)


def _names(directory: str) -> list[str]:
    local = local_path(directory)
    if local is not None:
        return [entry.name for entry in local.iterdir()] if local.is_dir() else []
    from pyarrow import fs

    system, path = _remote(directory)
    found = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
    return [str(info.base_name) for info in found]


def _remote(place: str) -> tuple[Any, str]:
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(place)
    return system, path
