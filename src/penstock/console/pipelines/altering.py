"""Who may stop and start a pipeline: whoever has ALTER on the groups of all its queries.

Brokers do not tell a person about ALTER on a group, which no Kafka request asks for. So the rules are read by the
console and judged by the authorizer that decides in brokers. From which address a person comes brokers would not see
either: a rule that allows only some address allows nothing here, and one that denies any denies. Whoever may ALTER the
cluster could give themselves that right, and needs no rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from penstock.client.admin import Acl
from penstock.client.errors import ClientError
from penstock.console.failures import Declined
from penstock.console.people.rules import authorizer_of
from penstock.model.security import Operation, ResourceType
from penstock.security.acls import parse_principal
from penstock.security.hosts import host_text

if TYPE_CHECKING:
    from penstock.console.routes.desk import Desk

_ANYWHERE: Final = "*"


def may_alter(acls: Iterable[Acl], principal: str, groups: Sequence[str]) -> bool:
    """Whether these rules let somebody ALTER all these groups, from wherever they come. Pure."""
    if not groups:
        return False
    authorizer = authorizer_of(_everywhere(acls))
    who, host = parse_principal(principal), host_text("127.0.0.1")
    return all(authorizer.decide(who, host, Operation.ALTER, ResourceType.GROUP, group).allowed for group in groups)


def _everywhere(acls: Iterable[Acl]) -> list[Acl]:
    return [
        acl if acl.host == _ANYWHERE else Acl(
            acl.principal, acl.operation, acl.resource, acl.name, acl.pattern, _ANYWHERE, acl.permission
        )
        for acl in acls
        if acl.host == _ANYWHERE or acl.permission == "deny"
    ]  # fmt: skip


async def check_may_alter(desk: Desk, pipeline: str, groups: Sequence[str]) -> None:
    """Declined for who may not."""
    if desk.shared.door.open:
        return
    rights = await desk.shared.lakeside.rights(desk, set())
    if "alter" in rights.cluster:
        return
    try:
        acls = await desk.shared.own(desk.sampler.address.name).admin.describe_acls()
    except ClientError as unknown:
        raise _forbidden(desk.person, pipeline, groups, f"; the console cannot read the rules: {unknown}") from None
    if not may_alter(acls, desk.person, groups):
        raise _forbidden(desk.person, pipeline, groups)


def _forbidden(person: str, pipeline: str, groups: Sequence[str], why: str = "") -> Declined:
    named = ", ".join(groups) or "which have not told their names yet"
    message = f"{person} may not ALTER the groups of pipeline {pipeline!r} ({named}){why}"
    return Declined(403, "forbidden", message, f"an ACL can allow it: penstock acl allow {person} alter group:NAME")
