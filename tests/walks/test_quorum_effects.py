"""An effect of the quorum that cannot be carried out, whatever the reason, ends this node's part in it and says so."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from penstock.quorum import events
from tests.patience import at_most, until
from tests.walks.quorum_nodes import Machine, Quorum, run

EFFECTS = get_args(events.Effect)


class Planted(Exception):
    """What nobody foresaw."""


def plant(machine: Machine, effect: type[Any]) -> None:
    """Makes the node fail at the next effect of this kind; `quorum-state` is written on another way than the rest."""
    carry_out = machine.quorum._carry_out

    def planted(due: events.Effect) -> None:
        if isinstance(due, effect):
            raise Planted(effect.__name__)
        carry_out(due)

    def unwritable(_effect: events.PersistState) -> tuple[str, bytes]:
        raise Planted(effect.__name__)

    machine.quorum._carry_out = planted  # type: ignore[method-assign]
    if effect is events.PersistState:
        machine.quorum._state_file = unwritable  # type: ignore[method-assign]


def failed(world: Quorum) -> list[Machine]:
    return [machine for machine in world.machines.values() if machine.failures]


async def end(world: Quorum) -> None:
    """Everybody stops; those that failed are done with, the others stop as ever."""
    for machine in world.live:
        async with at_most(60):
            await machine.stop()
    for machine in world.machines.values():
        machine.failures.clear()


@pytest.mark.parametrize("effect", EFFECTS, ids=lambda effect: effect.__name__)
def test_a_node_that_cannot_carry_out_an_effect_takes_no_further_part_and_says_why(effect: type[Any]) -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        await leader.commit("before")
        for machine in world.live:
            plant(machine, effect)
        # A leader that is cut off resigns and the others vote: between them they do everything that there is to do.
        world.isolated.add(leader.number)
        await until(lambda: bool(failed(world)))
        for machine in failed(world):
            assert not machine.quorum.leading
            assert [f"{effect.__name__} failed" in str(why) for why in machine.failures] == [True], machine.failures
            assert "Planted" in str(machine.failures[0])
        world.isolated.clear()
        await end(world)

    run(steps)


def test_a_machine_that_breaks_in_a_step_takes_no_further_part_and_says_why() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()

        def broken(_event: events.Event) -> list[events.Effect]:
            raise Planted("step")

        leader.quorum._opened.step = broken  # type: ignore[method-assign]
        await until(lambda: bool(leader.failures))
        assert not leader.quorum.leading
        await end(world)

    run(steps)


def test_a_controller_that_cannot_begin_takes_no_further_part_and_says_why() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()

        def cannot() -> None:
            raise Planted("lead")

        for machine in world.live:
            machine.quorum.attach(lead=cannot, resign=lambda: None)
        leader.crash()
        await until(lambda: bool(failed(world)))
        assert all("Planted" in str(machine.failures[0]) for machine in failed(world))
        assert not any(machine.quorum.leading for machine in failed(world))
        await end(world)

    run(steps)


def test_whoever_asked_a_node_that_breaks_is_refused_and_does_not_wait() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        plant(leader, events.Answer)
        ask = events.EndAsk(leader.quorum.epoch, leader.quorum.leader)
        async with at_most(10):
            with pytest.raises(Exception, match="takes no part"):
                await leader.quorum.asked(ask)
        assert leader.failures
        await end(world)

    run(steps)
