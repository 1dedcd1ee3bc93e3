"""Three quorum drivers elect, replicate, fail, part, catch up and change who votes, over the real messages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from penstock.model.errors import DUPLICATE_VOTER, NONE, NOT_CONTROLLER, UNSUPPORTED_VERSION, Refused
from penstock.model.ids import ZERO_UUID
from penstock.protocol.messages.add_raft_voter import AddRaftVoterRequest
from penstock.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from tests.patience import until, within
from tests.walks.quorum_nodes import CLUSTER_ID, DIRECTORY, Machine, Quorum, run


def adding(machine: Machine) -> AddRaftVoterRequest:
    listener = AddRaftVoterRequest.Listener(name="CONTROLLER", host=machine.address.host, port=machine.address.port)
    return AddRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        timeout_ms=20_000,
        voter_id=machine.number,
        voter_directory_id=machine.key.directory,
        listeners=[listener],
    )


def removing(machine: Machine) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(
        cluster_id=CLUSTER_ID, voter_id=machine.number, voter_directory_id=machine.key.directory
    )


def assert_same_logs(world: Quorum) -> None:
    """Byte by byte, from where the youngest begins to what all know as committed and have written."""
    start = max(each.quorum._log.start for each in world.live)
    end = min(min(each.quorum.high_watermark or 0, each.quorum._log._written) for each in world.live)
    logs = {each.log_bytes(start, end) for each in world.live}
    assert len(logs) == 1
    assert end == start or logs.pop()


def test_three_voters_elect_one_leader_and_all_have_what_it_commits() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        for number in range(20):
            await leader.commit(f"topic-{number}")
        await world.agreed()
        assert len(leader.topics) == 20
        assert {each.quorum.leader for each in world.live} == {leader.number}
        assert {each.quorum.leader_address for each in world.live} == {leader.address}
        assert_same_logs(world)

    run(steps)


def test_a_leader_that_dies_is_followed_by_another_and_comes_back_as_a_follower() -> None:
    async def steps(world: Quorum) -> None:
        first = await world.leader()
        await first.commit("before")
        epoch = first.quorum.epoch
        first.crash()
        second = await world.leader()
        assert second.number != first.number
        assert second.quorum.epoch > epoch
        await second.commit("after")
        first.start()
        await world.agreed()
        assert first.topics == ["after", "before"]
        assert_same_logs(world)

    run(steps)


def test_a_leader_whose_process_dies_is_missed_at_once() -> None:
    async def steps(world: Quorum) -> None:
        first = await world.leader()
        await first.commit("before")
        began_s = asyncio.get_running_loop().time()
        first.crash()
        await world.leader()
        assert asyncio.get_running_loop().time() - began_s < 1, "well before the fetch timeout of 2 s"

    run(steps)


def test_a_leader_that_stops_hands_over_faster_than_others_would_miss_it() -> None:
    async def steps(world: Quorum) -> None:
        world.properties["controller.quorum.fetch.timeout.ms"] = "2000"
        first = await world.leader()
        await first.commit("before")
        began_s = asyncio.get_running_loop().time()
        await first.stop()
        await world.leader()
        assert asyncio.get_running_loop().time() - began_s < 1.9

    run(steps)


def test_what_a_cut_off_leader_wrote_is_cut_when_it_returns_and_those_who_waited_are_refused() -> None:
    async def steps(world: Quorum) -> None:
        old = await world.leader()
        await old.commit("kept")
        world.isolated.add(old.number)
        waiting = asyncio.ensure_future(old.quorum.committed(old.write("lost")))
        new = await world.leader(among=tuple({1, 2, 3} - {old.number}))
        await new.commit("new")
        with pytest.raises(Refused) as refused:
            await asyncio.wait_for(waiting, within(30))
        assert refused.value.error is NOT_CONTROLLER
        world.isolated.clear()
        await world.agreed()
        assert old.topics == ["kept", "new"]
        assert_same_logs(world)

    run(steps)


def test_a_minority_commits_nothing() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        for other in world.live:
            if other is not leader:
                other.crash()
        with pytest.raises(Refused):
            await asyncio.wait_for(leader.quorum.committed(leader.write("never")), within(30))
        assert leader.topics == []

    run(steps)


def test_unsynced_records_of_a_minority_may_go_but_committed_ones_stay_through_a_power_cut() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        for number in range(5):
            await leader.commit(f"topic-{number}")
        leader.write("maybe")
        for machine in list(world.live):
            machine.crash()
        for machine in world.machines.values():
            machine.start()
        await world.agreed()
        assert set(world.live[0].topics) >= {f"topic-{number}" for number in range(5)}
        assert_same_logs(world)

    run(steps)


def test_an_empty_node_is_sent_a_snapshot_and_then_follows() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        for number in range(50):
            await leader.commit(f"topic-{number}")
        assert await leader.snapshots.write_now() is not None
        await leader.commit("after the snapshot")
        assert leader.quorum._log.start > 0
        observer = world.add(4).start()
        await world.agreed()
        assert len(observer.topics) == 51
        assert observer.quorum.snapshots == leader.quorum.snapshots
        assert observer.quorum._opened.voters == leader.quorum._opened.voters
        assert not [name for name in observer.files.listdir(DIRECTORY) if name.endswith(".part")]
        assert_same_logs(world)
        observer.crash()
        observer.start()
        await leader.commit("after the crash")
        await world.agreed()

    run(steps)


def test_a_snapshot_that_breaks_for_a_reason_of_our_own_is_tried_again() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        await leader.commit("before")
        pieces = leader.snapshots._pieces

        def broken(*_: object) -> Iterator[bytes]:
            raise RuntimeError("planted")

        leader.snapshots._pieces = broken  # type: ignore[method-assign]
        await leader.snapshots.write_now()
        assert leader.quorum.snapshots[1:] == []
        leader.snapshots._pieces = pieces  # type: ignore[method-assign]
        await leader.commit("after")
        assert await leader.snapshots.write_now() in leader.quorum.snapshots
        assert leader.failures == []

    run(steps)


def test_a_large_snapshot_comes_in_pieces() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        for number in range(30):
            await leader.commit(f"topic-{number}")
        await leader.snapshots.write_now()
        world.properties["controller.quorum.fetch.snapshot.max.bytes"] = "100"
        observer = world.add(4).start()
        await world.agreed()
        assert len(observer.topics) == 30

    run(steps)


def test_a_broker_observes_without_a_vote_and_without_syncing_each_fetch() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        broker = world.add(9, controller=False).start()
        for number in range(10):
            await leader.commit(f"topic-{number}")
        await world.agreed()
        assert broker.quorum.syncs < 10
        described = (await leader.quorum.describe()).topics[0].partitions[0]
        assert [each.replica_id for each in described.observers] == [9]
        assert [each.replica_id for each in described.current_voters] == [1, 2, 3]
        assert described.observers[0].last_fetch_timestamp > 0
        leader.crash()
        second = await world.leader()
        await second.commit("later")
        await world.agreed()
        assert broker.quorum.leader_address == second.address

    run(steps)


def test_a_voter_is_added_and_removed_and_the_quorum_counts_it() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        await leader.commit("before")
        fourth = world.add(4).start()
        reply = await leader.quorum.add_voter(adding(fourth))
        assert (reply.error_code, reply.error_message) == (NONE.code, None)
        assert (await leader.quorum.add_voter(adding(fourth))).error_code == DUPLICATE_VOTER.code
        await until(lambda: all(each.quorum.voters.ids == [1, 2, 3, 4] for each in world.live))
        assert fourth.quorum._opened.is_voter
        gone = next(each for each in world.live if each is not leader and each is not fourth)
        assert (await leader.quorum.remove_voter(removing(gone))).error_code == NONE.code
        await leader.commit("after")
        await world.agreed()
        assert not gone.quorum._opened.is_voter
        assert {each.number for each in world.live} == {1, 2, 3, 4}
        assert_same_logs(world)

    run(steps)


def test_a_leader_that_is_removed_commits_that_and_lets_another_lead() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        assert (await leader.quorum.remove_voter(removing(leader))).error_code == NONE.code
        second = await world.leader(among=tuple({1, 2, 3} - {leader.number}))
        assert leader.number not in second.quorum.voters.ids
        await second.commit("without it")
        await world.agreed()

    run(steps)


def test_a_sole_voter_grows_to_three_and_survives_its_loss() -> None:
    async def steps(world: Quorum) -> None:
        first = await world.leader()
        await first.commit("alone")
        for number in (2, 3):
            other = world.add(number).start()
            assert (await first.quorum.add_voter(adding(other))).error_code == NONE.code
        first.crash()
        second = await world.leader()
        await second.commit("together")
        assert second.topics == ["alone", "together"]

    run(steps, count=1)


def test_a_controller_adds_itself_when_it_is_told_to_also_with_a_new_disk() -> None:
    async def steps(world: Quorum) -> None:
        world.properties["controller.quorum.auto.join.enable"] = "true"
        leader = await world.leader()
        await leader.commit("before")
        lost = next(each for each in world.live if each is not leader)
        lost.crash()
        again = world.add(lost.number)
        again.voter = type(again.voter)(again.key._replace(directory=type(ZERO_UUID)(b"n" * 16)), again.voter.endpoints)
        again.key = again.voter.key
        again.start()
        await until(lambda: again.quorum._opened.is_voter)
        await world.agreed()

    run(steps)


def test_a_voter_that_listens_elsewhere_tells_the_leader() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        moved = next(each for each in world.live if each is not leader)
        await moved.stop()
        moved.address = moved.address._replace(port=9_777)
        moved.voter = type(moved.voter)(moved.key, (moved.voter.endpoints[0]._replace(port=9_777),))
        moved.start()
        await until(lambda: leader.quorum.voters.get(moved.key.id) == moved.voter)
        await world.agreed()

    run(steps)


def test_voters_given_in_the_configuration_elect_fail_over_and_cannot_be_changed() -> None:
    async def steps(world: Quorum) -> None:
        first = await world.leader()
        await first.commit("before")
        assert first.quorum.kraft_version == 0
        assert (await first.quorum.remove_voter(removing(first))).error_code == UNSUPPORTED_VERSION.code
        first.crash()
        second = await world.leader()
        await second.commit("after")
        first.start()
        await world.agreed()
        assert_same_logs(world)
        voters = (await second.quorum.describe()).topics[0].partitions[0].current_voters
        assert all(each.log_end_offset > 0 for each in voters)

    run(steps, fixed=True)


def test_a_quorum_of_one_leads_at_once_and_sends_nothing() -> None:
    async def steps(world: Quorum) -> None:
        only = world.machines[1]
        assert only.quorum.leading
        await only.commit("alone")
        assert only.quorum._timer_ms is None

    run(steps, count=1)
