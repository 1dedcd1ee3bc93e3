"""What happened, as a reader wants it: when, where, what; and a digest by which two runs are compared."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

LAST_EVENTS = 200


@dataclass(frozen=True, slots=True)
class Happening:
    """One line of the story."""

    at_s: float
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.at_s:10.4f}s  {self.where:10}  {self.what}"


@dataclass(slots=True)
class Story:
    """One run under one seed. `violations` is empty when all invariants held."""

    seed: int
    nodes: int = 0
    secured: bool = False
    transactions: bool = False
    trouble_s: float = 0.0
    violations: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    last: deque[Happening] = field(default_factory=lambda: deque(maxlen=LAST_EVENTS))
    virtual_s: float = 0.0
    steps: int = 0
    digest: str = ""
    clock: Callable[[], float] = field(default=lambda: 0.0, repr=False)
    _hash: Any = field(default_factory=lambda: blake2b(digest_size=16), repr=False)

    @property
    def ok(self) -> bool:
        return not self.violations

    def tell(self, where: str, what: str) -> None:
        happening = Happening(self.clock(), where, what)
        self.last.append(happening)
        self._hash.update(str(happening).encode())

    def violated(self, what: str) -> None:
        self.tell("VIOLATION", what)
        self.violations.append(what)

    def count(self, what: str, by: int = 1) -> None:
        """Counts what had its effect; what did not is no count of zero either."""
        if not by:
            return
        self.counts[what] = self.counts.get(what, 0) + by

    def close(self, *, virtual_s: float, steps: int, wire_digest: int) -> None:
        """Seals the digest: everything told, every byte delivered, every callback run."""
        self.virtual_s, self.steps = virtual_s, steps
        self._hash.update(f"{virtual_s:.6f} {steps} {wire_digest}".encode())
        self.digest = self._hash.hexdigest()

    def text(self) -> str:
        """The whole of it: the outcome, and for a failure the last events before it."""
        counts = ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()))
        lines = [f"seed {self.seed}: {self.nodes} nodes, {self.virtual_s:.1f} s, {self.steps} steps, {counts}"]
        if self.violations:
            lines += ["", *(str(happening) for happening in self.last), ""]
            lines += [f"violated: {what}" for what in self.violations]
            kinds = (" --secured" if self.secured else "") + (" --transactions" if self.transactions else "")
            world = f"--seed {self.seed} --nodes {self.nodes} --seconds {self.trouble_s:g}{kinds}"
            lines.append(f"replay: penstock sim {world}")
        else:
            lines.append(f"all invariants held; digest {self.digest}")
        return "\n".join(lines)


class Words(logging.Handler):
    """Brings what the product logs into the story; errors are violations unless they are excused."""

    def __init__(self, story: Story, where: Callable[[], str], excused: Callable[[logging.LogRecord], bool]) -> None:
        super().__init__(logging.INFO)
        self._story, self._where, self._excused = story, where, excused
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread != self._thread:
            return  # a real broker elsewhere in the process; the simulated world has one thread
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f": {record.exc_info[1]!r}"
        line = f"{record.levelname.lower()} {record.name.removeprefix('penstock.')}: {text}"
        if record.levelno >= logging.ERROR and not self._excused(record):
            self._story.violated(f"{self._where()} logs {line}")
        else:
            self._story.tell(self._where(), line)
