"""Replies that are there at once or come later: a handler may return either, and so may what it asks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import CoroutineType
from typing import Final, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")

_TO_COME: Final = (asyncio.Future, CoroutineType)


def then(outcome: T | Awaitable[T], change: Callable[[T], R]) -> R | Awaitable[R]:
    """`change` of an outcome that may still be to come."""
    if isinstance(outcome, _TO_COME):
        return _changed(outcome, change)
    return change(cast(T, outcome))


async def _changed(outcome: Awaitable[T], change: Callable[[T], R]) -> R:
    return change(await outcome)


def gathered(outcomes: Sequence[T | Awaitable[T]], join: Callable[[list[T]], R]) -> R | Awaitable[R]:
    """`join` of all outcomes in their order; at once when none is to come."""
    if any(isinstance(each, _TO_COME) for each in outcomes):
        return _joined(outcomes, join)
    return join(cast("list[T]", list(outcomes)))


async def _joined(outcomes: Sequence[T | Awaitable[T]], join: Callable[[list[T]], R]) -> R:
    return join([await each if isinstance(each, _TO_COME) else cast(T, each) for each in outcomes])
