"""FindCoordinator (10), versions 0-6. Which broker looks after a group, a transactional id or a share partition.

Behaviour: no coordinator runs on this node yet, so every key that may be asked for gets COORDINATOR_NOT_AVAILABLE,
which clients retry. librdkafka compresses with lz4 only when it sees that this API is served.
Notes: v0-3 one key, v4+ several; v1 key types (0 group, 1 transactional id); v6 share partitions (type 2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode,
)
from penstock.model.ids import NO_NODE, uuid_parse
from penstock.protocol.messages.find_coordinator import FindCoordinatorResponse
from penstock.server.context import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
    from penstock.server.context import Context

_GROUP: Final = 0
_TRANSACTION: Final = 1
_SHARE: Final = 2
_BATCHED_SINCE: Final = 4
_SHARE_SINCE: Final = 6
_NO_PORT: Final = -1


def handle(ctx: Context, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if ctx.api_version < _BATCHED_SINCE:
        error, why = _look_up(ctx, request.key_type, request.key)
        return FindCoordinatorResponse(
            error_code=error.code, error_message=why, node_id=NO_NODE, host="", port=_NO_PORT
        )
    return FindCoordinatorResponse(
        coordinators=[_coordinator(ctx, request.key_type, key) for key in request.coordinator_keys]
    )


def _coordinator(ctx: Context, key_type: int, key: str) -> FindCoordinatorResponse.Coordinator:
    error, why = _look_up(ctx, key_type, key)
    return FindCoordinatorResponse.Coordinator(
        key=key, node_id=NO_NODE, host="", port=_NO_PORT, error_code=error.code, error_message=why
    )


def _look_up(ctx: Context, key_type: int, key: str) -> tuple[ErrorCode, str]:
    if key_type == _GROUP:
        if not ctx.allow(Operation.DESCRIBE, ResourceType.GROUP, key):
            return GROUP_AUTHORIZATION_FAILED, "Group authorization failed."
    elif key_type == _TRANSACTION:
        if not ctx.allow(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
            return TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Transactional id authorization failed."
    elif key_type == _SHARE and ctx.api_version >= _SHARE_SINCE:
        if not ctx.allow(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
            return CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."
        if not _share_key(key):
            return INVALID_REQUEST, f"{key!r} is not of the form group:topic id:partition."
    else:
        return INVALID_REQUEST, f"Coordinator keys of type {key_type} are unknown in version {ctx.api_version}."
    return COORDINATOR_NOT_AVAILABLE, "This cluster runs no coordinator for that key yet; try again later."


def _share_key(key: str) -> bool:
    parts = key.rsplit(":", 2)
    if len(parts) != 3 or not parts[0] or not parts[2].isdecimal():
        return False
    try:
        uuid_parse(parts[1])
    except ValueError:
        return False
    return True
