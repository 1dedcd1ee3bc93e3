"""What rules that somebody was told would decide. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.client.admin import Acl
from penstock.model.security import Operation, PatternType, Permission, ResourceType
from penstock.security.acls import acl_entry
from penstock.security.authorizer import Authorizer


def authorizer_of(acls: Iterable[Acl]) -> Authorizer:
    """The one that decides in brokers, by rules that somebody was told. It knows no super users."""
    authorizer = Authorizer()
    authorizer.take(
        acl_entry(
            int(ResourceType[acl.resource.upper()]),
            acl.name,
            int(PatternType[acl.pattern.upper()]),
            acl.principal,
            acl.host,
            int(Operation[acl.operation.upper()]),
            int(Permission[acl.permission.upper()]),
        )
        for acl in acls
    )
    return authorizer
