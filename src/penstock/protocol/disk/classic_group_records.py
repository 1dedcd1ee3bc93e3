"""Records of `__consumer_offsets`: committed positions (keys 0 and 1) and classic groups (key 2)."""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, bytes_, int32, int64, message, string, struct, uuid


@message(key=0, kind="coordinator-key", versions="0", flexible="none")
class LegacyOffsetCommitKey:
    group: str = string()
    topic: str = string()
    partition: int = int32()


@message(key=0, kind="coordinator-value", versions="0", flexible="none")
class LegacyOffsetCommitValue:
    offset: int = int64()
    metadata: str = string()
    commit_timestamp: int = int64()


@message(key=1, kind="coordinator-key", versions="0", flexible="none")
class OffsetCommitKey:
    group: str = string()
    topic: str = string()
    partition: int = int32()


@message(key=1, kind="coordinator-value", versions="0-4", flexible="4+")
class OffsetCommitValue:
    offset: int = int64()
    leader_epoch: int = int32(since=3, default=-1, ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64(since=1, until=1, default=-1, ignorable=True)
    topic_id: Uuid = uuid(since=4, tag=0, ignorable=True)


@message(key=2, kind="coordinator-key", versions="0", flexible="none")
class GroupMetadataKey:
    group: str = string()


@message(key=2, kind="coordinator-value", versions="0-4", flexible="4+")
class GroupMetadataValue:
    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable=True)
    leader: str | None = string(nullable=True)
    current_state_timestamp: int = int64(since=2, default=-1, ignorable=True)
    members: list[MemberMetadata] = array("MemberMetadata")

    @struct()
    class MemberMetadata:
        member_id: str = string()
        group_instance_id: str | None = string(since=3, nullable=True, default=None, ignorable=True)
        client_id: str = string()
        client_host: str = string()
        rebalance_timeout: int = int32(since=1, default=-1, ignorable=True)
        session_timeout: int = int32()
        subscription: bytes = bytes_()
        assignment: bytes = bytes_()
