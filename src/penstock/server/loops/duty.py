"""What becomes of an exception that nobody foresaw. One policy for all of a node:

- in the handler of a request it costs that request, or its connection (`connection.py`);
- in a chore that is repeated anyway (retention, compaction, a heartbeat) it is logged, and the chore is tried again;
- anywhere else it ends the node, with exit code 1 and a sentence. A part that stopped without a word would leave a node
  that looks well and is not: one that leads nobody, or serves topics that are gone.

Tasks and timers of drivers are duties, by way of this module. What breaks there is told to the loop's exception handler
at once; whoever runs the node (`running.py`, the simulator) listens there and ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final, TypeVar

from penstock.model.errors import PenstockError, Refused

T = TypeVar("T")

DUTY: Final = "penstock.duty"
"""In what an exception handler is told: the sentence about a node that cannot go on."""


class Unforeseen(PenstockError):
    """We broke: `what` failed in a way that no code of ours expects."""

    def __init__(self, what: str, broken: BaseException) -> None:
        super().__init__(f"{what} failed: {type(broken).__name__}: {broken}")
        self.__cause__ = broken


def reason(what: str, broken: Exception) -> PenstockError:
    """Why a node cannot go on: what the world did to it in its own words, anything else as ours."""
    if isinstance(broken, PenstockError) and not isinstance(broken, Refused):
        return broken
    return Unforeseen(what, broken)


def duty(work: Coroutine[object, None, T], *, name: str) -> asyncio.Task[T]:
    """A task that its node cannot do without: an exception that ends it ends the node."""
    task = asyncio.get_running_loop().create_task(work, name=name)
    task.add_done_callback(_ended)
    return task


def on_duty(name: str, callback: Callable[[], None]) -> Callable[[], None]:
    """The same for what a timer calls: one that raises would never be set again."""

    def guarded() -> None:
        try:
            callback()
        except Exception as broken:
            tell(name, broken)

    return guarded


def tell(what: str, broken: BaseException) -> None:
    """Hands what nobody foresaw to whoever runs this node. Call it on its loop."""
    loop = asyncio.get_running_loop()
    words = str(Unforeseen(what, broken))
    loop.call_exception_handler({"message": words, "exception": broken, DUTY: words})


def _ended(task: asyncio.Task[object]) -> None:
    if not task.cancelled() and (broken := task.exception()) is not None:
        tell(task.get_name(), broken)
