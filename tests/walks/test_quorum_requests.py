"""What the quorum answers to requests that are wrong, late, impatient or not for it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from penstock.model.errors import (
    BROKER_NOT_AVAILABLE,
    FENCED_LEADER_EPOCH,
    INCONSISTENT_CLUSTER_ID,
    INVALID_REQUEST,
    INVALID_VOTER_KEY,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    POSITION_OUT_OF_RANGE,
    REQUEST_TIMED_OUT,
    SNAPSHOT_NOT_FOUND,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_ID,
    UNSUPPORTED_VERSION,
    VOTER_NOT_FOUND,
    ErrorCode,
)
from penstock.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID, Uuid
from penstock.protocol.messages.add_raft_voter import AddRaftVoterRequest
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from penstock.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from penstock.protocol.messages.vote import VoteRequest
from tests.patience import until
from tests.walks.quorum_nodes import CLUSTER_ID, Machine, Quorum, run


def context(version: int = 18, *, allowed: bool = True) -> Any:
    return SimpleNamespace(api_version=version, allow=lambda *_: allowed)


def fetching(machine: Machine, *, wait_ms: int = 0, **changed: Any) -> FetchRequest:
    """A fetch at the end of a machine's log by a node that nobody knows."""
    fields = {
        "current_leader_epoch": machine.quorum.epoch,
        "fetch_offset": machine.quorum.end,
        "last_fetched_epoch": machine.quorum.epoch,
        "partition_max_bytes": 1_000_000,
        **{name: value for name, value in changed.items() if name not in ("cluster_id", "topic_id")},
    }
    part = FetchRequest.FetchPartition(**fields)
    topic = FetchRequest.FetchTopic(topic_id=changed.get("topic_id", METADATA_TOPIC_ID), partitions=[part])
    return FetchRequest(
        cluster_id=changed.get("cluster_id", CLUSTER_ID),
        replica_state=FetchRequest.ReplicaState(replica_id=77),
        max_wait_ms=wait_ms,
        topics=[topic],
    )


async def fetched(machine: Machine, request: FetchRequest, version: int = 18) -> FetchResponse:
    reply = machine.quorum.fetch(context(version), request)
    return await reply if isinstance(reply, asyncio.Future) else reply  # type: ignore[no-any-return]


def code_of(reply: FetchResponse) -> int:
    return reply.error_code or reply.responses[0].partitions[0].error_code


def test_a_fetch_that_is_not_for_this_leader_is_refused_with_who_leads() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        follower = next(each for each in world.live if each is not leader)

        async def refusal(request: FetchRequest, version: int = 18) -> int:
            return code_of(await fetched(leader, request, version))

        assert await refusal(fetching(leader, cluster_id="another")) == INCONSISTENT_CLUSTER_ID.code
        assert await refusal(fetching(leader, topic_id=Uuid(b"t" * 16))) == UNKNOWN_TOPIC_ID.code
        assert await refusal(fetching(leader, partition=3)) == INVALID_REQUEST.code
        assert await refusal(fetching(leader), version=11) == UNSUPPORTED_VERSION.code
        assert await refusal(fetching(leader, current_leader_epoch=0)) == FENCED_LEADER_EPOCH.code
        assert await refusal(fetching(leader, current_leader_epoch=99)) == UNKNOWN_LEADER_EPOCH.code
        await until(lambda: follower.quorum.leader == leader.number)
        told = await fetched(follower, fetching(follower))
        assert code_of(told) == NOT_LEADER_OR_FOLLOWER.code
        assert told.responses[0].partitions[0].current_leader.leader_id == leader.number
        assert [(each.host, each.port) for each in told.node_endpoints] == [leader.address]

    run(steps)


def test_a_fetch_at_the_end_waits_for_records_for_the_high_watermark_and_for_its_time() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        loop = asyncio.get_running_loop()
        await until(lambda: leader.quorum.high_watermark == leader.quorum.end)
        began = loop.time()
        empty = await fetched(leader, fetching(leader, wait_ms=300, high_watermark=leader.quorum.end))
        assert not empty.responses[0].partitions[0].records
        assert 0.25 <= loop.time() - began <= 0.35
        waiting = asyncio.ensure_future(
            fetched(leader, fetching(leader, wait_ms=4_000, high_watermark=leader.quorum.end))
        )
        await asyncio.sleep(0)
        began, end = loop.time(), leader.quorum.end
        leader.write("news")
        assert (await waiting).responses[0].partitions[0].records
        assert loop.time() - began < 0.1
        late = await fetched(leader, fetching(leader, wait_ms=4_000, high_watermark=end))
        assert late.responses[0].partitions[0].high_watermark > end
        assert loop.time() - began < 1
        assert len(leader.quorum._serving) <= 2, "only the two followers wait"

    run(steps)


