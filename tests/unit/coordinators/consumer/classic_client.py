"""Requests of members that speak the classic protocol."""

from __future__ import annotations

from struct import pack
from typing import Any

from penstock.protocol.codec import decode, encode
from penstock.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.unit.coordinators.consumer.scene import GROUP, Partitions, Scene

VERSION = 3


def subscription(topics: list[str], owned: Partitions | None = None) -> bytes:
    said = ConsumerProtocolSubscription(
        topics=topics,
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=name, partitions=numbers)
            for name, numbers in (owned or {}).items()
        ],
    )
    return pack(">h", VERSION) + encode(said, VERSION)


def assignment(partitions: Partitions, user_data: bytes | None = None) -> bytes:
    given = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=name, partitions=numbers)
            for name, numbers in partitions.items()
        ],
        user_data=user_data,
    )
    return pack(">h", VERSION) + encode(given, VERSION)


def read_assignment(data: bytes) -> Partitions:
    given = decode(ConsumerProtocolAssignment, VERSION, data, 2)[0]
    return {topic.topic: list(topic.partitions) for topic in given.assigned_partitions}


def join_request(
    member: str,
    topics: list[str],
    owned: Partitions | None = None,
    protocols: tuple[str, ...] = ("range",),
    **fields: Any,
) -> JoinGroupRequest:
    metadata = subscription(topics, owned)
    named = [JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata) for name in protocols]
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        member_id=member,
        protocol_type="consumer",
        protocols=named,
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


class ClassicClient:
    """Talks to a scene. A reply that was held back is looked for among the answers."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def _ask(self, request: Any, version: int) -> Any:
        token = object()
        reply = self.scene.ask(request, version, token=token).reply
        if reply is not None:
            return reply
        self.scene.tick(0)
        return next((answer.reply for answer in self.scene.answers if answer.token is token), None)

    def join(self, member: str, *topics: str, version: int = 9, **fields: Any) -> JoinGroupResponse:
        return self._ask(join_request(member, list(topics), **fields), version)

    def sync(
        self, member: str, generation: int, given: dict[str, Partitions] | None = None, instance: str | None = None
    ) -> SyncGroupResponse:
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=member,
            group_instance_id=instance,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=name, assignment=assignment(partitions))
                for name, partitions in (given or {}).items()
            ],
        )
        return self._ask(request, 5)

    def beat(self, member: str, generation: int, instance: str | None = None) -> int:
        request = HeartbeatRequest(
            group_id=GROUP, generation_id=generation, member_id=member, group_instance_id=instance
        )
        return self._ask(request, 4).error_code

    def leave(self, *members: tuple[str, str | None]) -> LeaveGroupResponse:
        named = [
            LeaveGroupRequest.MemberIdentity(member_id=member, group_instance_id=instance)
            for member, instance in members
        ]
        return self._ask(LeaveGroupRequest(group_id=GROUP, members=named), 5)

    def form_group(self, topics: list[str], given: Partitions) -> tuple[str, int]:
        """A stable classic group of one member; its id and generation."""
        member = self.join("", *topics).member_id
        generation = self.join(member, *topics).generation_id
        self.sync(member, generation, {member: given})
        return member, generation
