"""What handlers have in common whose whole work is to ask and to let the controller decide.

On a broker's listener the door forwards to the active controller; on a controller's listener only the active one
decides, and another controller's NOT_CONTROLLER makes the asker look for the right one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, ErrorCode, Refused
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.server.doors import Context, Message

Reply = TypeVar("Reply")


async def submitted(ctx: Context, request: Message, reply_class: type[Reply]) -> Reply:
    """The controller's reply to a request; Refused when it cannot be had.

    A client that changes more than its quota allows is told so by the controller, and paused where its connection is.
    """
    audit = ctx.node.audit
    try:
        reply = await ctx.node.controller.submit(request, ctx)
    except Refused as refusal:
        if audit is not None:
            audit.changed(ctx, request, None, refusal.error.code)
        raise
    assert isinstance(reply, reply_class), f"{request.__class__.__name__} is not answered with {reply_class.__name__}"
    if audit is not None:
        audit.changed(ctx, request, reply)
    throttle_ms = getattr(reply, "throttle_time_ms", 0)
    if throttle_ms and ctx.connection is not None:
        ctx.connection.mute(throttle_ms)
    return reply


async def decided(
    ctx: Context,
    request: Message,
    operation: Operation,
    reply_class: type[Reply],
    refused: Callable[[ErrorCode, str], Reply],
) -> Reply:
    """The controller's reply to a request that needs `operation` on the cluster; `refused` makes one of an error."""
    if not ctx.allow(operation, ResourceType.CLUSTER):
        return refused(CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    try:
        return await submitted(ctx, request, reply_class)
    except Refused as refusal:
        return refused(refusal.error, refusal.why)
