"""All groups whose id hashes to one partition of `__consumer_offsets`: requests, records, time and the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol, cast

from penstock.coordinators.decision import Answer, Caller, Decision, Moment, StateRecord
from penstock.coordinators.groups import expiry, offsets
from penstock.coordinators.groups.classic import describe, heartbeat, join, leave, replay, sync, timing
from penstock.coordinators.groups.classic.group import ClassicGroup
from penstock.coordinators.groups.consumer import classic_members
from penstock.coordinators.groups.consumer import describe as consumer_describe
from penstock.coordinators.groups.consumer import heartbeat as consumer_heartbeat
from penstock.coordinators.groups.consumer import replay as consumer_replay
from penstock.coordinators.groups.consumer import timing as consumer_timing
from penstock.coordinators.groups.consumer.group import ConsumerGroup
from penstock.coordinators.groups.deadlines import ClassicDeadline, ConsumerDeadline
from penstock.coordinators.groups.pending import PendingOffsets
from penstock.coordinators.groups.records import committed_offset
from penstock.coordinators.groups.settings import GroupSettings
from penstock.coordinators.groups.table import GroupTable, TimerKey
from penstock.coordinators.shard import Demand
from penstock.metadata.delta import Delta
from penstock.metadata.image import ClusterImage
from penstock.model.errors import (
    GROUP_ID_NOT_FOUND,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_GROUP_ID,
    NONE,
    UNKNOWN_MEMBER_ID,
)
from penstock.model.ids import Epoch, Millis, Offset
from penstock.protocol.disk.classic_group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from penstock.protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from penstock.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from penstock.protocol.messages.delete_groups import DeleteGroupsResponse
from penstock.protocol.messages.describe_groups import DescribeGroupsResponse
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from penstock.protocol.messages.list_groups import ListGroupsResponse
from penstock.protocol.messages.offset_commit import OffsetCommitRequest
from penstock.protocol.messages.offset_delete import OffsetDeleteRequest
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from penstock.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from penstock.protocol.schema import schema_of

OffsetKey = LegacyOffsetCommitKey | OffsetCommitKey
OffsetValue = LegacyOffsetCommitValue | OffsetCommitValue

_OTHER_KINDS: Final = (11, 17)
"""The types of the records that tell of a share group and of a streams group."""
_NOWHERE: Final = Offset(-1)


class _OfGroup(Protocol):
    group_id: str


class GroupShard:
    """The coordinator of some groups, driven from outside. A `Shard` of the runtime (`coordinators/shard.py`)."""

    def __init__(self, settings: GroupSettings, image: ClusterImage, *, new_id: Callable[[], str]) -> None:
        self.table = GroupTable(settings, image, new_id)
        self._next_check: int | None = None

    @property
    def pending(self) -> PendingOffsets:
        """Offsets of transactions that are open."""
        return self.table.pending

    # Requests

    def demand_of(self, request: object) -> Demand:
        return _DEMANDS.get(request.__class__, Demand.WRITES)

    def decide(self, request: object, caller: Caller, now: Moment) -> Decision:
        decision = _DECIDE[request.__class__](self, request, caller, now)
        _answer_caller(decision, caller)
        return decision

    def _heartbeat(self, request: HeartbeatRequest, caller: Caller, now: Moment) -> Decision:
        # There may be a group without a name: offsets can be committed for it, but it has no members.
        if not request.group_id:
            return Decision(reply=HeartbeatResponse(error_code=INVALID_GROUP_ID.code))
        group = self.table.groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            return heartbeat.decide_heartbeat(group, request, now)
        if isinstance(group, ConsumerGroup):
            return classic_members.decide_heartbeat(self.table, group, request, caller, now)
        return Decision(reply=HeartbeatResponse(error_code=UNKNOWN_MEMBER_ID.code))

    def _join(self, request: JoinGroupRequest, caller: Caller, now: Moment) -> Decision:
        error = join.check_join(self.table, request)
        if error is NONE and request.group_id in self.table.other_kinds:
            error = INCONSISTENT_GROUP_PROTOCOL
        if error is not NONE:
            return Decision(reply=JoinGroupResponse(error_code=error.code, member_id=request.member_id))
        group = self.table.groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            assert group is None or isinstance(group, ClassicGroup), "there are two kinds of groups"
            return join.decide_join(self.table, group, request, caller, now)
        if group.check_delete() is not NONE:
            return classic_members.decide_join(self.table, group, request, caller, now)
        return self._join_instead(group, request, caller, now)

    def _join_instead(self, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now: Moment) -> Decision:
        """An empty consumer group makes room for a classic one of the same name; its offsets stay."""
        decision = join.decide_join(self.table, None, request, caller, now)
        if decision.records:
            decision.records[:0] = group.tombstones()
        return decision

    def _sync(self, request: SyncGroupRequest, caller: Caller, now: Moment) -> Decision:
        error = sync.check_sync(request, caller.api_version)
        group = self.table.groups.get(request.group_id)
        if error is NONE and (group is None or group.check_delete() is NONE):
            error = UNKNOWN_MEMBER_ID
        if error is not NONE:
            return Decision(reply=SyncGroupResponse(error_code=error.code))
        if isinstance(group, ClassicGroup):
            return sync.decide_sync(group, request, caller, now)
        assert isinstance(group, ConsumerGroup), "there are two kinds of groups"
        return classic_members.decide_sync(self.table, group, request, caller, now)

    def _leave(self, request: LeaveGroupRequest, caller: Caller, now: Moment) -> Decision:
        if not request.group_id:
            return Decision(reply=LeaveGroupResponse(error_code=INVALID_GROUP_ID.code))
        group = self.table.groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            return leave.decide_leave(self.table, group, request, caller.api_version, now)
        if isinstance(group, ConsumerGroup):
            return classic_members.decide_leave(self.table, group, request, caller, now)
        members = leave.leaving_members(request, caller.api_version)
        return Decision(reply=leave.left_reply(members, [UNKNOWN_MEMBER_ID] * len(members), caller.api_version))

    def _consumer_heartbeat(self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now: Moment) -> Decision:
        return consumer_heartbeat.decide_heartbeat(self.table, request, caller, now)

    def _commit(self, request: OffsetCommitRequest, caller: Caller, now: Moment) -> Decision:
        return offsets.decide_commit(self.table, request, caller, now)

    def _commit_in_transaction(self, request: TxnOffsetCommitRequest, _caller: Caller, now: Moment) -> Decision:
        return offsets.decide_transactional_commit(self.table, request, now)

    def _offset_delete(self, request: OffsetDeleteRequest, _caller: Caller, _now: Moment) -> Decision:
        return offsets.decide_offset_delete(self.table, request)

    def decide_delete(self, group_id: str, now: Moment) -> Decision:
        """Removes an empty group with its offsets. The reply is one result of DeleteGroups."""
        group = self.table.groups.get(group_id)
        error = GROUP_ID_NOT_FOUND if group is None else group.check_delete()
        reply = DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error.code)
        if group is None or error is not NONE:
            return Decision(reply=reply)
        return Decision([*offsets.all_tombstones(self.table, group_id), *group.tombstones()], reply)

    # Reads

    def fetch_offsets(
        self,
        group: OffsetFetchRequest.OffsetFetchRequestGroup,
        caller: Caller,
        now: Moment,
        *,
        require_stable: bool = False,
    ) -> OffsetFetchResponse.OffsetFetchResponseGroup:
        """Committed offsets; `topics` None asks for all. Topics are named; an id that comes along is compared."""
        return offsets.fetch_offsets(self.table, group, require_stable=require_stable)

    def listed(self, now: Moment) -> list[ListGroupsResponse.ListedGroup]:
        """Every group, for ListGroups to filter."""
        return [
            ListGroupsResponse.ListedGroup(
                group_id=group.id,
                protocol_type=group.protocol_type,
                group_state=group.state_name(),
                group_type=group.kind,
            )
            for group in self.table.groups.values()
        ]

    def described(self, group_id: str, api_version: int) -> DescribeGroupsResponse.DescribedGroup:
        """A classic group for DescribeGroups."""
        group = self.table.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return describe.described(group)
        why = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a classic group."
        return describe.described_missing(group_id, why, api_version)

    def described_consumer(self, group_id: str) -> ConsumerGroupDescribeResponse.DescribedGroup:
        """A consumer group for ConsumerGroupDescribe."""
        group = self.table.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return consumer_describe.described(group, self.table.image)
        why = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a consumer group."
        return consumer_describe.described_missing(group_id, why)

    # The log

    def apply(self, record: StateRecord, offset: Offset = _NOWHERE) -> None:
        """Takes in one record. Where it lies in the log matters only beside transactions that are open."""
        take = _APPLY.get(record.key.__class__)
        if take is not None:
            take(self, record.key, record.value, offset)
        elif not consumer_replay.apply(self.table, record.key, record.value):
            self._note_other_kind(record)

    def _apply_group(self, key: GroupMetadataKey, value: GroupMetadataValue | None, _offset: Offset) -> None:
        replay.apply(self.table, key, value)

    def _apply_offset(self, key: OffsetKey, value: OffsetValue | None, offset: Offset) -> None:
        if self.table.pending:
            self.table.pending.overtaken(key, offset, gone=value is None)
        if value is None:
            self.table.drop_offset(key.group, key.topic, key.partition)
            return
        if isinstance(value, LegacyOffsetCommitValue):
            value = OffsetCommitValue(
                offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
            )
        self._name_group(key.group, value.commit_timestamp)
        self.table.put_offset(key.group, key.topic, key.partition, committed_offset(value))

    def _name_group(self, group_id: str, commit_timestamp: int) -> None:
        """Offsets without members: a group in name only."""
        if group_id not in self.table.groups:
            self.table.groups[group_id] = ClassicGroup(group_id, self.table.timers, state_timestamp=commit_timestamp)

    def _note_other_kind(self, record: StateRecord) -> None:
        """Share and streams groups are not ours to touch, but their names are taken."""
        if schema_of(record.key.__class__).key in _OTHER_KINDS:
            group_id = cast(_OfGroup, record.key).group_id
            if record.value is None:
                self.table.other_kinds.discard(group_id)
            else:
                self.table.other_kinds.add(group_id)

    def apply_pending(self, producer_id: int, record: StateRecord, offset: Offset) -> None:
        """An offset that was committed in a transaction. There is a group for it, whatever becomes of that."""
        self.table.pending.add(producer_id, record, offset)
        if isinstance(record.key, OffsetKey) and isinstance(record.value, OffsetValue):
            self._name_group(record.key.group, record.value.commit_timestamp)

    def on_marker(self, producer_id: int, *, committed: bool) -> None:
        """Ends the transaction of the producer, in all groups here."""
        for record, offset in self.pending.end(producer_id):
            if committed:
                self.apply(record, offset)

    def loaded(self, now: Moment) -> Iterator[Decision]:
        """After the replay: members have a session from now on.

        Offsets of topics that are gone are removed as soon as there is something to write to, and not shown before.
        """
        self._next_check = now.tick + self.table.settings.offsets_check_interval_ms
        for seen, group in enumerate(list(self.table.groups.values()), start=1):
            if expiry.holds_former_topics(self.table, group):
                self._next_check = now.tick
            if isinstance(group, ClassicGroup):
                yield from _if_any(timing.loaded(self.table, group, now))
            elif isinstance(group, ConsumerGroup):
                yield from consumer_timing.loaded(self.table, group, now)
            if seen % expiry.GROUPS_PER_STEP == 0:
                yield Decision()

    def led(self, epoch: Epoch, now: Moment) -> Iterable[Decision]:
        """Groups know no epoch of their leader: joins that are held back and sessions go on in the next one."""
        return ()

    # Time and world

    def next_deadline(self) -> Millis | None:
        """The tick at which to call `expire`; no later than the first deadline."""
        first, check = self.table.timers.next(), self._next_check
        if first is None or check is None:
            return first if check is None else Millis(check)
        return Millis(min(first, check))

    def expire(self, now: Moment) -> Iterator[Decision]:
        """Everything that is due."""
        for key in self.table.timers.due(now.tick):
            decision = self._expire(key, now)
            if decision is not None:
                yield from _if_any(decision)
        if self._next_check is not None and now.tick >= self._next_check:
            self._next_check = now.tick + self.table.settings.offsets_check_interval_ms
            yield from expiry.expire_offsets(self.table, now)

    def _expire(self, key: TimerKey, now: Moment) -> Decision | None:
        kind, group_id, member_id = key
        match kind:
            case ClassicDeadline():
                return timing.expire(self.table, kind, group_id, member_id, now)
            case ConsumerDeadline():
                return consumer_timing.expire(self.table, kind, group_id, member_id, now)

    def see(self, image: ClusterImage) -> None:
        """The cluster is as `image` says. What follows from that `loaded` or `image_changed` decides."""
        self.table.image = image

    def image_changed(self, image: ClusterImage, delta: Delta, now: Moment) -> Iterator[Decision]:
        """The cluster is as `image` says: offsets of deleted topics go, consumer groups may have to reassign."""
        self.see(image)
        yield from expiry.topics_deleted(self.table, delta)
        yield from consumer_timing.image_changed(self.table, delta, now)

    def unload(self) -> list[Answer]:
        """The shard is dropped: whoever waits is sent to look for the coordinator again."""
        return [
            answer
            for group in self.table.groups.values()
            if isinstance(group, ClassicGroup)
            for answer in timing.unload(group)
        ]


def _answer_caller(decision: Decision, caller: Caller) -> None:
    """A request that was held back and answered in one go gets a plain reply."""
    for position, answer in enumerate(decision.answers):
        if answer.token is caller.token:
            assert decision.reply is None, "one answer a request"
            decision.reply = answer.reply
            del decision.answers[position]
            return


def _if_any(decision: Decision) -> Iterator[Decision]:
    if decision.records or decision.answers:
        yield decision


_DECIDE: dict[type, Callable[[GroupShard, Any, Caller, Moment], Decision]] = {
    HeartbeatRequest: GroupShard._heartbeat,
    JoinGroupRequest: GroupShard._join,
    SyncGroupRequest: GroupShard._sync,
    LeaveGroupRequest: GroupShard._leave,
    OffsetCommitRequest: GroupShard._commit,
    TxnOffsetCommitRequest: GroupShard._commit_in_transaction,
    OffsetDeleteRequest: GroupShard._offset_delete,
    ConsumerGroupHeartbeatRequest: GroupShard._consumer_heartbeat,
}
_DEMANDS: dict[type, Demand] = {
    HeartbeatRequest: Demand.READS,
    JoinGroupRequest: Demand.WAITS,
    SyncGroupRequest: Demand.WAITS,
}
_APPLY: dict[type, Callable[[GroupShard, Any, Any, Offset], None]] = {
    OffsetCommitKey: GroupShard._apply_offset,
    LegacyOffsetCommitKey: GroupShard._apply_offset,
    GroupMetadataKey: GroupShard._apply_group,
}
