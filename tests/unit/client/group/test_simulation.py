"""Several members against the real coordinator in virtual time: they converge, and nothing has two owners."""

from __future__ import annotations

import pytest

from penstock.client.consumer.group.classic_member import ClassicMember
from tests.unit.client.group.world import World

STRATEGIES = ["range", "roundrobin", "sticky", "cooperative-sticky", "range,cooperative-sticky"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_classic_members_share_the_partitions(strategy: str) -> None:
    world = World(1, {"t": 7, "u": 3})
    for n in range(3):
        world.classic(f"m{n}", ["t", "u"], strategy=strategy)
    world.run(5_000)
    shares = world.settled()
    assert sorted(map(len, shares.values())) == [3, 3, 4] or strategy.startswith("range")


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_member_that_leaves_or_dies_is_replaced_and_new_partitions_are_dealt(strategy: str) -> None:
    world = World(2, {"t": 8})
    members = [world.classic(f"m{n}", ["t"], strategy=strategy) for n in range(4)]
    world.run(4_000)
    members[0].feed(members[0].machine.leave(world.now))
    world.run(3_000)
    assert sum(map(len, world.settled().values())) == 8
    members[1].crash()
    world.run(10_000)
    assert len(world.settled()) == 2
    world.grow("t", 11)
    world.run(4_000)
    assert sum(map(len, world.settled().values())) == 11


def test_a_cooperative_member_keeps_reading_what_stays_with_it() -> None:
    world = World(3, {"t": 6})
    first = world.classic("m0", ["t"], strategy="cooperative-sticky")
    world.run(3_000)
    before = first.machine.owned
    world.classic("m1", ["t"], strategy="cooperative-sticky")
    kept: set[int] = set()
    for _ in range(300):
        world.run(10)
        kept.add(len(first.machine.owned))
    assert kept == {6, 3}
    assert first.machine.owned < before
    world.settled()


def test_an_application_that_stops_polling_loses_its_partitions_and_comes_back_when_it_polls() -> None:
    world = World(4, {"t": 4})
    sleeper, other = world.classic("m0", ["t"]), world.classic("m1", ["t"])
    world.run(3_000)
    sleeper.polls = False
    world.run(9_000)
    assert sleeper.machine.owned == frozenset()
    assert sleeper.machine.expired
    assert len(other.machine.owned) == 4
    sleeper.polls = True
    world.run(4_000)
    assert {len(share) for share in world.settled().values()} == {2}


def test_a_static_member_that_restarts_within_its_session_moves_nothing() -> None:
    world = World(5, {"t": 4})
    first = world.classic("m0", ["t"], instance="i0")
    other = world.classic("m1", ["t"], instance="i1")
    world.run(3_000)
    had, generation = first.machine.owned, other.machine.generation
    first.feed(first.machine.leave(world.now))
    world.run(500)
    assert first.ended
    again = world.classic("m0b", ["t"], instance="i0")
    world.run(3_000)
    assert again.machine.owned == had
    assert other.machine.generation == generation
    world.settled()


def test_the_former_holder_of_an_instance_id_is_fenced() -> None:
    world = World(6, {"t": 4})
    first = world.classic("m0", ["t"], instance="i0")
    world.run(3_000)
    second = world.classic("m1", ["t"], instance="i0")
    world.run(4_000)
    assert first.machine.failure is not None
    assert "group_instance_id" in str(first.machine.failure)
    assert first.machine.owned == frozenset()
    assert len(second.machine.owned) == 4


def test_consumer_members_share_the_partitions() -> None:
    world = World(7, {"t": 7, "u": 3})
    for n in range(3):
        world.consumer(f"m{n}", ["t", "u"])
    world.run(40_000)
    assert sorted(map(len, world.settled().values())) == [3, 3, 4]
    world.actors["m0"].feed(world.actors["m0"].machine.leave(world.now))
    world.grow("u", 6)
    world.run(40_000)
    assert sorted(map(len, world.settled().values())) == [6, 7]


def test_a_consumer_group_takes_in_classic_members() -> None:
    world = World(8, {"t": 6})
    world.classic("m0", ["t"])
    world.run(3_000)
    world.consumer("m1", ["t"])
    world.run(60_000)
    assert {len(share) for share in world.settled().values()} == {3}


def _storm(world: World, kind: str) -> None:
    """A minute of joins, leaves, crashes, broken connections, sleepers, new partitions and fail-overs."""
    chance = world.random
    strategy = chance.choice(STRATEGIES)
    count = 0

    def join() -> None:
        nonlocal count
        count += 1
        name, topics = f"m{count}", chance.sample(["t", "u", "w"], chance.randint(1, 3))
        if kind == "consumer":
            world.consumer(name, topics)
        else:
            world.classic(name, topics, strategy=strategy)

    join()
    join()
    for _ in range(30):
        victim = chance.choice(world.live) if world.live else None
        match chance.randrange(8):
            case 0 | 1 if len(world.live) < 6:
                join()
            case 2 if victim is not None:
                victim.feed(victim.machine.leave(world.now))
            case 3 if victim is not None:
                victim.crash()
            case 4 if victim is not None:
                victim.cut()
            case 5 if victim is not None:
                victim.polls = not victim.polls
            case 6:
                world.grow("t", min(world.topics["t"] + 1, 12))
            case 7 if world.serving:
                world.fail_over(chance.randint(10, 3_000))
            case _:
                pass
        world.run(chance.randint(10, 4_000))
    for actor in world.live:
        actor.polls = True
    if not world.live:
        join()


@pytest.mark.parametrize("kind", ["classic", "consumer"])
@pytest.mark.parametrize("seed", range(25))
def test_after_a_storm_every_partition_has_one_owner(kind: str, seed: int) -> None:
    world = World(seed, {"t": 4, "u": 3, "w": 2})
    world.hook_ms_max = world.random.choice([0, 50, 1_500])
    _storm(world, kind)
    # Sessions of the dead end, and a coordinator that is away comes back.
    world.run(60_000 if kind == "classic" else 120_000)
    world.settled()


def test_a_watched_change_is_noticed_by_the_leader_only() -> None:
    world = World(9, {"t": 4})
    world.classic("m0", ["t"])
    world.classic("m1", ["t"])
    world.run(4_000)
    leaders = [actor for actor in world.live if isinstance(actor.machine, ClassicMember) and actor.machine.leader]
    assert len(leaders) == 1
    assert leaders[0].machine.watched == {"t"}
