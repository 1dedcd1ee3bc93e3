"""The state of a classic group and the rules that need no time: who may join, who leads, which protocol is chosen.

What happens to a group in each state. `rebalance.py` has the moves; a record makes a group Stable or Empty when it is
applied (`replay.py`), and no other way does. An empty field: nothing.

| | Empty | PreparingRebalance | CompletingRebalance | Stable |
|---|---|---|---|---|
| somebody new joins | Preparing, for the initial delay | held, *joined* | Preparing | Preparing |
| a member joins as before | UNKNOWN_MEMBER_ID | held, *joined* | its answer again | the same; the leader: Preparing |
| a member joins otherwise | UNKNOWN_MEMBER_ID | held, *joined* | Preparing | Preparing |
| an instance comes without its id | as new | takes its place, *joined* | Preparing | takes its place; or Preparing |
| a member syncs | UNKNOWN_MEMBER_ID | REBALANCE_IN_PROGRESS | held | its assignment |
| the leader syncs | UNKNOWN_MEMBER_ID | REBALANCE_IN_PROGRESS | record: Stable, all are answered | its assignment |
| a heartbeat | UNKNOWN_MEMBER_ID | REBALANCE_IN_PROGRESS | well | well |
| a member commits | UNKNOWN_MEMBER_ID | well | REBALANCE_IN_PROGRESS | well |
| a member leaves, a session ends | | *joined* | Preparing | Preparing |
| the time for joins is up | | Completing with those who joined | | |
| the time for syncs is up | | | who did not sync goes, Preparing | who did not sync goes, Preparing |

*joined*: when all who are left have joined the group is Completing, or Empty by a record when nobody is left. A join
and a leave wait for the end of the initial delay. When the time for joins is up dynamic members who did not come are
gone, static ones keep their place; if only such are left everybody gets that time once more. Going back to Preparing
answers those who wait for a sync with REBALANCE_IN_PROGRESS. Who is new and has no id is told one first
(MEMBER_ID_REQUIRED) and comes back with it. An instance that comes back to a Stable group changes nothing else as long
as the same protocol would be chosen.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from penstock.coordinators.decision import Moment, StateRecord
from penstock.coordinators.groups.classic.member import ClassicMember, Protocols
from penstock.coordinators.groups.classic.subscription import subscribed_topics
from penstock.coordinators.groups.deadlines import ClassicDeadline
from penstock.coordinators.groups.records import group_record, group_tombstone
from penstock.coordinators.groups.table import CLASSIC, CONSUMER_PROTOCOL_TYPE, CommittedOffset, TimerKey
from penstock.coordinators.home import java_hash
from penstock.coordinators.timers import Timers
from penstock.model.errors import (
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    NON_EMPTY_GROUP,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    ErrorCode,
)
from penstock.model.ids import Millis
from penstock.protocol.disk.classic_group_records import GroupMetadataValue
from penstock.protocol.messages.offset_commit import OffsetCommitRequest
from penstock.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest


class State(Enum):
    """Kafka's names. A group that was deleted is not in the table; it is described as Dead."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


