"""Looks for calls to a disk that do not come back: of threads, and of the loop that serves clients.

It lives on the loop of the quorum and the heartbeats, which waits for no disk. Once a second it asks the other loop for
a sign of life and looks at the oldest call of each offload. The plain paths pay nothing for it: where a loop that is
silent hangs is read from its stack.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, runtime_checkable

from penstock.server.duty import on_duty

if TYPE_CHECKING:
    from penstock.model.ports import Clock
    from penstock.server.crossing import Sides

LOOK_S: Final = 1.0
_DEPTH: Final = 3


class Unanswered(NamedTuple):
    """A call to a disk that has not come back: since when, by the monotonic clock, and of which file."""

    since_ms: float
    path: str


@runtime_checkable
class Answers(Protocol):
    """An offload that knows what it waits for."""

    def unanswered(self) -> Unanswered | None:
        """Its oldest call to a disk that has not come back."""


class HangWatch:
    """`on_hang` is told the file and for how many milliseconds, once; `on_held` the same of the loop that serves
    clients, and again whenever that has lasted as long once more. It may hang in something else: then the file is None.
    """

    def __init__(
        self,
        clock: Clock,
        sides: Sides,
        timeout_ms: Callable[[], int],
        offloads: Sequence[Any],
        held_at: Callable[[], str | None],
        *,
        on_hang: Callable[[str, float], None],
        on_held: Callable[[str | None, float], None],
    ) -> None:
        self._clock, self._sides, self._timeout_ms, self._held_at = clock, sides, timeout_ms, held_at
        self._offloads = [each for each in offloads if isinstance(each, Answers)]
        self._on_hang, self._on_held = on_hang, on_held
        self._told: set[Unanswered] = set()
        self._asked_ms: float | None = None
        self._held_told = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def held_ms(self) -> float:
        """For how long the loop that serves clients has given no sign of life."""
        return 0.0 if self._asked_ms is None else self._clock.monotonic_ms() - self._asked_ms

    def start(self) -> None:
        self._wind()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _wind(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, on_duty("the watch over disks", self._look))

    def _look(self) -> None:
        self._wind()
        timeout_ms = self._timeout_ms()
        if self._asked_ms is None:
            self._asked_ms = self._clock.monotonic_ms()
            self._sides.data.tell(self._asked)
        elif self.held_ms >= timeout_ms * (self._held_told + 1):
            self._held_told += 1
            self._on_held(self._held_at(), self.held_ms)
        now = self._clock.monotonic_ms()
        found = {each for offload in self._offloads if (each := offload.unanswered()) is not None}
        for each in sorted(found - self._told):
            if now - each.since_ms >= timeout_ms:
                self._told.add(each)
                self._on_hang(each.path, now - each.since_ms)
        self._told &= found

    def _asked(self) -> None:
        """On the loop that serves clients."""
        self._sides.control.tell(self._answered)

    def _answered(self) -> None:
        self._asked_ms, self._held_told = None, 0


def path_of(work: object, depth: int = _DEPTH) -> str | None:
    """The file that a call is about, as far as the call and what it was given tell."""
    if isinstance(work, str):
        return work if work.startswith("/") else None
    if depth == 0 or work is None:
        return None
    for name in ("path", "directory"):
        if isinstance(found := getattr(work, name, None), str):
            return found
    inner: list[object] = [getattr(work, name, None) for name in ("__self__", "file", "func")]
    inner += getattr(work, "args", ())
    if isinstance(work, list | tuple):
        inner += work[:1]
    return next((found for each in inner if (found := path_of(each, depth - 1)) is not None), None)
