"""How late the event loop runs, and why: a histogram of lag, and for a long delay the stack of the callback that held
the loop, or the word that it got no processor.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import traceback
from types import FrameType
from typing import Protocol

from penstock.server.loops.processor_time import Account
from penstock.server.loops.timing import Timing

_log = logging.getLogger("penstock.server.loop_watch")

TICK_S = 0.05
STALL_MS = 100.0
QUIET_S = 30.0
INNERMOST = 5


class Processor(Protocol):
    """What is known of the processor time of the loop's thread."""

    def account(self, *, now: bool = False) -> Account: ...


class LoopWatch:
    """A timer every 50 ms that measures by how much it is late.

    Each tick also winds an interval timer of the kernel for a moment after the next one. If the loop is held so
    long that the alarm rings, its handler runs in the middle of the guilty callback and finds that on the stack. No
    thread, and one system call a tick. Only the main thread may do that, and only if nobody else uses the alarm;
    otherwise a stall is logged without its stack.

    A delay in which the loop's thread waited for a processor is nobody's fault in here. With a `processor` it is
    counted apart, as `starved`, and told in other words.
    """

    __slots__ = (
        "_alarmed", "_before", "_due", "_name", "_processor", "_quiet_until", "_stack", "_timer", "_untold",
        "held_max_ms", "lag", "loop", "stalls", "starved",
    )  # fmt: skip

    def __init__(
        self, loop: asyncio.AbstractEventLoop, processor: Processor | None = None, *, name: str = "the loop"
    ) -> None:
        self.loop, self._processor, self._name = loop, processor, name
        self._before = Account(0, 0, 0)
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._alarmed = False
        self._stack = ""
        self._quiet_until = 0.0
        self._untold = 0
        self.lag = Timing()
        self.held_max_ms = 0.0
        """The longest delay so far, without the time in which there was no processor."""
        self.stalls = self.starved = 0

    def start(self) -> None:
        self._alarmed = (
            threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
        )
        if self._alarmed:
            signal.signal(signal.SIGALRM, self._rang)
        self._wind()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._alarmed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            self._alarmed = False

    def time_moved(self, ms: float) -> None:
        """Somebody moved the clock; that was no stall."""
        self._due += ms / 1000

    def _wind(self) -> None:
        self._due = self.loop.time() + TICK_S
        self._timer = self.loop.call_at(self._due, self._tick)
        if self._processor is not None:
            self._before = self._processor.account()
        if self._alarmed:
            signal.setitimer(signal.ITIMER_REAL, TICK_S + STALL_MS / 1000)

    def _tick(self) -> None:
        late_ms = max(0.0, (self.loop.time() - self._due) * 1000)
        self.lag.observe(late_ms)
        if late_ms > STALL_MS or self._stack:
            self._late(late_ms)
            self._stack = ""
        elif late_ms > self.held_max_ms:
            self._held(late_ms)
        self._wind()

    def _late(self, late_ms: float) -> None:
        held_ms = self._held(late_ms)
        if late_ms > STALL_MS >= held_ms:
            self.starved += 1
            denied_ms = late_ms - held_ms
            self._tell(
                f"{self._name} got no processor for about {denied_ms:.0f} ms: this machine, or its host, is busy"
            )
            return
        self.stalls += 1
        by = f" in {self._stack}" if self._stack else ""
        self._tell(f"{self._name} was held for about {held_ms:.0f} ms{by}")

    def _held(self, late_ms: float) -> float:
        """How much of a delay was not for want of a processor."""
        held_ms = late_ms
        if self._processor is not None:
            held_ms -= self._processor.account(now=True).since(self._before).denied_ms(late_ms)
        self.held_max_ms = max(self.held_max_ms, held_ms)
        return held_ms

    def _tell(self, words: str) -> None:
        """On a machine that is simply too busy delays would fill the log, so they are told once in a while."""
        now = self.loop.time()
        if now < self._quiet_until:
            self._untold += 1
            return
        others = f", and it was late {self._untold} times more since the last word of it" if self._untold else ""
        _log.warning("%s%s", words, others)
        self._untold, self._quiet_until = 0, now + QUIET_S

    def _rang(self, _number: int, frame: FrameType | None) -> None:
        # Runs between two steps of whatever holds the loop: only remember, the next tick tells.
        frames = traceback.extract_stack(frame, INNERMOST)
        self._stack = " < ".join(
            f"{each.name} ({each.filename.rpartition('/')[2]}:{each.lineno})" for each in frames[::-1]
        )
