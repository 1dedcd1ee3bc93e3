"""From a command to a coroutine."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, without a warning of Python's when Ctrl-C comes before the first step of the coroutine."""
    try:
        return asyncio.run(work)
    finally:
        if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
            work.close()
