"""An ACL as a value, filters over ACLs, and what a valid one of either is.

Kafka's words: a refusal here reaches the tools that people use, and they search for what those tools print.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from penstock.model.errors import INVALID_REQUEST, Refused
from penstock.model.security import CLUSTER_NAME, Operation, PatternType, Permission, Principal, ResourceType
from penstock.protocol.disk.metadata_security import AccessControlEntryRecord

if TYPE_CHECKING:
    from penstock.model.ids import Uuid

ANY_NAME: Final = "*"
"""As a LITERAL name: every resource of the type. With PREFIXED it is the letter."""

ANY_HOST: Final = "*"

ANY_PRINCIPAL: Final = "User:*"
"""Matches principals of every kind; `*` behind another kind is a name like any other."""

E = TypeVar("E", bound=IntEnum)


class AclEntry(NamedTuple):
    """One ACL. Ordered and hashable, so a set of them has one order on every node."""

    resource_type: ResourceType
    name: str
    pattern: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def __str__(self) -> str:
        where = "" if self.host == ANY_HOST else f" from {self.host}"
        return (
            f"{self.permission.name} {self.operation.name} on {self.resource_type.name} {self.pattern.name} "
            f"{self.name!r} to {self.principal}{where}"
        )


def entry_of(record: AccessControlEntryRecord) -> AclEntry:
    """The ACL in a record of the metadata log. What a later release put there becomes UNKNOWN, which fits nothing."""
    return acl_entry(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


def acl_entry(
    resource_type: int, name: str, pattern: int, principal: str, host: str, operation: int, permission: int
) -> AclEntry:
    """An entry of numbers that came over the wire or from the log."""
    return AclEntry(
        known(ResourceType, resource_type),
        name,
        known(PatternType, pattern),
        principal,
        host,
        known(Operation, operation),
        known(Permission, permission),
    )


def record_of(acl_id: Uuid, entry: AclEntry) -> AccessControlEntryRecord:
    """The record that adds `entry` to the cluster."""
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=entry.resource_type,
        resource_name=entry.name,
        pattern_type=entry.pattern,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )


def known(kind: type[E], number: int) -> E:
    """The member of that number; the one that is called UNKNOWN, number 0, when this release has none."""
    return kind._value2member_map_.get(number) or kind(0)  # type: ignore[return-value]  # the map is of `kind`


def check_entry(entry: AclEntry) -> None:
    """Refused with INVALID_REQUEST unless `entry` may be added."""
    if entry.resource_type == ResourceType.CLUSTER and entry.name != CLUSTER_NAME:
        raise Refused(INVALID_REQUEST, f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not entry.name:
        raise Refused(INVALID_REQUEST, "Invalid empty resource name")
    if entry.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        raise Refused(INVALID_REQUEST, f"Invalid resourceType {entry.resource_type.name}")
    if entry.pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise Refused(INVALID_REQUEST, f"Invalid patternType {entry.pattern.name}")
    if entry.operation in (Operation.UNKNOWN, Operation.ANY):
        raise Refused(INVALID_REQUEST, f"Invalid operation {entry.operation.name}")
    if entry.permission not in (Permission.DENY, Permission.ALLOW):
        raise Refused(INVALID_REQUEST, f"Invalid permissionType {entry.permission.name}")
    if ":" not in entry.principal:
        raise Refused(
            INVALID_REQUEST,
            f"Could not parse principal from `{entry.principal}` (no colon is present separating the principal type "
            "from the principal name)",
        )


class AclFilter(NamedTuple):
    """Which ACLs are meant. None and ANY leave a part open; MATCH means every ACL that affects the named resource."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, entry: AclEntry) -> bool:
        return (
            (self.principal is None or self.principal == entry.principal)
            and self.resource_type in (ResourceType.ANY, entry.resource_type)
            and self._covers(entry.pattern, entry.name)
            and (self.host is None or self.host == entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
        )

    def _covers(self, pattern: PatternType, name: str) -> bool:
        if self.pattern not in (PatternType.ANY, PatternType.MATCH, pattern):
            return False
        if self.name is None or self.name == name:
            return True
        if self.pattern != PatternType.MATCH:
            return False
        return name == ANY_NAME if pattern == PatternType.LITERAL else self.name.startswith(name)


def acl_filter(
    resource_type: int,
    name: str | None,
    pattern: int,
    principal: str | None,
    host: str | None,
    operation: int,
    permission: int,
) -> AclFilter:
    """A filter of numbers that came over the wire."""
    return AclFilter(
        known(ResourceType, resource_type),
        name,
        known(PatternType, pattern),
        principal,
        host,
        known(Operation, operation),
        known(Permission, permission),
    )


def check_filter(asked: AclFilter) -> None:
    """Refused with INVALID_REQUEST when a part of the filter is not known: it would delete what nobody meant."""
    if asked.resource_type == ResourceType.UNKNOWN or asked.pattern == PatternType.UNKNOWN:
        raise Refused(INVALID_REQUEST, "Unknown patternFilter.")
    if asked.operation == Operation.UNKNOWN or asked.permission == Permission.UNKNOWN:
        raise Refused(INVALID_REQUEST, "Unknown entryFilter.")


Described = dict[tuple[ResourceType, str, PatternType], list[AclEntry]]


def described(entries: Iterable[AclEntry], asked: AclFilter) -> Described:
    """What DescribeAcls tells: the entries that match, by resource, both in order."""
    grouped: Described = {}
    for entry in sorted(filter(asked.matches, entries)):
        grouped.setdefault((entry.resource_type, entry.name, entry.pattern), []).append(entry)
    return grouped


def parse_principal(text: str) -> Principal:
    """`User:alice` as a principal: the name may have colons, the kind has none. ValueError without a colon."""
    kind, colon, name = text.partition(":")
    if not colon or not kind:
        raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return Principal(kind, name)


def parse_super_users(text: str) -> frozenset[str]:
    """The principals that `super.users` names, as text; ValueError when one of them is none."""
    names = [part.strip() for part in text.split(";")]
    return frozenset(str(parse_principal(name)) for name in names if name)
