"""Disks are slow, hang, fill up and have room again, and fail."""

from __future__ import annotations

from collections.abc import Coroutine
from random import Random
from typing import TYPE_CHECKING, Any

from penstock.testing.sim.acts.act import Mishap, for_good

if TYPE_CHECKING:
    from penstock.testing.sim.machine import Machine
    from penstock.testing.sim.trouble import Trouble

Aftermath = Coroutine[Any, Any, None] | None


def slow_disk(trouble: Trouble, random: Random) -> Aftermath:
    victim = trouble.victim(up=False)
    if victim is None:
        return None
    victim.disk.slow_s = random.choice((0.05, 0.5))
    trouble.tell(victim.host, f"its disk takes up to {victim.disk.slow_s} s for a sync")
    return for_good()


def hang(trouble: Trouble, random: Random) -> Aftermath:
    """For a while a sync takes seconds; then the disk is as it was."""
    victim = trouble.victim(up=False)
    if victim is None:
        return None
    disk, before_s = victim.disk, victim.disk.slow_s
    disk.slow_s = random.choice((2.0, 5.0))
    trouble.tell(victim.host, f"its disk hangs for up to {disk.slow_s} s")

    async def go_on() -> None:
        await trouble.a_while()
        disk.slow_s = before_s
        trouble.tell(victim.host, "its disk hangs no more")

    return go_on()


def broken_disk(trouble: Trouble, random: Random) -> Aftermath:
    return _break(trouble, random, full=False)


def full_disk(trouble: Trouble, random: Random) -> Aftermath:
    return _break(trouble, random, full=True)


def _break(trouble: Trouble, random: Random, *, full: bool) -> Aftermath:
    victim = trouble.victim()
    if victim is None or victim.troubled or not trouble.may_end_uncleanly(victim):
        return None
    victim.troubled = victim.unclean = True
    prefix = random.choice(trouble.breakable(victim))
    trouble.tell(victim.host, f"its disk {'is full' if full else 'fails'} under {prefix}")
    victim.disk.break_down(prefix, full=full)
    life = victim.lives

    async def replace() -> None:
        await trouble.a_while()
        if full and random.random() < 0.5:
            _make_room(trouble, victim)
            await trouble.a_while()
        if victim.up and victim.lives == life:
            victim.resume()
            victim.kill()
        await trouble.revive(victim)

    return replace()


def _make_room(trouble: Trouble, victim: Machine) -> None:
    """Somebody makes room while the process runs on: it may have ended, or gone on without that directory."""
    trouble.mend(victim)
    trouble.tell(victim.host, "its disk has room again")
    trouble.count("disks with room again")


MISHAPS = (
    Mishap("slow disks", slow_disk),
    Mishap("hanging disks", hang),
    Mishap("broken disks", broken_disk),
    Mishap("full disks", full_disk),
)
