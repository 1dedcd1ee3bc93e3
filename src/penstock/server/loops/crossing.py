"""Between the two loops of a node: one votes and heartbeats, the other serves clients and waits for disks.

Nothing that changes is shared. What passes from one loop to the other is a call with its arguments (`tell`), or a
question and its answer (`ask`, `call`), and all of it is handed over here and nowhere else. Each direction keeps its
order: what was told before an answer has arrived before it. What one side may read of the other without asking are
values that are replaced as a whole (numbers, tuples), never tables.

A node that has only one loop crosses it all the same, in the plainest way: a call is a call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, ParamSpec, Protocol, TypeVar, TypeVarTuple

from penstock.model.errors import BROKER_NOT_AVAILABLE, Refused

if TYPE_CHECKING:
    from random import Random

    from penstock.model.ports import Ports

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

STOPPING: Final = "this node is stopping"


class Hand(Protocol):
    """Takes a callback and its arguments to another loop, where it runs after all that was handed over before."""

    def __call__(self, callback: Callable[[*Ts], object], /, *args: *Ts) -> object: ...


class Side(Protocol):
    """One of the two loops, seen from the other."""

    def tell(self, callback: Callable[[*Ts], None], *args: *Ts) -> None:
        """Calls there, soon. Nobody hears what became of it."""

    def ask(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> Awaitable[T]:
        """What `work`, called there, gives or raises. Refused when the other loop ends first."""

    def call(self, work: Callable[P, Awaitable[T]], *args: P.args, **options: P.kwargs) -> Awaitable[T]:
        """What that comes to which `work`, called there, gives. Who stops waiting stops the work. Refused as `ask`."""


class SameLoop:
    """Both sides of a node that has one loop."""

    def tell(self, callback: Callable[[*Ts], None], *args: *Ts) -> None:
        callback(*args)

    async def ask(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        return work(*args, **options)

    async def call(self, work: Callable[P, Awaitable[T]], *args: P.args, **options: P.kwargs) -> T:
        return await work(*args, **options)


class OtherLoop:
    """One side of a node with two loops. `hand` brings things there, `back` brings answers here."""

    def __init__(self, hand: Hand, back: Hand) -> None:
        self._hand, self._back = hand, back

    def tell(self, callback: Callable[[*Ts], None], *args: *Ts) -> None:
        # A loop that has ended has nothing left to do.
        with suppress(RuntimeError):
            self._hand(callback, *args)

    async def ask(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        return await self._sent(_Errand(answer, self._back, lambda: work(*args, **options)))

    async def call(self, work: Callable[P, Awaitable[T]], *args: P.args, **options: P.kwargs) -> T:
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        return await self._sent(_Errand(answer, self._back, lambda: work(*args, **options)))

    async def _sent(self, errand: _Errand[T]) -> T:
        try:
            self._hand(errand.begin)
        except RuntimeError:
            raise Refused(BROKER_NOT_AVAILABLE, STOPPING) from None
        try:
            return await errand.answer
        except asyncio.CancelledError:
            self.tell(errand.give_up)
            raise


class _Errand(Generic[T]):
    """One question under way. `begin` and `give_up` run there, `_gave` and `_broke` here."""

    __slots__ = ("_back", "_given_up", "_task", "_work", "answer")

    def __init__(self, answer: asyncio.Future[T], back: Hand, work: Callable[[], Awaitable[T] | T]) -> None:
        self.answer, self._back, self._work = answer, back, work
        self._task: asyncio.Task[T] | None = None
        self._given_up = False

    def begin(self) -> None:
        if self._given_up:
            return
        try:
            outcome = self._work()
        except Exception as broken:  # whatever it is belongs to whoever asked
            self._bring(self._broke, broken)
            return
        if isinstance(outcome, Awaitable):
            self._task = asyncio.get_running_loop().create_task(_awaited(outcome), name="errand")
            self._task.add_done_callback(self._done)
        else:
            self._bring(self._gave, outcome)

    def give_up(self) -> None:
        self._given_up = True
        if self._task is not None:
            self._task.cancel()

    def _done(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self._bring(self._broke, Refused(BROKER_NOT_AVAILABLE, STOPPING))
        elif (broken := task.exception()) is not None:
            self._bring(self._broke, broken)
        else:
            self._bring(self._gave, task.result())

    def _bring(self, tell: Callable[[*Ts], None], *outcome: *Ts) -> None:
        # A loop that has ended has nobody left who waits.
        with suppress(RuntimeError):
            self._back(tell, *outcome)

    def _gave(self, result: T) -> None:
        if not self.answer.done():
            self.answer.set_result(result)

    def _broke(self, broken: BaseException) -> None:
        if not self.answer.done():
            self.answer.set_exception(broken)


async def _awaited(outcome: Awaitable[T]) -> T:
    return await outcome


class Sides(NamedTuple):
    """Both loops of a node, each as the other sees it."""

    control: Side
    data: Side


def one_loop() -> Sides:
    same = SameLoop()
    return Sides(same, same)


def two_loops(*, to_control: Hand, to_data: Hand) -> Sides:
    return Sides(control=OtherLoop(to_control, to_data), data=OtherLoop(to_data, to_control))


class Quarters(Protocol):
    """Where the control part of a node lives: its loop, with what it reaches the world through."""

    sides: Sides
    ports: Ports
    random: Random

    def loop(self) -> asyncio.AbstractEventLoop: ...
    def on_uncaught(self, handler: Callable[[asyncio.AbstractEventLoop, dict[str, object]], None]) -> None:
        """Who is told what nobody caught there, when that is a loop of its own."""

    def held_at(self) -> str | None:
        """The file that the loop of the rest is busy with at this moment, if it is."""

    def run(self, work: Callable[[], None]) -> None:
        """Has it done there, and returns when it is: for the end of a node, which waits for nobody."""

    def close(self) -> None:
        """Nothing of the control part runs any more: the loop ends, if it is one of its own."""


class SharedQuarters:
    """The control part lives on the loop of the rest."""

    def __init__(self, ports: Ports, random: Random) -> None:
        self.sides, self.ports, self.random = one_loop(), ports, random

    def loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def on_uncaught(self, handler: Callable[[asyncio.AbstractEventLoop, dict[str, object]], None]) -> None:
        """Whoever runs the node's loop has one."""

    def held_at(self) -> str | None:
        return None

    def run(self, work: Callable[[], None]) -> None:
        work()

    def close(self) -> None:
        """There is no loop but that of the node."""