def test_a_replica_that_asks_again_releases_its_earlier_fetch() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        await until(lambda: leader.quorum.high_watermark == leader.quorum.end)
        asks = [fetching(leader, wait_ms=4_000, high_watermark=leader.quorum.end) for _ in range(2)]
        first, second = (leader.quorum.fetch(context(), ask) for ask in asks)
        assert first.done()
        assert not second.done()

    run(steps)


def test_pieces_of_snapshots_that_are_not_there_are_refused() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        await leader.commit("something")
        snapshot = await leader.snapshots.write_now()
        assert snapshot is not None

        async def refusal(**changed: Any) -> int:
            asked = FetchSnapshotRequest.PartitionSnapshot(
                current_leader_epoch=changed.get("epoch", leader.quorum.epoch),
                snapshot_id=FetchSnapshotRequest.SnapshotId(
                    end_offset=changed.get("end", snapshot.end), epoch=snapshot.epoch
                ),
                position=changed.get("position", 0),
            )
            topic = FetchSnapshotRequest.TopicSnapshot(name=changed.get("name", METADATA_TOPIC), partitions=[asked])
            request = FetchSnapshotRequest(
                cluster_id=changed.get("cluster_id", CLUSTER_ID), replica_id=77, max_bytes=10, topics=[topic]
            )
            reply = await leader.quorum.fetch_snapshot(context(), request)
            if reply.error_code:
                return reply.error_code
            part = reply.topics[0].partitions[0]
            assert part.error_code or len(part.unaligned_records) == 10
            return part.error_code

        assert await refusal() == NONE.code
        assert await refusal(end=3) == SNAPSHOT_NOT_FOUND.code
        assert await refusal(position=1 << 40) == POSITION_OUT_OF_RANGE.code
        assert await refusal(position=-1) == POSITION_OUT_OF_RANGE.code
        assert await refusal(epoch=0) == FENCED_LEADER_EPOCH.code
        assert await refusal(name="another") == INVALID_REQUEST.code
        assert await refusal(cluster_id="another") == INCONSISTENT_CLUSTER_ID.code

    run(steps)


def test_votes_are_refused_by_name() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()

        async def asked(**changed: Any) -> tuple[int, int]:
            part = VoteRequest.PartitionData(
                replica_epoch=changed.get("epoch", leader.quorum.epoch),
                replica_id=2,
                voter_directory_id=changed.get("directory", leader.key.directory),
                last_offset=99,
                pre_vote=True,
            )
            topic = VoteRequest.TopicData(topic_name=changed.get("name", METADATA_TOPIC), partitions=[part])
            reply = await leader.quorum.vote(
                VoteRequest(cluster_id=changed.get("cluster_id", CLUSTER_ID), voter_id=leader.number, topics=[topic])
            )
            inner = reply.topics[0].partitions[0].error_code if reply.topics else 0
            return reply.error_code, inner

        assert await asked(cluster_id="another") == (INCONSISTENT_CLUSTER_ID.code, 0)
        assert await asked(name="another") == (INVALID_REQUEST.code, 0)
        assert await asked(directory=Uuid(b"x" * 16)) == (0, INVALID_VOTER_KEY.code)
        assert await asked(epoch=0) == (0, FENCED_LEADER_EPOCH.code)
        assert await asked() == (0, NONE.code)
        await leader.stop()
        assert await asked() == (BROKER_NOT_AVAILABLE.code, 0)

    run(steps)


def test_changes_of_the_voters_that_cannot_be_made_say_why() -> None:
    async def steps(world: Quorum) -> None:
        leader = await world.leader()
        follower = next(each for each in world.live if each is not leader)
        listener = AddRaftVoterRequest.Listener(name="CONTROLLER", host="127.0.0.1", port=9_999)

        async def adding(to: Machine = leader, **changed: Any) -> tuple[ErrorCode | int, str]:
            fields = {
                "cluster_id": CLUSTER_ID, "timeout_ms": 500, "voter_id": 4, "voter_directory_id": Uuid(b"4" * 16),
                "listeners": [listener], **changed,
            }  # fmt: skip
            reply = await to.quorum.add_voter(AddRaftVoterRequest(**fields))
            return reply.error_code, reply.error_message or ""

        assert (await adding(cluster_id="another"))[0] == INCONSISTENT_CLUSTER_ID.code
        assert (await adding(listeners=[]))[0] == INVALID_REQUEST.code
        assert (await adding(voter_id=-1))[0] == INVALID_REQUEST.code
        assert (await adding(voter_directory_id=ZERO_UUID))[0] == INVALID_REQUEST.code
        assert (await adding(to=follower))[0] == NOT_LEADER_OR_FOLLOWER.code
        code, words = await adding()
        assert code == REQUEST_TIMED_OUT.code
        assert "127.0.0.1:9999" in words
        stranger = world.add(5)
        stranger.up = False
        reply = await leader.quorum.remove_voter(
            RemoveRaftVoterRequest(cluster_id=CLUSTER_ID, voter_id=5, voter_directory_id=stranger.key.directory)
        )
        assert reply.error_code == VOTER_NOT_FOUND.code

    run(steps)
