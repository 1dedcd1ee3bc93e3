"""FindCoordinator (10), versions 0-6. Which broker looks after a group, a transactional id or a share partition.

Behaviour: groups are looked after by the leader of their partition of the offsets topic, transactional ids by that of
theirs of the transaction state topic. Each of the two is created for the first who asks; the reply waits for that.
A node of a release without transactions coordinates none, and while one is registered their topic is not made.
There is no coordinator of share partitions yet, for which only brokers look: COORDINATOR_NOT_AVAILABLE.
Notes: v0-3 one key, v4+ several; v1 key types (0 group, 1 transactional id); v6 share partitions (type 2). librdkafka
compresses with lz4 only when it sees that this API is served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.metadata.readiness import knows_transactions, waits_for, why
from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    NONE,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode,
)
from penstock.model.ids import NO_NODE, OFFSETS_TOPIC, TRANSACTIONS_TOPIC, uuid_parse
from penstock.protocol.messages.find_coordinator import FindCoordinatorResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers.shared.cluster_view import addresses

if TYPE_CHECKING:
    from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
    from penstock.server.doors import Context, GroupsDoor, Outcome, TransactionsDoor

_GROUP: Final = 0
_TRANSACTION: Final = 1
_SHARE: Final = 2
_TOPICS: Final = {_GROUP: OFFSETS_TOPIC, _TRANSACTION: TRANSACTIONS_TOPIC}
"""Where keys live, by their type."""
_BATCHED_SINCE: Final = 4
_SHARE_SINCE: Final = 6
_NO_PORT: Final = -1


class _Found(NamedTuple):
    """Where a key is looked after, or why that cannot be said."""

    error: ErrorCode
    why: str = ""
    node_id: int = NO_NODE
    host: str = ""
    port: int = _NO_PORT


def handle(ctx: Context, request: FindCoordinatorRequest) -> Outcome:
    keys = [request.key] if ctx.api_version < _BATCHED_SINCE else request.coordinator_keys
    refusals = [_refusal(ctx, request.key_type, key) for key in keys]
    if request.key_type in _TOPICS and None in refusals and _is_to_be_made(ctx, request.key_type):
        return _after_creation(ctx, request, keys, refusals)
    return _reply(ctx, request, keys, refusals)


def _is_to_be_made(ctx: Context, key_type: int) -> bool:
    """Nobody may have transactions while a broker does not know them; until then they need no topic."""
    if ctx.node.metadata.image.topic(_TOPICS[key_type]) is not None:
        return False
    return key_type != _TRANSACTION or waits_for(ctx.node.metadata.image) is None


async def _after_creation(
    ctx: Context, request: FindCoordinatorRequest, keys: list[str], refusals: list[_Found | None]
) -> FindCoordinatorResponse:
    """The first key of its kind in a cluster brings the topic that they live in."""
    await _coordinators(ctx, request.key_type).topic_made()
    return _reply(ctx, request, keys, refusals)


def _reply(
    ctx: Context, request: FindCoordinatorRequest, keys: list[str], refusals: list[_Found | None]
) -> FindCoordinatorResponse:
    found = [refusal or _coordinator(ctx, request.key_type, key) for key, refusal in zip(keys, refusals, strict=True)]
    if ctx.api_version < _BATCHED_SINCE:
        (one,) = found
        return FindCoordinatorResponse(
            error_code=one.error.code,
            error_message=one.why or one.error.name,
            node_id=one.node_id,
            host=one.host,
            port=one.port,
        )
    return FindCoordinatorResponse(
        coordinators=[
            FindCoordinatorResponse.Coordinator(
                key=key,
                node_id=each.node_id,
                host=each.host,
                port=each.port,
                error_code=each.error.code,
                error_message=each.why,
            )
            for key, each in zip(keys, found, strict=True)
        ]
    )


def _refusal(ctx: Context, key_type: int, key: str) -> _Found | None:
    """Why this client may not ask for that key."""
    if key_type == _GROUP:
        if not ctx.allow(Operation.DESCRIBE, ResourceType.GROUP, key):
            return _Found(GROUP_AUTHORIZATION_FAILED, "Group authorization failed.")
    elif key_type == _TRANSACTION:
        if not ctx.allow(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
            return _Found(TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Transactional id authorization failed.")
    elif key_type == _SHARE and ctx.api_version >= _SHARE_SINCE:
        if not ctx.allow(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
            return _Found(CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
        if not _share_key(key):
            return _Found(INVALID_REQUEST, f"{key!r} is not of the form group:topic id:partition.")
    else:
        return _Found(INVALID_REQUEST, f"Coordinator keys of type {key_type} are unknown in version {ctx.api_version}.")
    return None


def _coordinator(ctx: Context, key_type: int, key: str) -> _Found:
    if key_type == _SHARE:
        return _Found(COORDINATOR_NOT_AVAILABLE, "This cluster has no share groups yet.")
    topic = ctx.node.metadata.image.topic(_TOPICS[key_type])
    partition = None if topic is None else topic.get(_coordinators(ctx, key_type).home_of(key))
    if partition is not None:
        for address in addresses(ctx):
            if address.broker.id == partition.leader and (key_type == _GROUP or knows_transactions(address.broker)):
                return _Found(NONE, "", partition.leader, address.host, address.port)
    unready = waits_for(ctx.node.metadata.image) if key_type == _TRANSACTION else None
    said = "The coordinator is not available; try again." if unready is None else why(unready)
    return _Found(COORDINATOR_NOT_AVAILABLE, said)


def _coordinators(ctx: Context, key_type: int) -> GroupsDoor | TransactionsDoor:
    return ctx.node.groups if key_type == _GROUP else ctx.node.transactions


def _share_key(key: str) -> bool:
    parts = key.rsplit(":", 2)
    if len(parts) != 3 or not parts[0] or not parts[2].isdecimal():
        return False
    try:
        uuid_parse(parts[1])
    except ValueError:
        return False
    return True
