"""ACLs: who may do what to which resource. Make them, list them, take them back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from penstock.client.admin.session import Results, Session, check, gathered, refused
from penstock.client.errors import ClientError
from penstock.model.security import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from penstock.protocol.messages.create_acls import CreateAclsRequest
from penstock.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from penstock.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

E = TypeVar("E", bound=IntEnum)


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """One ACL, in lower-case words: `Acl("User:alice", "write", "topic", "orders")`.

    `resource` is topic, group, cluster, transactional_id, delegation_token or user; the cluster's one name is there by
    itself. `pattern` is literal or prefixed, `permission` allow or deny. ValueError for words that nobody knows.
    """

    principal: str
    operation: str
    resource: str
    name: str = CLUSTER_NAME
    pattern: str = "literal"
    host: str = "*"
    permission: str = "allow"

    def __post_init__(self) -> None:
        _number(Operation, self.operation)
        _number(ResourceType, self.resource)
        _number(PatternType, self.pattern)
        _number(Permission, self.permission)

    def __str__(self) -> str:
        where = "" if self.host == "*" else f" from {self.host}"
        star = "*" if self.pattern == "prefixed" else ""
        return f"{self.permission} {self.principal}{where} {self.operation} {self.resource}:{self.name}{star}"


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Which ACLs are meant; what is None is left open. `pattern` match means all that affect the named resource."""

    principal: str | None = None
    operation: str | None = None
    resource: str | None = None
    name: str | None = None
    pattern: str | None = None
    host: str | None = None
    permission: str | None = None

    def __post_init__(self) -> None:
        _asked(Operation, self.operation)
        _asked(ResourceType, self.resource)
        _asked(PatternType, self.pattern)
        _asked(Permission, self.permission)


def _number(kind: type[E], word: str) -> E:
    """The member that a word means; UNKNOWN and ANY are no words for an ACL."""
    found = kind.__members__.get(word.upper())
    if found is None or found <= 1:
        known = ", ".join(name.lower() for name, member in kind.__members__.items() if member > 1)
        raise ValueError(f"{word!r} is none of {known}")
    return found


def _asked(kind: type[E], word: str | None) -> E:
    return kind(1) if word is None else _number(kind, word)


def _word(kind: type[E], number: int) -> str:
    """The word for what a broker told; a later release may know more than we do."""
    try:
        return kind(number).name.lower()
    except ValueError:
        return str(number)


async def create_acls(session: Session, acls: Iterable[Acl]) -> Results[Acl, None]:
    """Adds ACLs; one that is there already is fine."""

    async def ask(pending: list[Acl]) -> Mapping[Acl, ClientError | None]:
        request = CreateAclsRequest(
            creations=[
                CreateAclsRequest.AclCreation(
                    resource_type=_number(ResourceType, acl.resource),
                    resource_name=acl.name,
                    resource_pattern_type=_number(PatternType, acl.pattern),
                    principal=acl.principal,
                    host=acl.host,
                    operation=_number(Operation, acl.operation),
                    permission_type=_number(Permission, acl.permission),
                )
                for acl in pending
            ]
        )
        reply = await session.any(request)
        return {
            acl: refused(result.error_code, result.error_message, f"ACL {acl}") if result.error_code else None
            for acl, result in zip(pending, reply.results, strict=True)
        }

    return await session.settled(acls, lambda pending: gathered(lambda: ask(pending), pending))


async def describe_acls(session: Session, which: AclFilter) -> list[Acl]:
    """The ACLs that a filter means, in order."""
    request = DescribeAclsRequest(
        resource_type_filter=_asked(ResourceType, which.resource),
        resource_name_filter=which.name,
        pattern_type_filter=_asked(PatternType, which.pattern),
        principal_filter=which.principal,
        host_filter=which.host,
        operation=_asked(Operation, which.operation),
        permission_type=_asked(Permission, which.permission),
    )

    async def ask() -> DescribeAclsResponse:
        reply: DescribeAclsResponse = await session.any(request)
        check(reply.error_code, reply.error_message, "listing ACLs")
        return reply

    return sorted(
        _told(
            found.principal,
            found.operation,
            at.resource_type,
            at.resource_name,
            at.pattern_type,
            found.host,
            found.permission_type,
        )
        for at in (await session.patient(ask)).resources
        for found in at.acls
    )


async def delete_acls(session: Session, filters: Iterable[AclFilter]) -> Results[AclFilter, list[Acl]]:
    """Removes what filters mean; what each of them removed."""

    async def ask(pending: list[AclFilter]) -> Mapping[AclFilter, list[Acl] | ClientError]:
        request = DeleteAclsRequest(
            filters=[
                DeleteAclsRequest.DeleteAclsFilter(
                    resource_type_filter=_asked(ResourceType, which.resource),
                    resource_name_filter=which.name,
                    pattern_type_filter=_asked(PatternType, which.pattern),
                    principal_filter=which.principal,
                    host_filter=which.host,
                    operation=_asked(Operation, which.operation),
                    permission_type=_asked(Permission, which.permission),
                )
                for which in pending
            ]
        )
        reply: DeleteAclsResponse = await session.any(request)
        return {
            which: refused(result.error_code, result.error_message, "removing ACLs")
            if result.error_code
            else sorted(_removed(each) for each in result.matching_acls)
            for which, result in zip(pending, reply.filter_results, strict=True)
        }

    return await session.settled(filters, lambda pending: gathered(lambda: ask(pending), pending))


def _removed(each: DeleteAclsResponse.DeleteAclsMatchingAcl) -> Acl:
    return _told(
        each.principal,
        each.operation,
        each.resource_type,
        each.resource_name,
        each.pattern_type,
        each.host,
        each.permission_type,
    )


def _told(principal: str, operation: int, resource: int, name: str, pattern: int, host: str, permission: int) -> Acl:
    words = (_word(Operation, operation), _word(ResourceType, resource), name, _word(PatternType, pattern), host)
    acl = object.__new__(Acl)
    # A broker may tell words that this release does not know: they are shown, not refused.
    for field, value in zip(Acl.__slots__, (principal, *words, _word(Permission, permission)), strict=True):
        object.__setattr__(acl, field, value)
    return acl
