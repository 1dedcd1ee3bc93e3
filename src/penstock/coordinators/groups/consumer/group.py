"""A consumer group: members, target, and the counts that follow from them.

Its state is not kept but follows from three epochs, which rise one after the other:

| state | what holds | what ends it |
|---|---|---|
| Empty | no members | a member joins: Assigning |
| Assigning | group epoch > target epoch | a heartbeat once the assignment interval is over: a target, Reconciling |
| Reconciling | a member is not at the target epoch, or waits | heartbeats, member by member: Stable |
| Stable | every member follows the target | the group epoch rises: Assigning |

| what happens | group epoch | target epoch | member epochs |
|---|---|---|---|
| a heartbeat with nothing new | | | |
| a member joins, or subscribes to other topics | rises | follows when it may | of this member, by `reconcile.py` |
| topics that are subscribed to come, go or grow | rises at the next heartbeat | the same | the same |
| a member leaves or is fenced | rises | at the next heartbeat | |
| a static member leaves for a while | | | −2: it keeps its partitions |
| its next incarnation joins | only for another subscription | | 0, and on from there |
| the last member of this protocol leaves, others stay | the group becomes a classic one (`migration.py`) | | |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from penstock.coordinators.decision import Moment, StateRecord
from penstock.coordinators.groups.consumer import records
from penstock.coordinators.groups.consumer.limits import Limits, limits_of
from penstock.coordinators.groups.consumer.member import Member, Owned, ResolvedRegex
from penstock.coordinators.groups.table import CONSUMER, CONSUMER_PROTOCOL_TYPE, CommittedOffset
from penstock.model.errors import (
    ILLEGAL_GENERATION,
    NON_EMPTY_GROUP,
    NONE,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    UNSUPPORTED_VERSION,
    ErrorCode,
)
from penstock.model.ids import ZERO_UUID, Millis, Uuid
from penstock.protocol.messages.offset_commit import OffsetCommitRequest
from penstock.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

if TYPE_CHECKING:
    from penstock.coordinators.groups.assignors import Target
    from penstock.coordinators.groups.table import GroupTable

_LIMITS_KEPT_MS = 1_000

# Since this version a commit carries the member's epoch.
_COMMIT_WITH_EPOCH = 9


class ConsumerGroup:
    """One group. The lower half changes it and is for `replay` and for groups that are not in the table yet.

    Volatile: `metadata_stale` makes the next heartbeat look whether subscribed topics have changed, `topics_made_at`
    is the image (by offset) in which topics were last created, and `target_is_foreign` marks a group whose target was
    made by the leader of a classic group: nobody knows which topics that one saw.
    """

    __slots__ = (
        "assignor_votes",
        "classic_members",
        "classic_protocols",
        "epoch",
        "has_partition_metadata",
        "id",
        "limits_read",
        "limits_read_at",
        "members",
        "metadata_hash",
        "metadata_stale",
        "name_counts",
        "owners",
        "regex_counts",
        "resolved",
        "static",
        "table",
        "target_epoch",
        "target_is_foreign",
        "target_timestamp",
        "targets",
        "topic_hashes",
        "topics_made_at",
    )

    def __init__(self, group_id: str, table: GroupTable) -> None:
        self.id = group_id
        self.table = table
        # As in Kafka a group begins at epoch 1 with nothing assigned, and its first change makes it 2.
        self.epoch = 1
        self.metadata_hash = 0
        self.target_epoch = 1
        self.target_timestamp = 0
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Target] = {}
        self.resolved: dict[str, ResolvedRegex] = {}
        self.has_partition_metadata = False
        # What follows is counted from the members.
        self.static: dict[str, str] = {}
        self.name_counts: dict[str, int] = {}
        self.regex_counts: dict[str, int] = {}
        self.assignor_votes: dict[str, int] = {}
        self.owners: dict[Uuid, dict[int, str]] = {}
        self.classic_members = 0
        self.classic_protocols: dict[str, int] = {}
        # Volatile.
        self.metadata_stale = True
        self.target_is_foreign = False
        self.topics_made_at: int = table.image.offset
        self.limits_read: Limits | None = None
        self.limits_read_at = 0
        self.topic_hashes: dict[str, int] = {}

    @property
    def kind(self) -> str:
        return CONSUMER

    @property
    def protocol_type(self) -> str:
        return CONSUMER_PROTOCOL_TYPE

    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        target_epoch = self.target_epoch
        stable = all(member.follows(target_epoch) for member in self.members.values())
        return "Stable" if stable else "Reconciling"

    def limits(self, now: Moment) -> Limits:
        """The settings in force for this group; a change of them counts within a second, for heartbeats are many."""
        found = self.limits_read
        if found is None or now.tick - self.limits_read_at >= _LIMITS_KEPT_MS:
            found = self.limits_read = limits_of(self.table.settings, self.id)
            self.limits_read_at = now.tick
        return found

    # Offsets ask

    def check_commit(self, request: OffsetCommitRequest, api_version: int) -> ErrorCode:
        epoch = request.generation_id_or_member_epoch
        if epoch < 0 and not self.members:
            return NONE
        member = self.members.get(request.member_id)
        if member is None:
            return UNKNOWN_MEMBER_ID
        if member.classic is None and api_version < _COMMIT_WITH_EPOCH:
            return UNSUPPORTED_VERSION
        if epoch == member.epoch:
            return NONE
        places = (
            (self._id_of(topic.name, topic.topic_id), partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
        )
        return NONE if epoch < member.epoch and _owned_since(member, epoch, places) else _wrong_epoch(member)

    def check_transactional_commit(self, request: TxnOffsetCommitRequest) -> ErrorCode:
        epoch = request.generation_id
        if epoch < 0 and not self.members:
            return NONE
        if epoch == -1 and not request.member_id and request.group_instance_id is None:
            return NONE  # clients of before KIP-447 do not say who they are
        member = self.members.get(request.member_id)
        if member is None:
            return UNKNOWN_MEMBER_ID
        if epoch == member.epoch:
            return NONE
        places = (
            (self._id_of(topic.name), partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
        )
        # Clients of this API do not know STALE_MEMBER_EPOCH.
        return NONE if epoch < member.epoch and _owned_since(member, epoch, places) else ILLEGAL_GENERATION

    def _id_of(self, topic: str, topic_id: Uuid = ZERO_UUID) -> Uuid:
        return topic_id if topic_id != ZERO_UUID else self.table.image.ids.get(topic, ZERO_UUID)

    def committed(self, member_id: str, now: Moment) -> None:
        """Only heartbeats keep members of this protocol alive."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        if member_id is None and member_epoch < 0:
            return NONE
        member = self.members.get(member_id or "")
        if member is None:
            return UNKNOWN_MEMBER_ID
        return NONE if member_epoch == member.epoch else _wrong_epoch(member)

    def subscribes_to(self, topic: str) -> bool:
        return topic in self.name_counts or any(topic in found.topics for found in self.resolved.values())

    def check_delete(self) -> ErrorCode:
        return NON_EMPTY_GROUP if self.members else NONE

    def expiry_base(self, offset: CommittedOffset) -> Millis | None:
        return Millis(offset.commit_timestamp)

    def tombstones(self) -> list[StateRecord]:
        return records.group_tombstones(self.id, list(self.members), self.resolved)

    # Members

    def static_member(self, instance_id: str | None) -> Member | None:
        """The member that holds this instance id."""
        member_id = None if instance_id is None else self.static.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def is_free(self, topic_id: Uuid, partition: int) -> bool:
        """Whether no member has the partition, be it only until it has let go of it."""
        return partition not in self.owners.get(topic_id, _NOBODY)

    def waits_for_release(self, member: Member) -> bool:
        """Whether something of its target is still with somebody else."""
        for topic_id, partitions in self.targets.get(member.id, {}).items():
            mine = member.assigned.get(topic_id, _NOBODY)
            if any(partition not in mine and not self.is_free(topic_id, partition) for partition in partitions):
                return True
        return False

    # Changing

    def put_member(self, member: Member) -> None:
        before = self.members.get(member.id)
        if before is not None:
            self._uncount(before)
        self.members[member.id] = member
        self._count(member)

    def remove_member(self, member_id: str) -> None:
        before = self.members.pop(member_id, None)
        if before is not None:
            self._uncount(before)

    def _count(self, member: Member) -> None:
        _add(self.name_counts, member.topics)
        if member.regex:
            _add(self.regex_counts, (member.regex,))
        if member.assignor is not None:
            _add(self.assignor_votes, (member.assignor,))
        if member.classic is not None:
            self.classic_members += 1
            _add(self.classic_protocols, (name for name, _ in member.classic.protocols))
        if member.instance_id is not None:
            self.static[member.instance_id] = member.id
        for owned in (member.assigned, member.revoking):
            for topic_id, partitions in owned.items():
                self.owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member.id))

    def _uncount(self, member: Member) -> None:
        _subtract(self.name_counts, member.topics)
        if member.regex:
            _subtract(self.regex_counts, (member.regex,))
        if member.assignor is not None:
            _subtract(self.assignor_votes, (member.assignor,))
        if member.classic is not None:
            self.classic_members -= 1
            _subtract(self.classic_protocols, (name for name, _ in member.classic.protocols))
        if member.instance_id is not None and self.static.get(member.instance_id) == member.id:
            del self.static[member.instance_id]
        self._release(member.assigned, member.id)
        self._release(member.revoking, member.id)

    def _release(self, owned: Owned, member_id: str) -> None:
        for topic_id, partitions in owned.items():
            owners = self.owners.get(topic_id)
            if owners is None:
                continue
            for partition in partitions:
                if owners.get(partition) == member_id:
                    del owners[partition]
            if not owners:
                del self.owners[topic_id]

    def durable(self) -> tuple[object, ...]:
        """All that the log must be able to give back; for comparing a group with its replay."""
        return (
            self.id,
            self.epoch,
            self.metadata_hash,
            self.target_epoch,
            self.target_timestamp,
            self.members,
            self.targets,
            self.resolved,
            self.has_partition_metadata,
            self.static,
            self.owners,
        )


_NOBODY: Mapping[int, object] = {}


def _owned_since(member: Member, epoch: int, places: Iterable[tuple[Uuid, int]]) -> bool:
    """A commit that comes after the member has moved on is good for what it has owned all the while."""
    for topic_id, partition in places:
        since = member.owns_at(topic_id, partition)
        if since is None or epoch < since:
            return False
    return True


def _wrong_epoch(member: Member) -> ErrorCode:
    return STALE_MEMBER_EPOCH if member.classic is None else ILLEGAL_GENERATION


def _add(counts: dict[str, int], names: Iterable[str]) -> None:
    for name in names:
        counts[name] = counts.get(name, 0) + 1


def _subtract(counts: dict[str, int], names: Iterable[str]) -> None:
    for name in names:
        if counts[name] == 1:
            del counts[name]
        else:
            counts[name] -= 1
