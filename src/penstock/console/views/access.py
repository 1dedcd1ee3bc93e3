"""Rules, users and limits as a page shows them, and why somebody may or may not do something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from penstock.client.admin import Acl, QuotaEntity, ScramCredential
from penstock.console.commands import command
from penstock.console.failures import bad_request
from penstock.console.people.rules import authorizer_of
from penstock.model.security import Operation, ResourceType
from penstock.security.acls import parse_principal
from penstock.security.hosts import host_text


def touching(acls: Iterable[Acl], resource: str, name: str) -> list[Acl]:
    """The rules that hold for one named thing."""
    return [
        acl
        for acl in acls
        if acl.resource == resource
        and (acl.name in (name, "*") if acl.pattern == "literal" else name.startswith(acl.name))
    ]


def acl_items(acls: Iterable[Acl]) -> list[dict[str, Any]]:
    return [asdict(acl) for acl in acls]


def user_items(users: Mapping[str, Sequence[ScramCredential]]) -> list[dict[str, Any]]:
    return [
        {"name": name, "mechanisms": [credential.mechanism for credential in credentials]}
        for name, credentials in sorted(users.items())
    ]


def quota_items(quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> list[dict[str, Any]]:
    return [{"entity": entity.parts, "limits": dict(limits)} for entity, limits in sorted(quotas.items(), key=_order)]


def _order(entry: tuple[QuotaEntity, Mapping[str, float]]) -> str:
    return str(entry[0])


def verdict(acls: Sequence[Acl], principal: str, operation: str, resource: str, name: str, host: str) -> dict[str, Any]:
    """By the authorizer that decides in the brokers. Super users are not among ACLs, so they are not known here."""
    try:
        doing, kind, address = Operation[operation.upper()], ResourceType[resource.upper()], host_text(host)
        who = parse_principal(principal if ":" in principal else f"User:{principal}")
    except (KeyError, ValueError) as wrong:
        raise bad_request(f"{wrong} is no operation, kind of resource, user or address") from None
    found = authorizer_of(acls).decide(who, address, doing, kind, name)
    what = resource if resource == "cluster" else f"{resource}:{name}"
    return {
        "allowed": found.allowed,
        "by": None if found.entry is None else str(found.entry),
        "why": str(found),
        "command": command("acl", "explain", names=[str(who), operation, what]),
    }
