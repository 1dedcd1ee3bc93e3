"""A few steps of handshakes a turn of the loop, the others in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.transport.tls.turns import STEPS_PER_TURN, HandshakeTurns


class HandLoop:
    """Runs what was called soon when told to, one turn at a time."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def turn(self) -> None:
        ready, self.soon = self.soon, []
        for callback in ready:
            callback()


class Shaker:
    def __init__(self, name: int, taken: list[int], after: Callable[[], None] | None = None) -> None:
        self.name, self.taken, self.after = name, taken, after

    def take_step(self) -> None:
        self.taken.append(self.name)
        if self.after is not None:
            self.after()


def made() -> tuple[Any, HandshakeTurns]:
    loop: Any = HandLoop()
    return loop, HandshakeTurns(loop)


def test_a_few_go_at_once_and_the_others_by_turns_in_their_order() -> None:
    loop, turns = made()
    taken: list[int] = []
    at_once = [turns.ask(Shaker(name, taken)) for name in range(10)]
    assert at_once == [True] * STEPS_PER_TURN + [False] * (10 - STEPS_PER_TURN)
    counts = [len(taken)]
    while turns.waiting:
        loop.turn()
        counts.append(len(taken))
    assert counts == [4, 8, 10]
    assert taken == list(range(10))


def test_a_newcomer_does_not_overtake_those_who_wait() -> None:
    loop, turns = made()
    taken: list[int] = []
    for name in range(STEPS_PER_TURN + 1):
        turns.ask(Shaker(name, taken))
    assert not turns.ask(Shaker(99, taken))
    loop.turn()
    assert taken[-2:] == [STEPS_PER_TURN, 99]


def test_after_a_quiet_turn_there_is_room_again_and_the_loop_is_left_alone() -> None:
    loop, turns = made()
    taken: list[int] = []
    turns.ask(Shaker(0, taken))
    loop.turn()
    assert not loop.soon
    assert all(turns.ask(Shaker(name, taken)) for name in range(STEPS_PER_TURN))


def test_who_is_gone_takes_no_step() -> None:
    loop, turns = made()
    taken: list[int] = []
    late = Shaker(8, taken)
    for name in range(STEPS_PER_TURN):
        turns.ask(Shaker(name, taken))
    turns.ask(Shaker(7, taken, after=lambda: turns.forget(late)))
    turns.ask(late)
    loop.turn()
    assert taken == [0, 1, 2, 3, 7]
