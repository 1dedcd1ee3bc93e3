"""What the three handlers of access rules share while there is no authorizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED, ErrorCode
from penstock.server.context import Disconnect, Operation, ResourceType

if TYPE_CHECKING:
    from penstock.server.context import Context

_UNKNOWN: Final = 0
"""The number of an unknown kind of resource, pattern, operation or permission."""


def check_known(*elements: int) -> None:
    """Hangs up on a rule or filter with an unknown element, as Kafka does: such a request cannot be meant."""
    if _UNKNOWN in elements:
        raise Disconnect("an access rule has unknown elements")


def why_unaltered(ctx: Context) -> tuple[ErrorCode, str]:
    """Why no rule is made or removed."""
    if not ctx.allow(Operation.ALTER, ResourceType.CLUSTER):
        return CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."
    return SECURITY_DISABLED, "No Authorizer is configured."
