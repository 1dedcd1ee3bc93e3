"""A process that takes part, as the stage sees it: orders in, the newest report out."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.places import ROOT

SILENCE_S = 30.0
"""A party that says nothing for so long is stuck."""


class Party:
    """One of `python -m bench.soak.…`; `heard` is called with each report, in a thread of the party's own."""

    def __init__(
        self, name: str, words: Sequence[str], log: Path, heard: Callable[[Mapping[str, Any]], None] | None = None
    ) -> None:
        self.name, self._log, self._heard = name, log, heard
        self.report: Mapping[str, Any] = {}
        self.errors: list[str] = []
        self.error_count = 0
        self._heard_at = time.monotonic()
        with log.open("wb") as out:
            self._child = subprocess.Popen(
                [sys.executable, "-m", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=out,
                text=True,
                cwd=ROOT,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, name=name, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def done(self) -> bool:
        return bool(self.report.get("done"))

    def order(self, **words: Any) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(words) + "\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            pass  # `trouble` tells why

    def trouble(self) -> str | None:
        """Why nothing more can be expected of it, in words."""
        if self.done:
            return None
        if self._child.poll() is not None:
            return f"{self.name} ended with {self._child.returncode}:\n{self.tail()}"
        if time.monotonic() - self._heard_at > SILENCE_S and self.report:
            return f"{self.name} has said nothing for {SILENCE_S:.0f} s"
        return None

    def wait(self, timeout_s: float) -> int:
        """The exit code, once its last report was read."""
        code = self._child.wait(timeout_s)
        self._reader.join(timeout_s)
        return code

    def stop(self) -> None:
        """Ends it, whatever it is doing."""
        if self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(15)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        self._reader.join()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def tail(self, lines: int = 12) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            if not line.startswith("{"):
                continue
            report = json.loads(line)
            self.error_count = report["error_count"]
            self.errors += [f"{self.name}: {words}" for words in report["errors"]]
            self._heard_at = time.monotonic()
            self.report = report
            if self._heard is not None:
                self._heard(report)
