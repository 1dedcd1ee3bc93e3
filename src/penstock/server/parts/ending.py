"""How drivers end when there is no time to wait for them."""

from __future__ import annotations

from collections.abc import Coroutine


def cancel_now(closing: Coroutine[object, None, object]) -> None:
    """Runs the closing of a driver up to its first wait: that far, it cancels its tasks and timers.

    Every driver closes in that order. What comes after the wait (syncs, farewells) is what a crash leaves out.
    """
    try:
        closing.send(None)
    except StopIteration:
        return
    closing.close()
