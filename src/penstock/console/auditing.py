"""What was changed through the console: by whom, what, how it ended. Lines of JSON, and the log that pages show."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec

from penstock.console.sampler.changes import Occurrence
from penstock.console.sampler.sampler import Sampler


class ChangeLog:
    """Appends to a file, if there is one. A line that cannot be written keeps its change from being made."""

    def __init__(self, path: str | None = None) -> None:
        self._file = None
        if path is not None:
            self._file = Path(path).open("ab", buffering=0)  # noqa: SIM115  # open as long as the console runs

    def asked(self, sampler: Sampler, person: str, kind: str, params: dict[str, Any]) -> None:
        """Before anything is changed."""
        self._write(sampler, person, kind, params, "asked")

    def done(
        self, sampler: Sampler, person: str, kind: str, text: str, params: dict[str, Any], about: dict[str, str]
    ) -> None:
        """What was changed; `about` names the topic or group that it concerns."""
        self._write(sampler, person, kind, params, "done")
        told = {"by": person, "action": kind, **params}
        sampler.tell(Occurrence("changed", "info", f"{person}: {text}", told, about.get("topic"), about.get("group")))

    def failed(self, sampler: Sampler, person: str, kind: str, params: dict[str, Any], why: str) -> None:
        self._write(sampler, person, kind, {**params, "why": why}, "failed")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _write(self, sampler: Sampler, person: str, kind: str, params: dict[str, Any], outcome: str) -> None:
        if self._file is None:
            return
        entry = {
            "at_ms": time.time_ns() // 1_000_000,
            "cluster": sampler.address.name,
            "who": person,
            "action": kind,
            "outcome": outcome,
            **params,
        }
        self._file.write(msgspec.json.encode(entry) + b"\n")
