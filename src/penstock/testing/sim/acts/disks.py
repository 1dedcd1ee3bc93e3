"""Disks are slow, hang, fill up and have room again, and fail."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import TYPE_CHECKING, Any

from penstock.testing.sim.trouble import Mishap, for_good

if TYPE_CHECKING:
    from penstock.testing.sim.machine import Machine
    from penstock.testing.sim.trouble import Trouble

Aftermath = Coroutine[Any, Any, None] | None

TO_THE_END = 0.3
"""So many broken disks stay so until all is made good: their node lives on, and nobody may be sent to what it lost."""

LONGEST_S = 10.0
"""A world has no time for disks that hang for longer than that and go on."""


def slow_disk(trouble: Trouble, random: Random) -> Aftermath:
    victim = trouble.victim(up=False)
    if victim is None:
        return None
    victim.disk.slow_s = random.choice((0.05, 0.5))
    trouble.tell(victim.host, f"its disk takes up to {victim.disk.slow_s} s for a sync")
    return for_good()


def hang(trouble: Trouble, random: Random) -> Aftermath:
    """Nothing comes back from a disk for a while, but sooner than its node gives it up."""
    victim = trouble.victim(up=False)
    if victim is None or victim.disk.hanging:
        return None
    _hang(trouble, random, victim, min(victim.patience_s, LONGEST_S) * random.choice((0.1, 0.4, 0.8)))
    return for_good()


def hang_for_long(trouble: Trouble, random: Random) -> Aftermath:
    """A disk hangs for longer than its node waits: the node ends, or goes on without that directory."""
    victim = trouble.victim()
    if victim is None or victim.disk.hanging or victim.patience_s > LONGEST_S:
        return None
    if victim.troubled or not trouble.may_end_uncleanly(victim):
        return None
    victim.troubled = victim.unclean = True
    for_s = victim.patience_s + random.choice((1.5, 4.0))
    _hang(trouble, random, victim, for_s)

    async def replace() -> None:
        await asyncio.sleep(for_s)
        await trouble.a_while()
        if victim.up and victim.troubled:  # a directory that was given up comes back with the next life
            victim.resume()
            victim.kill()
        await trouble.revive(victim)

    return replace()


def _hang(trouble: Trouble, random: Random, victim: Machine, for_s: float) -> None:
    prefix = random.choice(trouble.breakable(victim))
    trouble.tell(victim.host, f"its disk hangs for {for_s:.1f} s under {prefix}")
    victim.disk.hang(prefix, for_s)


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
        if random.random() < TO_THE_END:
            return
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
    Mishap("disks that hang for too long", hang_for_long, 0.6),
    Mishap("broken disks", broken_disk),
    Mishap("full disks", full_disk),
)
