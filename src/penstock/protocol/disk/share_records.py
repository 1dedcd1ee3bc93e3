"""Records of `__share_group_state`: a snapshot of a share partition (key 0) and updates since (key 1)."""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int8, int16, int32, int64, message, string, struct, uuid


@message(key=0, kind="coordinator-key", versions="0", flexible="none")
class ShareSnapshotKey:
    group_id: str = string()
    topic_id: Uuid = uuid()
    partition: int = int32()


@message(key=0, kind="coordinator-value", versions="0", flexible="0+")
class ShareSnapshotValue:
    snapshot_epoch: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(default=-1, tag=0)
    create_timestamp: int = int64()
    write_timestamp: int = int64()
    state_batches: list[StateBatch] = array("StateBatch")

    @struct()
    class StateBatch:
        first_offset: int = int64()
        last_offset: int = int64()
        delivery_state: int = int8()
        delivery_count: int = int16()


@message(key=1, kind="coordinator-key", versions="0", flexible="none")
class ShareUpdateKey:
    group_id: str = string()
    topic_id: Uuid = uuid()
    partition: int = int32()


@message(key=1, kind="coordinator-value", versions="0", flexible="0+")
class ShareUpdateValue:
    snapshot_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(default=-1, tag=0)
    state_batches: list[StateBatch] = array("StateBatch")

    @struct()
    class StateBatch:
        first_offset: int = int64()
        last_offset: int = int64()
        delivery_state: int = int8()
        delivery_count: int = int16()
