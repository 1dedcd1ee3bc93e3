"""Fetch (1), versions 4-18. Reads record batches: followers to the log end, consumers to the high watermark.

Behaviour: waits up to max_wait_ms for min_bytes; read_committed stops at the last stable offset and names aborted
transactions; at least one whole batch is returned however small the limits are. On a listener for controllers it is the
metadata log that is fetched. A consumer over its quota gets an empty reply, and what it asked for stays to be told.
Notes: v7 sessions; v9 leader epochs; v10 zstd; v11 rack; v12 diverging epochs; v13 topic ids; v15 replica state; v16
tells where a partition's leader is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.fetch import FetchRequest
    from penstock.server.doors import Context, Outcome

_NO_SESSION: Final = -1
"""The epoch of who names all that it wants and wants nothing remembered."""


def handle(ctx: Context, request: FetchRequest) -> Outcome:
    if ctx.listener.for_controllers:
        return ctx.node.quorum.fetch(ctx, request)
    if max(request.replica_id, request.replica_state.replica_id) >= 0:
        # A follower copies whole topics for the cluster; it is no reader of theirs.
        trusted = ctx.allow(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
        if not trusted:
            # Followers' sessions take the places of consumers' and give theirs to nobody: none for who is no follower.
            request.session_id, request.session_epoch = 0, _NO_SESSION
        return ctx.node.fetches.fetch(request, ctx.api_version, lambda _topic: trusted, ctx.listener.name)
    return ctx.node.fetches.fetch(
        request,
        ctx.api_version,
        lambda topic: ctx.allow(Operation.READ, ResourceType.TOPIC, topic),
        ctx.listener.name,
        ctx.toll_due(),
    )
