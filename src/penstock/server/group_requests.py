"""What several handlers of group requests share: replies that are there at once or come later, and who is served."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import CoroutineType
from typing import TYPE_CHECKING, Final, TypeVar, cast

from penstock.metadata.features import GROUP_VERSION

if TYPE_CHECKING:
    from penstock.server.context import Context

T = TypeVar("T")
R = TypeVar("R")

CONSUMER_PROTOCOL: Final = "consumer"
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


def serves_consumer_protocol(ctx: Context) -> bool:
    """Whether groups that the coordinator assigns are served: by this broker's settings and by the whole cluster."""
    allowed = CONSUMER_PROTOCOL in ctx.node.settings.names("group.coordinator.rebalance.protocols")
    return allowed and ctx.node.metadata.image.features.get(GROUP_VERSION, 0) > 0
