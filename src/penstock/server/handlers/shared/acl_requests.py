"""What the handlers of ACLs share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED, Refused
from penstock.server.doors import Disconnect, Operation, ResourceType

if TYPE_CHECKING:
    from penstock.server.doors import Context

_UNKNOWN: Final = 0
"""The number of an unknown kind of resource, pattern, operation or permission."""


def check_known(*elements: int) -> None:
    """Hangs up on an ACL or filter with an unknown element, as Kafka does: such a request cannot be meant."""
    if _UNKNOWN in elements:
        raise Disconnect("an access rule has unknown elements")


def unaltered(ctx: Context) -> Refused | None:
    """Why no ACL is made or removed for this client; None when ACLs are kept and it may."""
    if not ctx.allow(Operation.ALTER, ResourceType.CLUSTER):
        return Refused(CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    if ctx.node.authorizer.acls is None:
        return Refused(SECURITY_DISABLED, "No Authorizer is configured.")
    return None
