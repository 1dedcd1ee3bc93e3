"""DescribeCluster (60), versions 0-2: describe the cluster: brokers or controllers.

Notes: 1 endpoint type; 2 fenced brokers.
"""

from __future__ import annotations

from penstock.protocol.wire import array, boolean, int8, int16, int32, message, string, struct


@message(key=60, kind="request", versions="0-2", flexible="0+")
class DescribeClusterRequest:
    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8(since=1, default=1)
    include_fenced_brokers: bool = boolean(since=2)


@message(key=60, kind="response", versions="0-2", flexible="0+")
class DescribeClusterResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True, default=None)
    endpoint_type: int = int8(since=1, default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: list[DescribeClusterBroker] = array("DescribeClusterBroker")
    cluster_authorized_operations: int = int32(default=-0x80000000)

    @struct()
    class DescribeClusterBroker:
        broker_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(nullable=True, default=None)
        is_fenced: bool = boolean(since=2)
