"""What a loop returns for a timer: something that can be cancelled, and no more than that."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import uvloop

import penstock

SOURCES = Path(penstock.__file__).parent
OWN_TIMERS = {"testing/moving_time.py"}
"""Timers of its own, which know when they are due."""


def test_no_code_asks_a_timer_when_it_is_due() -> None:
    """uvloop makes a plain handle, without `when`, of what is due at once."""

    async def due_at_once() -> asyncio.Handle:
        return asyncio.get_running_loop().call_at(0, lambda: None)

    assert not hasattr(uvloop.run(due_at_once()), "when")
    asking = {
        str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py") if re.search(r"\.when\(\)", path.read_text())
    }
    assert asking == OWN_TIMERS
