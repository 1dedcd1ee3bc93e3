"""A disk that hangs under the metadata log delays what needs it: nobody is deposed, nobody is missed."""

from __future__ import annotations

import asyncio

from penstock.quorum.state import Role
from tests.walks.quorum_nodes import Machine, Quorum, run
from tests.walks.test_quorum import assert_same_logs

HANG_S = 5.0
"""Longer than the 2 s after which a follower misses its leader, and the 3 s after which a leader misses a majority."""


async def watched(world: Quorum, seconds: float) -> list[tuple[Role, int, int]]:
    """Everything that any of them was to the quorum in a while."""
    loop, seen = asyncio.get_running_loop(), {}
    until = loop.time() + seconds
    while loop.time() < until:
        for each in world.live:
            node = each.quorum._opened
            seen[node.role, node.epoch, node.leader] = None
        await asyncio.sleep(0.01)
    return sorted(seen, key=str)


def test_a_leader_whose_disk_hangs_stays_leader_and_commits_what_a_majority_has_synced() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        await leader.commit("before")
        epoch, synced = leader.quorum.epoch, leader.quorum._log.flushed
        leader.hang(HANG_S)
        await leader.commit("meanwhile")
        assert leader.quorum._log.flushed == synced
        stances = await watched(world, HANG_S - 1)
        assert stances == [(Role.FOLLOWER, epoch, leader.number), (Role.LEADER, epoch, leader.number)]
        assert [each.topics for each in world.live] == [["before", "meanwhile"]] * 3
        await asyncio.sleep(2)
        await leader.commit("after")
        assert leader.quorum._log.flushed > synced
        await world.agreed()
        assert_same_logs(world)

    run(steps)


def test_a_follower_whose_disk_hangs_goes_on_following_and_promises_nothing() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        follower = next(each for each in world.live if each is not leader)
        await leader.commit("before")
        await world.agreed()
        epoch, synced = leader.quorum.epoch, follower.quorum._log.flushed
        follower.hang(HANG_S)
        await leader.commit("meanwhile")
        stances = await watched(world, HANG_S - 1)
        assert stances == [(Role.FOLLOWER, epoch, leader.number), (Role.LEADER, epoch, leader.number)]
        assert follower.topics == ["before", "meanwhile"], "what others have synced is true here as well"
        assert promised(leader, follower) == follower.quorum._log.flushed == synced
        await asyncio.sleep(2)
        await world.agreed()
        assert promised(leader, follower) == leader.quorum.end

    run(steps)


def promised(leader: Machine, follower: Machine) -> int:
    """How far the leader believes the follower's platter to be."""
    leadership = leader.quorum._opened.leadership
    assert leadership is not None
    return leadership.progress(follower.key).end


def test_what_a_leader_had_not_written_is_gone_with_it_and_what_was_committed_is_not() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        leader.hang(HANG_S)
        await leader.commit("on two platters")
        leader.crash()
        successor = await world.leader()
        assert successor.topics == ["on two platters"]
        leader.start()
        await successor.commit("of the successor")
        await world.agreed()
        assert_same_logs(world)

    run(steps)
