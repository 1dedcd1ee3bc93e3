"""The wheel, turned by hand."""

from __future__ import annotations

from typing import Any

from penstock.transport.idle import IdleWheel
from penstock.transport.intake import Intake


class HandLoop:
    """A loop whose only timer is fired by the test."""

    def __init__(self) -> None:
        self.due: Any = None

    def call_later(self, _delay_s: float, callback: Any) -> HandLoop:
        self.due = callback
        return self

    def cancel(self) -> None:
        self.due = None


class Guest:
    def __init__(self, *, stays: bool = False) -> None:
        self.touched = 0
        self.idle_slot = 0
        self.stays = stays
        self.told = 0

    def idle(self) -> bool:
        self.told += 1
        return not self.stays


def world(idle_ms: float = 3_200.0) -> tuple[HandLoop, Intake, IdleWheel]:
    loop = HandLoop()
    intake = Intake(loop)  # type: ignore[arg-type]
    wheel = IdleWheel(loop, intake, idle_ms)  # type: ignore[arg-type]
    wheel.start()
    return loop, intake, wheel


def test_a_silent_connection_is_told_once_after_the_idle_time() -> None:
    loop, _, wheel = world()
    guest = Guest()
    wheel.add(guest)
    for _ in range(32):
        loop.due()
    assert guest.told == 0
    loop.due()
    loop.due()
    assert guest.told == 1
    for _ in range(200):
        loop.due()
    assert guest.told == 1
    assert wheel.expired == 1


def test_a_sign_of_life_starts_the_time_anew() -> None:
    loop, intake, wheel = world()
    guest = Guest()
    wheel.add(guest)
    for _ in range(300):
        loop.due()
        guest.touched = intake.tick
    assert guest.told == 0


def test_one_who_has_a_reason_to_stay_is_asked_again_later() -> None:
    loop, _, wheel = world()
    guest = Guest(stays=True)
    wheel.add(guest)
    for _ in range(70):
        loop.due()
    assert guest.told == 2
    assert wheel.expired == 0


def test_one_who_left_is_not_kept() -> None:
    loop, _, wheel = world()
    guest = Guest()
    wheel.add(guest)
    wheel.discard(guest)
    assert not any(wheel._buckets.values())
    for _ in range(70):
        loop.due()
    assert guest.told == 0


def test_a_negative_idle_time_never_ends() -> None:
    loop, _, wheel = world(-1)
    wheel.add(Guest())
    assert loop.due is None
