"""What handlers have in common whose whole work is to ask and to let the controller decide.

On a broker's listener the door forwards to the active controller; on a controller's listener only the active one
decides, and another controller's NOT_CONTROLLER makes the asker look for the right one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, ErrorCode, Refused
from penstock.server.context import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.server.context import Context

Reply = TypeVar("Reply")


async def decided(
    ctx: Context, request: Any, operation: Operation, refused: Callable[[ErrorCode, str], Reply]
) -> Reply:
    """The controller's reply to a request that needs `operation` on the cluster; `refused` makes one of an error."""
    if not ctx.allow(operation, ResourceType.CLUSTER):
        return refused(CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    try:
        reply: Reply = await ctx.node.controller.submit(request, ctx)
    except Refused as refusal:
        return refused(refusal.error, refusal.why)
    return reply
