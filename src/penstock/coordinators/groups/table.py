"""What a shard holds. Every part of the coordinator works on this table; only `apply` changes what is durable in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from penstock.coordinators.decision import Moment, StateRecord
from penstock.coordinators.groups.deadlines import Deadline
from penstock.coordinators.groups.pending import PendingOffsets
from penstock.coordinators.groups.settings import GroupSettings
from penstock.coordinators.timers import Timers
from penstock.metadata.image import ClusterImage
from penstock.model.errors import ErrorCode
from penstock.model.ids import ZERO_UUID, Millis, Uuid
from penstock.protocol.messages.offset_commit import OffsetCommitRequest
from penstock.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

# What the timer is for, the group, and the member or "".
TimerKey = tuple[Deadline, str, str]
OffsetKey = tuple[str, int]

CLASSIC = "classic"
CONSUMER = "consumer"
CONSUMER_PROTOCOL_TYPE = "consumer"
"""The protocol type of groups whose members are consumers. Connect and others have types of their own."""


class CommittedOffset(NamedTuple):
    """How far a group has read one partition. −1 stands for an unknown leader epoch and for no expiry of its own."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = -1
    topic_id: Uuid = ZERO_UUID


class Group(Protocol):
    """What offsets and the shard need to know of a group of either kind."""

    id: str

    @property
    def kind(self) -> str:
        """`classic` or `consumer`, as ListGroups spells it."""

    @property
    def protocol_type(self) -> str:
        """`consumer` for groups of consumers; empty for offsets without members."""

    def state_name(self) -> str:
        """Kafka's spelling of the state."""

    def check_commit(self, request: OffsetCommitRequest, api_version: int) -> ErrorCode:
        """Whether the sender may commit: member, generation or epoch, instance."""

    def check_transactional_commit(self, request: TxnOffsetCommitRequest) -> ErrorCode:
        """Whether the sender may commit in a transaction. Who claims to be nobody in particular may always."""

    def committed(self, member_id: str, now: Moment) -> None:
        """A commit by a member may count as a sign of life."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Whether the sender may read the group's offsets."""

    def subscribes_to(self, topic: str) -> bool:
        """Whether offsets of `topic` are in use: they neither expire nor may be deleted."""

    def check_delete(self) -> ErrorCode:
        """NONE when the group is empty and may go."""

    def expiry_base(self, offset: CommittedOffset) -> Millis | None:
        """The wall time from which the retention of an offset counts; None when it may not expire now."""

    def tombstones(self) -> list[StateRecord]:
        """The records that remove the group itself, not its offsets."""


class GroupTable:
    """Groups by id and offsets by group id; `timers` are counted in ticks.

    `offsets` has no empty inner tables. `offset_topics` says for each topic which groups hold how many offsets of it,
    so that deleting a topic visits only those. `pending` are offsets of transactions that are open. `other_kinds` are
    ids taken by kinds of groups that are not served here.
    """

    __slots__ = (
        "groups", "image", "new_id", "offset_topics", "offsets", "other_kinds", "pending", "settings", "timers",
    )  # fmt: skip

    def __init__(self, settings: GroupSettings, image: ClusterImage, new_id: Callable[[], str]) -> None:
        self.settings = settings
        self.image = image
        self.new_id = new_id
        self.groups: dict[str, Group] = {}
        self.offsets: dict[str, dict[OffsetKey, CommittedOffset]] = {}
        self.offset_topics: dict[str, dict[str, int]] = {}
        self.pending = PendingOffsets()
        self.other_kinds: set[str] = set()
        self.timers: Timers[TimerKey] = Timers()

    def is_of_a_former_topic(self, topic: str, committed: CommittedOffset) -> bool:
        """Whether the topic that an offset was committed for is no more, though its name may be another one's now.

        One without an id (of a client that named a retention time, or by Apache Kafka before 4.1) is taken for an
        offset of whichever topic has the name: nothing tells when a topic was made.
        """
        known = self.image.ids.get(topic)
        return known is None or committed.topic_id not in (known, ZERO_UUID)

    def put_offset(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        """Takes in one committed offset; for `apply`."""
        held = self.offsets.setdefault(group_id, {})
        if (topic, partition) not in held:
            holders = self.offset_topics.setdefault(topic, {})
            holders[group_id] = holders.get(group_id, 0) + 1
        held[(topic, partition)] = committed

    def drop_offset(self, group_id: str, topic: str, partition: int) -> None:
        """Forgets one committed offset if it is there; for `apply`."""
        held = self.offsets.get(group_id)
        if held is None or held.pop((topic, partition), None) is None:
            return
        if not held:
            del self.offsets[group_id]
        holders = self.offset_topics[topic]
        holders[group_id] -= 1
        if not holders[group_id]:
            del holders[group_id]
        if not holders:
            del self.offset_topics[topic]