class ClassicGroup:
    """Members by id, in the order in which they came.

    `static_members` has the member id of each instance id; `pending_joins` were given an id and have not come back
    with it; `pending_syncs` have not asked for the assignment of this generation. `initial_delay` is (this delay, time
    left to extend it) in ms while the first rebalance of an empty group gathers members. `subscribed` is None when the
    subscriptions cannot be told. A `state_timestamp` of −1 is unknown.
    """

    __slots__ = (
        "generation",
        "id",
        "initial_delay",
        "leader",
        "members",
        "new_member_added",
        "pending_joins",
        "pending_syncs",
        "previous_state",
        "protocol",
        "protocol_type",
        "state",
        "state_timestamp",
        "static_members",
        "subscribed",
        "supported",
        "timers",
        "waiting",
    )

    kind = CLASSIC

    def __init__(self, group_id: str, timers: Timers[TimerKey], *, state_timestamp: int) -> None:
        self.id = group_id
        self.timers = timers
        self.state = State.EMPTY
        self.previous_state = State.EMPTY
        self.state_timestamp = state_timestamp
        self.protocol_type = ""
        self.protocol: str | None = None
        self.generation = 0
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        # Ids as keys: an empty table is a third of an empty set, and there may be many empty groups.
        self.pending_joins: dict[str, None] = {}
        self.pending_syncs: dict[str, None] = {}
        self.supported: dict[str, int] = {}
        self.waiting = 0
        self.subscribed: frozenset[str] | None = None
        self.initial_delay: tuple[int, int] | None = None
        self.new_member_added = False

    # Members

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        """Takes in a member whose protocols were checked."""
        assert member.instance_id is None or member.instance_id not in self.static_members
        if not self.members:
            self.protocol_type = protocol_type
        assert self.protocol_type == protocol_type, "all members of a group are of one type"
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id
        if self.leader is None:
            self.leader = member.id
        self.members[member.id] = member
        self._count_protocols(member, 1)
        self.pending_joins.pop(member.id, None)

    def remove(self, member_id: str) -> ClassicMember | None:
        """Drops a member or a pending one, with its session. Whoever calls has answered its held back requests."""
        member = self.members.pop(member_id, None)
        if member is not None:
            assert member.join_token is None, "an answer is owed before a member is removed"
            assert member.sync_token is None, "an answer is owed before a member is removed"
            self._count_protocols(member, -1)
            if member.instance_id is not None:
                del self.static_members[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)
        self.timers.cancel((ClassicDeadline.SESSION, self.id, member_id))
        return member

    def rename(self, member: ClassicMember, new_id: str) -> ClassicMember:
        """Gives the place of a static member to a new incarnation, in the same position, with nothing held back."""
        assert member.instance_id is not None
        twin = ClassicMember(
            self.id,
            new_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            session_timeout_ms=member.session_timeout_ms,
            protocols=member.protocols,
            assignment=member.assignment,
        )
        self.members = {each.id: each for each in (twin if m is member else m for m in self.members.values())}
        if self.leader == member.id:
            self.leader = new_id
        self.static_members[member.instance_id] = new_id
        self.pending_syncs.pop(member.id, None)
        self.timers.cancel(member.session_key)
        return twin

    def update(
        self, member: ClassicMember, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        """Takes in what a member said in its last join."""
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def _count_protocols(self, member: ClassicMember, by: int) -> None:
        for name, _ in member.protocols:
            count = self.supported.get(name, 0) + by
            if count:
                self.supported[name] = count
            else:
                del self.supported[name]

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Whether `member_id` is in the group, and is the one that holds `instance_id` if that is given."""
        if instance_id is not None:
            holder = self.static_members.get(instance_id)
            if holder is None:
                return UNKNOWN_MEMBER_ID
            if holder != member_id:
                return FENCED_INSTANCE_ID
        return NONE if member_id in self.members else UNKNOWN_MEMBER_ID

    def hold_join(self, member: ClassicMember, token: object, version: int) -> None:
        if member.join_token is None:
            self.waiting += 1
        member.join_token, member.join_version = token, version

    def release_join(self, member: ClassicMember) -> object | None:
        """The token of a held back join, which is no longer held back."""
        token, member.join_token = member.join_token, None
        if token is not None:
            self.waiting -= 1
        return token

    # Rules

    @property
    def join_key(self) -> TimerKey:
        """The deadline of the join phase."""
        return (ClassicDeadline.JOIN, self.id, "")

    @property
    def sync_key(self) -> TimerKey:
        """The deadline for all members to fetch their assignment."""
        return (ClassicDeadline.SYNC, self.id, "")

    @property
    def all_joined(self) -> bool:
        return self.waiting == len(self.members) and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        """As long as the most patient member allows."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def of_consumers(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member with these protocols fits: same type, and one protocol that all members support."""
        if self.state is State.EMPTY:
            return bool(protocol_type) and any(True for _ in names)
        everybody = len(self.members)
        return self.protocol_type == protocol_type and any(self.supported.get(name, 0) == everybody for name in names)

    def choose_protocol(self) -> str:
        """The protocol with the most votes among those that all members support."""
        candidates = {name for name, count in self.supported.items() if count == len(self.members)}
        votes: dict[str, int] = {}
        for member in self.members.values():
            name = member.vote(candidates)
            votes[name] = votes.get(name, 0) + 1
        # Kafka breaks a tie by the order of its hash table; clients of one group should not see another winner here.
        return max(sorted(votes, key=_bucket), key=votes.__getitem__)

    def elect_joined_leader(self) -> bool:
        """Keeps the leader if it has rejoined, else takes the first who has; False when nobody has."""
        if self.leader is None:
            return False
        if self.members[self.leader].join_token is not None:
            return True
        joined = next((member.id for member in self.members.values() if member.join_token is not None), None)
        if joined is None:
            return False
        self.leader = joined
        return True

    def enter(self, state: State, now: Moment) -> None:
        self.previous_state, self.state = self.state, state
        self.state_timestamp = now.wall

    def next_generation(self, now: Moment) -> None:
        """Starts a generation with the members that are here, or an empty one."""
        self.generation += 1
        self.protocol = self.choose_protocol() if self.members else None
        self.note_subscriptions()
        self.enter(State.COMPLETING if self.members else State.EMPTY, now)
        self.pending_syncs.clear()

    def note_subscriptions(self) -> None:
        """Works out anew which topics the members read, as far as that can be told."""
        if not self.of_consumers:
            self.subscribed = None
        elif not self.members:
            self.subscribed = frozenset()
        elif self.protocol is None:
            self.subscribed = None
        else:
            protocol = self.protocol
            self.subscribed = subscribed_topics(member.metadata(protocol) for member in self.members.values())

    # Records

    def birth_record(self) -> StateRecord:
        """A group that has come to be and has no generation yet."""
        return group_record(
            self.id,
            GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=self.state_timestamp),
        )

    def record(self, assignments: dict[str, bytes]) -> StateRecord:
        """The group as it stands, with the assignment of every member."""
        protocol = self.protocol or ""
        members = [
            GroupMetadataValue.MemberMetadata(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(protocol),
                assignment=assignments[member.id],
            )
            for member in self.members.values()
        ]
        value = GroupMetadataValue(
            protocol_type=self.protocol_type,
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=self.state_timestamp,
            members=members,
        )
        return group_record(self.id, value)

    # What every group answers

    def state_name(self) -> str:
        return self.state.value

    def check_commit(self, request: OffsetCommitRequest, api_version: int) -> ErrorCode:
        generation, instance_id = request.generation_id_or_member_epoch, request.group_instance_id
        if generation < 0 and self.state is State.EMPTY:
            # An admin, or a consumer that picks its partitions itself. Nobody else is there to be disturbed.
            return NONE
        if generation < 0 and not request.member_id and instance_id is None:
            return UNKNOWN_MEMBER_ID
        error = self.check_member(request.member_id, instance_id)
        if error is not NONE:
            return error
        if generation != self.generation:
            return ILLEGAL_GENERATION
        return REBALANCE_IN_PROGRESS if self.state is State.COMPLETING else NONE

    def check_transactional_commit(self, request: TxnOffsetCommitRequest) -> ErrorCode:
        generation, instance_id = request.generation_id, request.group_instance_id
        if generation < 0 and (self.state is State.EMPTY or (not request.member_id and instance_id is None)):
            return NONE  # clients of before KIP-447 do not say who they are
        error = self.check_member(request.member_id, instance_id)
        if error is not NONE:
            return error
        return NONE if generation == self.generation else ILLEGAL_GENERATION

    def committed(self, member_id: str, now: Moment) -> None:
        if self.state is State.STABLE or self.state is State.PREPARING:
            member = self.members[member_id]
            self.timers.set(member.session_key, now.tick + member.session_timeout_ms)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        return NONE

    def subscribes_to(self, topic: str) -> bool:
        return self.of_consumers if self.subscribed is None else topic in self.subscribed

    def check_delete(self) -> ErrorCode:
        return NONE if self.state is State.EMPTY else NON_EMPTY_GROUP

    def expiry_base(self, offset: CommittedOffset) -> Millis | None:
        if not self.protocol_type:
            return Millis(offset.commit_timestamp)
        if self.state is State.EMPTY:
            return Millis(offset.commit_timestamp if self.state_timestamp == -1 else self.state_timestamp)
        if self.of_consumers and self.subscribed is not None and self.state is State.STABLE:
            return Millis(offset.commit_timestamp)
        return None

    def tombstones(self) -> list[StateRecord]:
        return [group_tombstone(self.id)]


def _bucket(name: str) -> int:
    """Where Java's hash table of a few entries would keep `name`."""
    hashed = java_hash(name) & 0xFFFFFFFF
    return (hashed ^ hashed >> 16) & 15
