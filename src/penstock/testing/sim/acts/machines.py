"""Processes end and stop, machines lose power, their clocks jump, and their disks come back old or empty.

What is lost with a disk is bounded by the fault model of `trouble.py`: it counts as a loss of power, whatever the disk
had synced. An old disk comes back to brokers alone. A voter that has forgotten a vote breaks the quorum's promises, as
it would in Apache Kafka, and nobody claims otherwise. An empty disk has a new directory id, by which the quorum tells
it from the voter that it was: it joins as an observer, is made a voter in its own place, and only then votes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import TYPE_CHECKING, Any

from penstock.testing.sim.trouble import Mishap, for_good

if TYPE_CHECKING:
    from penstock.testing.sim.machine import Machine
    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.trouble import Trouble

Aftermath = Coroutine[Any, Any, None] | None

RESTART_PATIENCE_S = 15.0
STEPS_MS = (-90_000, -2_000, 2_000, 90_000)


def kill(trouble: Trouble, _random: Random) -> Aftermath:
    victim = trouble.victim()
    if victim is None or not trouble.may_end_uncleanly(victim):
        return None
    return kill_it(trouble, victim)


def kill_it(trouble: Trouble, victim: Machine) -> Aftermath:
    victim.kill()
    return trouble.revive(victim)


def cut_power(trouble: Trouble, _random: Random) -> Aftermath:
    victim = trouble.victim()
    if victim is None or not trouble.may_end_uncleanly(victim, loses_bytes=True):
        return None
    return cut_its_power(trouble, victim)


def cut_its_power(trouble: Trouble, victim: Machine) -> Aftermath:
    victim.cut_power()
    return trouble.revive(victim)


def pause(trouble: Trouble, _random: Random) -> Aftermath:
    victim = trouble.victim()
    return None if victim is None else pause_it(trouble, victim)


def pause_it(trouble: Trouble, victim: Machine) -> Aftermath:
    victim.pause()
    life = victim.lives

    async def go_on() -> None:
        await trouble.a_while()
        if victim.lives == life:
            victim.resume()

    return go_on()


def restart(trouble: Trouble, _random: Random) -> Aftermath:
    """A clean stop, as in a rolling restart, and a start soon after."""
    victim = trouble.victim()
    return None if victim is None or not victim.serving else restart_it(trouble, victim)


def restart_it(trouble: Trouble, victim: Machine) -> Aftermath:
    life = victim.lives
    victim.down_on_purpose = True
    ended = victim.stop()

    async def come_back() -> None:
        try:
            async with asyncio.timeout(RESTART_PATIENCE_S):
                await ended
        except TimeoutError:
            # With its peers away it may wait for long; whoever runs it loses patience.
            if victim.lives == life and victim.up and trouble.may_end_uncleanly(victim):
                victim.resume()
                victim.kill()
        await ended
        await trouble.revive(victim)

    return come_back()


def step_clock(trouble: Trouble, random: Random) -> Aftermath:
    """Somebody sets the time of day; what measures time does not notice."""
    victim = trouble.victim(up=False)
    if victim is None:
        return None
    victim.step_clock(random.choice(STEPS_MS))
    return for_good()


def old_disk(trouble: Trouble, random: Random) -> Aftermath:
    """A broker comes back with what a copy of its disk has, made a while ago while it ran or after it had ended."""
    victims = [machine for machine in trouble.running() if machine.node_id not in trouble.plan.controllers]
    if not victims:
        return None
    victim = random.choice(victims)
    copy = victim.disk.copy()

    async def come_back() -> None:
        await trouble.a_while()
        while not (victim.up and trouble.victim() and trouble.may_end_uncleanly(victim, loses_bytes=True)):
            await trouble.a_while()
        victim.cut_power()
        victim.disk.restore(copy)
        trouble.tell(victim.host, "has an old disk")
        trouble.count("old disks")
        await trouble.revive(victim)

    return come_back()


def empty_disk(trouble: Trouble, _random: Random) -> Aftermath:
    """A machine is replaced: the same node id on new, formatted disks."""
    victim = trouble.victim()
    if victim is None or not trouble.may_end_uncleanly(victim, loses_bytes=True):
        return None
    if victim.node_id in trouble.plan.controllers and not trouble.voters_are_well(but=victim):
        return None
    victim.cut_power()
    trouble.tell(victim.host, "has an empty disk")
    trouble.founding.replace_disk(victim)
    return trouble.revive(victim)


def has_mere_brokers(plan: Plan) -> bool:
    return set(plan.brokers) > set(plan.controllers) or not set(plan.brokers) & set(plan.controllers)


def survives_a_lost_disk(plan: Plan) -> bool:
    return plan.min_in_sync > 1


MISHAPS = (
    Mishap("kills", kill),
    Mishap("power cuts", cut_power),
    Mishap("pauses", pause),
    Mishap("restarts", restart),
    Mishap("clocks set", step_clock, 0.4),
    Mishap("disks copied", old_disk, 0.6, lambda plan: survives_a_lost_disk(plan) and has_mere_brokers(plan)),
    Mishap("empty disks", empty_disk, 0.4, survives_a_lost_disk),
)
