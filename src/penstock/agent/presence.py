"""A running agent is found by the folder of its state: `agent.json` says which process it is and where it answers."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from penstock.processes import is_running
from penstock.whole_files import write_whole

FILE_NAME: Final = "agent.json"


@dataclass(frozen=True, slots=True)
class Presence:
    """What an agent leaves in `state_dir` while it runs."""

    pid: int
    name: str
    admin: str = ""
    """HOST:PORT of its admin port; empty when there is none."""
    version: str = ""
    file: str = ""
    """The file it runs; empty when there was none."""
    born: str = ""
    """When the process began, see `processes.birth_of`: its number may be another's later."""


def announce(state_dir: Path, presence: Presence) -> None:
    """Written when the agent is ready. Nobody ever reads half of it."""
    write_whole(state_dir / FILE_NAME, json.dumps(asdict(presence), indent=2) + "\n")


def withdraw(state_dir: Path, pid: int) -> None:
    """Taken away at the end, but not from another process that came in between."""
    found = read(state_dir)
    if found is not None and found.pid == pid:
        with contextlib.suppress(OSError):
            (state_dir / FILE_NAME).unlink()


def read(state_dir: Path) -> Presence | None:
    """What lies there, whether or not that process is alive. None when there is nothing, or nothing of ours."""
    try:
        found: Any = json.loads((state_dir / FILE_NAME).read_text(encoding="utf-8"))
        known = {field.name: found[field.name] for field in fields(Presence) if field.name in found}
        presence = Presence(**known)
    except (OSError, ValueError, TypeError):
        return None
    return presence if isinstance(presence.pid, int) and presence.pid > 0 else None


def find(state_dir: Path) -> Presence | None:
    """The agent that runs there. One that was killed leaves its file behind; its process is gone."""
    found = read(state_dir)
    return found if found is not None and is_running(found.pid, found.born) else None
