"""FindCoordinator (10), versions 0-6: find who coordinates a group, a transactional id or a share partition.

Notes: 1 key type and error text; 3 flexible; 4 several keys in one request; 5 knows TRANSACTION_ABORTABLE; 6 share
keys.
"""

from __future__ import annotations

from penstock.protocol.wire import array, int8, int16, int32, message, string, struct


@message(key=10, kind="request", versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    key: str = string(until=3)
    key_type: int = int8(since=1)
    coordinator_keys: list[str] = array(string, since=4)


@message(key=10, kind="response", versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16(until=3)
    error_message: str | None = string(since=1, until=3, nullable=True, ignorable=True)
    node_id: int = int32(until=3)
    host: str = string(until=3)
    port: int = int32(until=3)
    coordinators: list[Coordinator] = array("Coordinator", since=4)

    @struct(versions="4+")
    class Coordinator:
        key: str = string()
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, ignorable=True)
