"""Model members of the classic protocol: eager or cooperative, dynamic or static."""

from __future__ import annotations

from typing import Any, Final

from penstock.model.errors import (
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    MEMBER_ID_REQUIRED,
    NONE,
    UNKNOWN_MEMBER_ID,
    ErrorCode,
    error_of,
)
from penstock.model.ids import TopicPartition
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from penstock.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.sim.groups.assigning import assign, read_assignment, write_assignment, write_subscription
from tests.sim.groups.world import GROUP, World

SESSION_MS: Final = 8_000
REBALANCE_MS: Final = 15_000
HEARTBEAT_MS: Final = 2_000
COMMIT_MS: Final = 3_000
REQUEST_MS: Final = 4_000
BACKOFF_MS: Final = 200
VERSIONS: Final = {
    JoinGroupRequest: 9,
    SyncGroupRequest: 5,
    HeartbeatRequest: 4,
    LeaveGroupRequest: 5,
    OffsetCommitRequest: 9,
    OffsetFetchRequest.OffsetFetchRequestGroup: 9,
}


class ClassicMember:
    """One request at a time. It joins, syncs, then sends heartbeats and commits until it is told to join again."""

    def __init__(self, world: World, name: str, topics: list[str], *, instance: str | None, cooperative: bool) -> None:
        self.name = name
        self._world = world
        self._topics = topics
        self._instance = instance
        self._cooperative = cooperative
        self._protocol = "cooperative-sticky" if cooperative else "roundrobin"
        self.crash()

    def crash(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.in_group = False
        self._owned: frozenset[TopicPartition] = frozenset()
        self._positions: dict[TopicPartition, int] = {}
        self._waiting: Any = None
        self._deadline = 0
        self._next = 0
        self._heartbeat_at = self._commit_at = self._alive_at = 0
        self._leaving = False
        self._returned = True

    def owned(self) -> frozenset[TopicPartition]:
        return self._owned

    def leave(self) -> None:
        self._leaving = True

    def settled(self) -> bool:
        return self.in_group and self._owned <= self._positions.keys()

    # Time

    @property
    def wake_at(self) -> int:
        return self._deadline if self._waiting is not None else self._next

    def on_time(self, now: int) -> None:
        if self._waiting is not None:
            if now < self._deadline:
                return
            self._gave_up(now)
        if self._leaving:
            self._say_goodbye(now)
        elif now < self._next:
            return
        elif not self.in_group:
            self._join(now)
        else:
            self._go_on(now)

    def _go_on(self, now: int) -> None:
        if now - self._alive_at > SESSION_MS:
            # Nobody has heard of us for so long that others own our partitions by now.
            self._lose()
            self._join(now)
        elif missing := sorted(self._owned - self._positions.keys()):
            self._send(_fetch(missing), now)
        elif now >= self._commit_at:
            self._commit(now)
        else:
            self._heartbeat_at = now + HEARTBEAT_MS
            request = HeartbeatRequest(
                group_id=GROUP,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self._instance,
            )
            self._send(request, now)

    def _send(self, request: Any, now: int) -> None:
        self._waiting = request
        patience = REBALANCE_MS + REQUEST_MS if isinstance(request, JoinGroupRequest) else REQUEST_MS
        self._deadline = now + patience
        self._world.send(self, request, VERSIONS[type(request)])

    def _gave_up(self, now: int) -> None:
        request, self._waiting = self._waiting, None
        self._next = now
        if isinstance(request, SyncGroupRequest):
            self.in_group = False
        elif isinstance(request, LeaveGroupRequest):
            self.crash()
            self._next = now + BACKOFF_MS

    # Joining

    def _lose(self) -> None:
        self._owned = frozenset()
        self._positions.clear()
        self.generation = -1
        self.in_group = False

    def _join(self, now: int) -> None:
        self.in_group = False
        if not self._cooperative:
            self._owned = frozenset()
            self._positions.clear()
        metadata = write_subscription(self._topics, self._owned, self.generation)
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            group_instance_id=self._instance,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=self._protocol, metadata=metadata)],
        )
        self._send(request, now)

    def on_reply(self, request: Any, reply: Any, now: int) -> None:
        if request is not self._waiting:
            return
        self._waiting = None
        self._next = now
        match reply:
            case JoinGroupResponse():
                self._joined(reply, now)
            case SyncGroupResponse():
                self._synced(reply, now)
            case HeartbeatResponse():
                self._after(error_of(reply.error_code), now)
            case OffsetCommitResponse():
                errors = [each.error_code for topic in reply.topics for each in topic.partitions]
                self._after(error_of(max(errors, default=0)), now)
            case OffsetFetchResponse.OffsetFetchResponseGroup():
                self._fetched(reply, now)
            case LeaveGroupResponse():
                self.crash()
                self._next = now + self._world.rng.randrange(500, 10_000)

    def _joined(self, reply: JoinGroupResponse, now: int) -> None:
        error = error_of(reply.error_code)
        if error is MEMBER_ID_REQUIRED:
            self.member_id = reply.member_id
            self._join(now)
        elif error is not NONE:
            self._after(error, now)
        else:
            self.member_id, self.generation = reply.member_id, reply.generation_id
            assignments: dict[str, frozenset[TopicPartition]] = {}
            if reply.leader == reply.member_id and not reply.skip_assignment:
                said = {member.member_id: bytes(member.metadata) for member in reply.members}
                assignments = assign(said, self._world.partitions, cooperative=self._cooperative)
            request = SyncGroupRequest(
                group_id=GROUP,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self._instance,
                protocol_type="consumer",
                protocol_name=self._protocol,
                assignments=[
                    SyncGroupRequest.SyncGroupRequestAssignment(
                        member_id=member_id, assignment=write_assignment(partitions)
                    )
                    for member_id, partitions in sorted(assignments.items())
                ],
            )
            self._send(request, now)

    def _synced(self, reply: SyncGroupResponse, now: int) -> None:
        error = error_of(reply.error_code)
        if error is not NONE:
            self.in_group = False
            self._after(error, now)
            return
        assigned = read_assignment(bytes(reply.assignment))
        self._world.claim(self, self.generation, assigned)
        revoked = self._owned - assigned
        self._owned = assigned
        self._positions = {partition: at for partition, at in self._positions.items() if partition in assigned}
        self.in_group = True
        self._alive_at = self._heartbeat_at = now
        self._commit_at = now + COMMIT_MS
        # What we gave up can go to somebody else now. A static member that comes back to its place does not know
        # whether it was about to give something up; if nobody joined again, that would be nobody's for ever.
        returned, self._returned = self._returned and self._instance is not None, False
        if self._cooperative and (revoked or returned):
            self._join(now)

    # In the group

    def _after(self, error: ErrorCode, now: int) -> None:
        """What every reply may say: all is well, join again, or start over."""
        if error is NONE:
            self._alive_at = now
            self._next = min(self._heartbeat_at, self._commit_at)
            return
        self._next = now + BACKOFF_MS
        if error is FENCED_INSTANCE_ID:
            self.crash()
            self._next = now + 1_000
        elif error is UNKNOWN_MEMBER_ID:
            self._lose()
            self.member_id = ""
        elif error is ILLEGAL_GENERATION:
            self._lose()
        elif not self._retriable(error):
            self.in_group = False

    def _retriable(self, error: ErrorCode) -> bool:
        """Another coordinator will know us; only a rebalance makes us join again."""
        return self.in_group and error.retriable

    def _commit(self, now: int) -> None:
        self._commit_at = now + COMMIT_MS
        if not self._owned:
            self._next = self._heartbeat_at
            return
        for partition in sorted(self._owned):
            self._positions[partition] += self._world.rng.randrange(5)
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            group_instance_id=self._instance,
            topics=[
                OffsetCommitRequest.OffsetCommitRequestTopic(
                    name=partition.topic,
                    partitions=[
                        OffsetCommitRequest.OffsetCommitRequestPartition(
                            partition_index=partition.partition, committed_offset=at, committed_metadata=""
                        )
                    ],
                )
                for partition, at in sorted(self._positions.items())
            ],
        )
        self._send(request, now)

    def _fetched(self, reply: OffsetFetchResponse.OffsetFetchResponseGroup, now: int) -> None:
        if reply.error_code:
            self._next = now + BACKOFF_MS
            return
        for topic in reply.topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.name, each.partition_index)
                if partition in self._owned:
                    self._positions[partition] = max(each.committed_offset, 0)

    def _say_goodbye(self, now: int) -> None:
        self._leaving = False
        if not self.member_id:
            return
        identity = LeaveGroupRequest.MemberIdentity(member_id=self.member_id, group_instance_id=self._instance)
        self._lose()
        self._send(LeaveGroupRequest(group_id=GROUP, members=[identity]), now)


def _fetch(partitions: list[TopicPartition]) -> OffsetFetchRequest.OffsetFetchRequestGroup:
    return OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id=GROUP,
        topics=[
            OffsetFetchRequest.OffsetFetchRequestTopics(name=each.topic, partition_indexes=[each.partition])
            for each in partitions
        ],
    )
