"""The records of offsets and classic groups, in the versions that Apache Kafka 4.3.1 writes."""

from __future__ import annotations

from typing import Final

from penstock.coordinators.decision import StateRecord
from penstock.coordinators.groups.table import CommittedOffset
from penstock.protocol.disk.classic_group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

OFFSET_VERSION: Final = 4
OFFSET_VERSION_WITH_EXPIRY: Final = 1
"""The only version that can say when an offset expires."""
GROUP_VERSION: Final = 3


def offset_record(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> StateRecord:
    """One committed offset."""
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp,
        expire_timestamp=committed.expire_timestamp,
        topic_id=committed.topic_id,
    )
    expires = committed.expire_timestamp != -1
    return StateRecord(key, value, OFFSET_VERSION_WITH_EXPIRY if expires else OFFSET_VERSION)


def committed_offset(value: OffsetCommitValue) -> CommittedOffset:
    """What a record of an offset says."""
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
    )


def offset_tombstone(group_id: str, topic: str, partition: int) -> StateRecord:
    """One offset, gone."""
    return StateRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def group_record(group_id: str, value: GroupMetadataValue) -> StateRecord:
    """A classic group as it stands."""
    return StateRecord(GroupMetadataKey(group=group_id), value, GROUP_VERSION)


def group_tombstone(group_id: str) -> StateRecord:
    """A classic group, gone."""
    return StateRecord(GroupMetadataKey(group=group_id), None)
