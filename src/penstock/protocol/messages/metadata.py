"""Metadata (3), versions 0-13: describe brokers, topics and who leads each partition.

Notes: 1 null asks for all topics; 2 cluster id; 4 creation on demand; 5 offline replicas; 7 leader epochs; 8
authorized operations (the cluster's left again in 11); 9 flexible; 10 topic ids; 12 a null name asks by id; 13 top-
level error.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, boolean, int16, int32, message, string, struct, uuid


@message(key=3, kind="request", versions="0-13", flexible="9+")
class MetadataRequest:
    topics: list[MetadataRequestTopic] | None = array("MetadataRequestTopic", nullable="1+")
    allow_auto_topic_creation: bool = boolean(since=4, default=True)
    include_cluster_authorized_operations: bool = boolean(since=8, until=10)
    include_topic_authorized_operations: bool = boolean(since=8)

    @struct()
    class MetadataRequestTopic:
        topic_id: Uuid = uuid(since=10, ignorable=True)
        name: str | None = string(nullable="10+")


@message(key=3, kind="response", versions="0-13", flexible="9+")
class MetadataResponse:
    throttle_time_ms: int = int32(since=3, ignorable=True)
    brokers: list[MetadataResponseBroker] = array("MetadataResponseBroker")
    cluster_id: str | None = string(since=2, nullable=True, default=None, ignorable=True)
    controller_id: int = int32(since=1, default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = array("MetadataResponseTopic")
    cluster_authorized_operations: int = int32(since=8, until=10, default=-0x80000000)
    error_code: int = int16(since=13, ignorable=True)

    @struct()
    class MetadataResponseBroker:
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(since=1, nullable=True, default=None, ignorable=True)

    @struct()
    class MetadataResponseTopic:
        error_code: int = int16()
        name: str | None = string(nullable="12+")
        topic_id: Uuid = uuid(since=10, ignorable=True)
        is_internal: bool = boolean(since=1, ignorable=True)
        partitions: list[MetadataResponse.MetadataResponsePartition] = array("MetadataResponsePartition")
        topic_authorized_operations: int = int32(since=8, default=-0x80000000)

    @struct()
    class MetadataResponsePartition:
        error_code: int = int16()
        partition_index: int = int32()
        leader_id: int = int32()
        leader_epoch: int = int32(since=7, default=-1, ignorable=True)
        replica_nodes: list[int] = array(int32)
        isr_nodes: list[int] = array(int32)
        offline_replicas: list[int] = array(int32, since=5, ignorable=True)
