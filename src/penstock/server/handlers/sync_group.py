"""SyncGroup (14), versions 0-5. The leader of a classic group brings the assignment, the others come for theirs.

Behaviour: held back until the leader has spoken and the assignment is committed; only this connection waits.
Notes: v3 static members; v5 protocol type and name, which must be the generation's, and be there before anybody is
asked what the member may do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.coordinators.groups.classic.sync import names_protocol
from penstock.model.errors import GROUP_AUTHORIZATION_FAILED, INCONSISTENT_GROUP_PROTOCOL, ErrorCode
from penstock.protocol.messages.sync_group import SyncGroupResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.protocol.messages.sync_group import SyncGroupRequest
    from penstock.server.doors import Context, Outcome


def handle(ctx: Context, request: SyncGroupRequest) -> Outcome:
    if not names_protocol(request, ctx.api_version):
        return _refused(INCONSISTENT_GROUP_PROTOCOL)
    if not ctx.allow(Operation.READ, ResourceType.GROUP, request.group_id):
        return _refused(GROUP_AUTHORIZATION_FAILED)
    return ctx.node.groups.ask(request.group_id, request, ctx, _refused)


def _refused(error: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error.code)
