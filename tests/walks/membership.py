"""Members of groups that speak the protocol themselves."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock.model.ids import ZERO_UUID, Uuid
from penstock.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.protocol.messages.leave_group import LeaveGroupRequest
from penstock.protocol.messages.offset_commit import OffsetCommitRequest
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest
from penstock.protocol.messages.sync_group import SyncGroupRequest
from tests.walks.data_plane import Client

BEFORE_MEMBER_ID_REQUIRED = 3


async def coordinator(client: Client, group: str) -> Any:
    """What FindCoordinator says of a group; the offsets topic is there afterwards."""
    (found,) = (await client.ask(FindCoordinatorRequest(coordinator_keys=[group]))).coordinators
    return found


def join(
    client: Client, group: str, member_id: str = "", *, session_ms: int = 30_000, version: int | None = None
) -> asyncio.Future[JoinGroupResponse]:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=session_ms,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    if version is None and not member_id:
        version = BEFORE_MEMBER_ID_REQUIRED
    return client.ask(request, version)


def sync(client: Client, group: str, joined: JoinGroupResponse, **assignments: bytes) -> asyncio.Future[Any]:
    """Of the leader, with what each member is to have; of the others without."""
    made = SyncGroupRequest.SyncGroupRequestAssignment
    return client.ask(
        SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[made(member_id=name, assignment=what) for name, what in assignments.items()],
        ),
        4,
    )


def heartbeat(client: Client, group: str, joined: JoinGroupResponse) -> asyncio.Future[Any]:
    return client.ask(HeartbeatRequest(group_id=group, generation_id=joined.generation_id, member_id=joined.member_id))


def leave(client: Client, group: str, member_id: str) -> asyncio.Future[Any]:
    return client.ask(
        LeaveGroupRequest(group_id=group, members=[LeaveGroupRequest.MemberIdentity(member_id=member_id)])
    )


async def commit(
    client: Client,
    group: str,
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    member_id: str = "",
    epoch: int = -1,
    topic_id: bytes = ZERO_UUID,
    version: int = 9,
) -> int:
    """The error code of one partition."""
    made = OffsetCommitRequest
    done = made.OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata="note"
    )
    wanted = made.OffsetCommitRequestTopic(name=topic, topic_id=Uuid(topic_id), partitions=[done])
    request = made(group_id=group, member_id=member_id, generation_id_or_member_epoch=epoch, topics=[wanted])
    (result,) = (await client.ask(request, version)).topics
    return int(result.partitions[0].error_code)


async def committed(client: Client, group: str) -> dict[tuple[str, int], int]:
    """All offsets of a group."""
    made = OffsetFetchRequest
    reply = await client.ask(made(groups=[made.OffsetFetchRequestGroup(group_id=group, topics=None)]), 9)
    (found,) = reply.groups
    assert found.error_code == 0, f"error {found.error_code}"
    return {
        (topic.name, each.partition_index): each.committed_offset for topic in found.topics for each in topic.partitions
    }


def consumer_heartbeat(
    client: Client, group: str, member_id: str, epoch: int, *topics: str
) -> asyncio.Future[ConsumerGroupHeartbeatResponse]:
    """The first one, with epoch 0 and topics, joins."""
    request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member_id, member_epoch=epoch)
    if epoch == 0:
        request.rebalance_timeout_ms = 30_000
        request.subscribed_topic_names = list(topics)
        request.topic_partitions = []
    return client.ask(request)
