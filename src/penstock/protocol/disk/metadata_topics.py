"""Metadata-log records about topics and partitions.

A PartitionChangeRecord says only what changes: an absent tag leaves its value alone.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int8, int32, message, string, uuid


@message(key=2, kind="metadata", versions="0", flexible="0+")
class TopicRecord:
    name: str = string()
    topic_id: Uuid = uuid()


@message(key=9, kind="metadata", versions="0", flexible="0+")
class RemoveTopicRecord:
    topic_id: Uuid = uuid()


@message(key=3, kind="metadata", versions="0-2", flexible="0+")
class PartitionRecord:
    partition_id: int = int32(default=-1)
    topic_id: Uuid = uuid()
    replicas: list[int] = array(int32)
    isr: list[int] = array(int32)
    removing_replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32)
    leader: int = int32(default=-1)
    leader_recovery_state: int = int8(tag=0)
    leader_epoch: int = int32(default=-1)
    partition_epoch: int = int32(default=-1)
    directories: list[Uuid] = array(uuid, since=1)
    eligible_leader_replicas: list[int] | None = array(int32, since=2, nullable=True, default=None, tag=1)
    last_known_elr: list[int] | None = array(int32, since=2, nullable=True, default=None, tag=2)


@message(key=5, kind="metadata", versions="0-2", flexible="0+")
class PartitionChangeRecord:
    partition_id: int = int32(default=-1)
    topic_id: Uuid = uuid()
    isr: list[int] | None = array(int32, nullable=True, default=None, tag=0)
    leader: int = int32(default=-2, tag=1)
    replicas: list[int] | None = array(int32, nullable=True, default=None, tag=2)
    removing_replicas: list[int] | None = array(int32, nullable=True, default=None, tag=3)
    adding_replicas: list[int] | None = array(int32, nullable=True, default=None, tag=4)
    leader_recovery_state: int = int8(default=-1, tag=5)
    directories: list[Uuid] | None = array(uuid, since=1, nullable=True, default=None, tag=8)
    eligible_leader_replicas: list[int] | None = array(int32, since=2, nullable=True, default=None, tag=6)
    last_known_elr: list[int] | None = array(int32, since=2, nullable=True, default=None, tag=7)


@message(key=28, kind="metadata", versions="0", flexible="0+")
class ClearElrRecord:
    topic_name: str = string()
