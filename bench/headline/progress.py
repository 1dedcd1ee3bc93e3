"""What runs, how far it is and how long the rest takes: one line that is rewritten on a terminal, else one a round."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TextIO


class Progress:
    """Parts are entered in order; within one, `step` says which of how many steps begins."""

    def __init__(self, parts: Sequence[str], seconds: Mapping[str, float], out: TextIO = sys.stderr) -> None:
        self._left = {part: seconds[part] for part in parts}
        self._out = out
        self._live = out.isatty()
        self._began = time.monotonic()
        self._part = ""
        self._part_s = 0.0
        self._width = 0

    def enter(self, part: str) -> None:
        """A part begins; the one before is over."""
        self._part, self._part_s = part, self._left.pop(part, 0.0)
        self.step(0, 1, "begins")

    def step(self, number: int, of: int, text: str) -> None:
        """Step `number` of a part's `of` steps begins."""
        share = min(number / of, 1.0) if of else 0.0
        left_s = self._part_s * (1 - share) + sum(self._left.values())
        words = f"[{self.elapsed_s():5.0f} s] {self._part} {share:4.0%}  {text}"
        self._show(f"{words}  (about {_minutes(left_s)} left)")

    def say(self, text: str) -> None:
        """A line that stays."""
        self._wipe()
        print(text, file=self._out, flush=True)

    def elapsed_s(self) -> float:
        return time.monotonic() - self._began

    def close(self) -> None:
        self._wipe()

    def _show(self, line: str) -> None:
        if not self._live:
            print(line, file=self._out, flush=True)
            return
        print("\r" + line.ljust(self._width), end="", file=self._out, flush=True)
        self._width = len(line)

    def _wipe(self) -> None:
        if self._live and self._width:
            print("\r" + " " * self._width + "\r", end="", file=self._out, flush=True)
            self._width = 0


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
