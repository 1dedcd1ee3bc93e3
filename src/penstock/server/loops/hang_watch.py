"""Looks for calls to a disk that do not come back: of threads, and of the loop that serves clients.

It lives on the loop of the quorum and the heartbeats, which waits for no disk. Once a second it asks the other loop for
a sign of life and looks at the calls of each offload. The plain paths pay nothing for it: where a loop that is silent
hangs is read from its stack. A call that goes through many files has come to another one by the next look, unless the
disk hangs.

Time counts by its own looks. One that comes late adds no more than a look's worth: the whole process stood still then,
stopped by a signal or with its machine, and the clock says nothing about disks. Nor does such a look tell of anybody:
what was answered meanwhile is heard of only after it. The next one does, however late it comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, runtime_checkable

from penstock.server.loops.duty import on_duty

if TYPE_CHECKING:
    from penstock.model.ports import Clock
    from penstock.server.loops.crossing import Sides

LOOK_S: Final = 1.0
LATE_MS_MAX: Final = 2_000 * LOOK_S
"""What counts of the time between two looks."""
_DEPTH: Final = 3


class Unanswered(NamedTuple):
    """A call to a disk that has not come back: since when, by the monotonic clock, and of which file."""

    since_ms: float
    path: str


@runtime_checkable
class Answers(Protocol):
    """An offload that knows what it waits for."""

    def unanswered(self) -> list[Unanswered]:
        """Its calls to disks that have not come back."""


class HangWatch:
    """`on_hang` is told the file and for how many milliseconds, once; `on_held` the same of the loop that serves
    clients, and again whenever that has lasted as long once more. It may hang in something else: then the file is None.
    """

    def __init__(
        self,
        clock: Clock,
        sides: Sides,
        timeout_ms: Callable[[], int],
        offloads: Sequence[object],
        held_at: Callable[[], str | None],
        *,
        on_hang: Callable[[str, float], None],
        on_held: Callable[[str | None, float], None],
    ) -> None:
        self._clock, self._sides, self._timeout_ms, self._held_at = clock, sides, timeout_ms, held_at
        self._offloads = [each for each in offloads if isinstance(each, Answers)]
        self._on_hang, self._on_held = on_hang, on_held
        self._waited_ms: dict[Unanswered, float] = {}
        self._told: set[Unanswered] = set()
        self._looked_ms = clock.monotonic_ms()
        self._was_late = False
        self._asked = False
        self._held_ms = 0.0
        self._held_told = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def held_ms(self) -> float:
        """For how long the loop that serves clients has given no sign of life."""
        return self._held_ms

    def start(self) -> None:
        self._looked_ms = self._clock.monotonic_ms()
        self._wind()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _wind(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, on_duty("the watch over disks", self._look))

    def _look(self) -> None:
        self._wind()
        now = self._clock.monotonic_ms()
        passed_ms, self._looked_ms = now - self._looked_ms, now
        late = passed_ms >= LATE_MS_MAX and not self._was_late
        self._was_late = late
        timeout_ms = float("inf") if late else self._timeout_ms()
        self._look_at_the_loop(min(passed_ms, LATE_MS_MAX), timeout_ms)
        self._look_at_threads(now, min(passed_ms, LATE_MS_MAX), timeout_ms)

    def _look_at_the_loop(self, passed_ms: float, timeout_ms: float) -> None:
        if not self._asked:
            self._asked = True
            self._sides.data.tell(self._give_a_sign)
            return
        self._held_ms += passed_ms
        if self._held_ms >= timeout_ms * (self._held_told + 1):
            self._held_told += 1
            self._on_held(self._held_at(), self._held_ms)

    def _look_at_threads(self, now: float, passed_ms: float, timeout_ms: float) -> None:
        found = {each for offload in self._offloads for each in offload.unanswered()}
        before = self._waited_ms
        # Of a call that was not seen before all that counts lies since the last look.
        self._waited_ms = {each: before.get(each, 0.0) + min(passed_ms, now - each.since_ms) for each in found}
        self._told &= found
        for each in sorted(found - self._told):
            if self._waited_ms[each] >= timeout_ms:
                self._told.add(each)
                self._on_hang(each.path, self._waited_ms[each])

    def _give_a_sign(self) -> None:
        """On the loop that serves clients."""
        self._sides.control.tell(self._answered)

    def _answered(self) -> None:
        self._asked, self._held_ms, self._held_told = False, 0.0, 0


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
