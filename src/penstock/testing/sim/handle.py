"""What a loop of the simulator gives whoever schedules something: one kind for callbacks and for timers.

A run makes some hundred thousand of them. asyncio's own ask their loop each time whether it is being debugged, and
take two to four calls to make and two to run; these take one, and the scheduler runs them itself.
"""

from __future__ import annotations

import asyncio
from asyncio.format_helpers import _format_callback_source
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Timetable(Protocol):
    """What a loop asks of the scheduler that all loops of a world share."""

    now: float
    cancelled: int

    def soon(self, handle: asyncio.Handle, /) -> None: ...

    def at(self, when: float, handle: asyncio.Handle, /) -> None: ...


class Scheduling(Protocol):
    """What a handle asks of its loop."""

    scheduler: Timetable


class SimHandle(asyncio.TimerHandle):
    """A callback that will run soon, or at a time; `_scheduled` while it is in the heap of what is due later."""

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: Scheduling,
        context: Context | None,
    ) -> None:
        # Not asyncio's own: what it sets besides is for loops that are being debugged, and this one never is.
        self._callback: Any = callback
        self._args: Any = args
        self._loop = loop
        self._context = copy_context() if context is None else context
        self._cancelled = False
        self._scheduled = False
        self._when = when

    def cancel(self) -> None:
        if self._cancelled:
            return
        self._cancelled = True
        self._callback = self._args = None
        if self._scheduled:
            self._loop.scheduler.cancelled += 1

    def __repr__(self) -> str:
        what = "cancelled" if self._cancelled else _format_callback_source(self._callback, self._args)
        return f"<SimHandle {what} at {self._when}>"


def uncaught(handle: asyncio.Handle, broken: BaseException) -> None:
    """Tells the loop of a callback that it failed, in the words of asyncio."""
    callback: Any = handle._callback  # type: ignore[attr-defined]  # asyncio keeps it for itself
    source = _format_callback_source(callback, handle._args)
    handle._loop.call_exception_handler(  # type: ignore[attr-defined]  # as above
        {"message": f"Exception in callback {source}", "exception": broken, "handle": handle}
    )
