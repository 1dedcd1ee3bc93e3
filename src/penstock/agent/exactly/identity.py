"""Who an agent is to the brokers: its name and its machine, which tells apart agents with one name and one file."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.agent.errors import AgentError

MACHINE_FILES: Final = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_PURPOSE: Final = b"penstock agent"
_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose positions they are."""

    agent: str
    machine: str

    @property
    def transactional_id(self) -> str:
        # Names hold no slash, so no two agents come to the same id.
        return f"penstock-agent/{self.agent}/{self.machine}"


def machine_of(given: str | None) -> str:
    """`machine_id` of the file, else what the system says; AgentError when nothing does."""
    if given is not None:
        return given
    for path in MACHINE_FILES:
        try:
            found = path.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if found and found != "uninitialized":
            # The id itself is not to be shown to others (machine-id(5)); what is made from it may be.
            return hmac.new(found.encode(), _PURPOSE, "sha256").hexdigest()[:_DIGITS]
    raise AgentError(
        f"exactly_once keeps positions by machine, and {MACHINE_FILES[0]} does not say which one this is: write"
        ' machine_id = "${HOSTNAME}" or another name that stays at the top of the file'
    )
