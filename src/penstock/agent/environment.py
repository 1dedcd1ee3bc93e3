"""What an input is given besides its settings and its way out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.agent.checkpoints import Checkpoints
    from penstock.agent.exactly.positions import Positions


def monotonic_ms() -> float:
    return time.monotonic_ns() / 1_000_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Environment:
    """The agent around an input."""

    agent: str
    host: str
    state_dir: Path
    input: str
    """This input's name."""
    checkpoints: Checkpoints
    monotonic_ms: Callable[[], float] = monotonic_ms
    """For intervals: the wall clock jumps."""
    now_ms: Callable[[], int] = now_ms
    claimed: Callable[[], tuple[str, ...]] = tuple
    """Globs of files that are other inputs' to read."""
    positions: Positions | None = None
    """With `exactly_once`: positions are here, and go into transactions; `checkpoints` only follow."""
    bounded_memory_bytes: int = 64 << 20
    """`output.memory`: an input's own buffers stay well below it."""
