"""Who did what through the console: logins, looks at records, changes. A line of JSON each, in a file.

What cannot be written down is not done: a change that nobody can account for later is worse than one that waits. The
brokers' own audit has the same changes as they see them, under the same person and the client id of the console; to
their topic nobody but they can write.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from penstock.console.failures import Declined
from penstock.console.settings import ConsoleRefused
from penstock.server.auditing.file import AuditFile

WITHIN_S: Final = 5.0
TEXT_MAX: Final = 1_000
"""So much of a text that came with a request is written down."""


class AuditTrail:
    """Appends to a file, if there is one; whoever moves it away for a new one is followed."""

    def __init__(self, path: str | None = None) -> None:
        self._file = AuditFile(path) if path is not None else None
        self._turn = asyncio.Lock()

    def open(self) -> None:
        """ConsoleRefused when it cannot be written to."""
        if self._file is None:
            return
        try:
            Path(self._file.path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file.open()
        except OSError as failure:
            raise ConsoleRefused(
                f"what is done through the console cannot be written to {self._file.path}: {failure.strerror};"
                " name another file with --audit-log, or give --no-audit-log"
            ) from None

    async def write(
        self, action: str, outcome: str, who: str, address: str, *, cluster: str | None = None, **params: Any
    ) -> None:
        """`outcome` is asked, done or failed. Declined when it cannot be written."""
        if self._file is None:
            return
        entry = {
            "at_ms": time.time_ns() // 1_000_000,
            "cluster": cluster,
            "who": who,
            "from": address,
            "action": action,
            "outcome": outcome,
            **{name: _bounded(value) for name, value in params.items()},
        }
        line = msgspec.json.encode(entry) + b"\n"
        try:
            async with asyncio.timeout(WITHIN_S), self._turn:
                await asyncio.to_thread(self._file.append, line)
        except (OSError, TimeoutError) as failure:
            raise Declined(
                503,
                "no_audit",
                f"what is done here is written down, and that failed: {failure or 'the disk does not answer'}",
                "whoever runs this console looks at its --audit-log",
            ) from None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _bounded(value: Any) -> Any:
    return value[:TEXT_MAX] if isinstance(value, str) else value
