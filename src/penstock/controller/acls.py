"""CreateAcls and DeleteAcls: what is valid of a request is written as one atomic batch."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from penstock.controller.decision import Decision, World
from penstock.metadata.records import VersionedRecord
from penstock.model.errors import INVALID_REQUEST, POLICY_VIOLATION, ErrorCode, Refused
from penstock.model.ids import Uuid
from penstock.model.security import PatternType
from penstock.protocol.disk.metadata_security import RemoveAccessControlEntryRecord
from penstock.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from penstock.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from penstock.security.acl_index import AclIndex
from penstock.security.acls import (
    ANY_NAME,
    AclEntry,
    AclFilter,
    acl_entry,
    acl_filter,
    check_entry,
    check_filter,
    record_of,
)

CHANGES_MAX: Final = 10_000
"""How many ACLs one request may add or remove: Kafka's limit."""

TOLD_MAX: Final = 10 * CHANGES_MAX
"""How many removed ACLs a reply tells, counted anew for every filter that matches one: a bound for what a request of
many wide filters costs."""

_TOO_MANY_CREATED: Final = "Unable to perform excessively large batch operation."
_TOO_MANY_DELETED: Final = f"Cannot remove more than {CHANGES_MAX} acls in a single delete operation."


def decide_create(world: World, request: CreateAclsRequest, acls: AclIndex) -> Decision:
    """CreateAcls: every ACL is added or refused on its own; one that exists is no mistake. `acls` is of the working
    image."""
    results: list[CreateAclsResponse.AclCreationResult] = []
    new: dict[AclEntry, None] = {}
    for creation in request.creations:
        result = CreateAclsResponse.AclCreationResult(error_message=None)
        results.append(result)
        try:
            entry = _entry(creation)
            check_entry(entry)
        except Refused as refused:
            result.error_code, result.error_message = refused.error.code, refused.why
            continue
        if entry not in acls:
            new[entry] = None
    if len(new) > CHANGES_MAX:
        return Decision([], CreateAclsResponse(results=[_not_created() for _ in results]))
    records = [world.versioned(record_of(world.new_uuid(), entry)) for entry in new]
    return Decision(records, CreateAclsResponse(results=results), "create acls")


def _entry(creation: CreateAclsRequest.AclCreation) -> AclEntry:
    return acl_entry(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def _not_created() -> CreateAclsResponse.AclCreationResult:
    return CreateAclsResponse.AclCreationResult(error_code=POLICY_VIOLATION.code, error_message=_TOO_MANY_CREATED)


def decide_delete(world: World, request: DeleteAclsRequest, acls: AclIndex) -> Decision:
    """DeleteAcls: every filter is answered with all that it removes, also what another filter removes as well."""
    found = _Found(acls)
    reply, removed, told = DeleteAclsResponse(), dict[Uuid, None](), 0
    for each in request.filters:
        result = DeleteAclsResponse.DeleteAclsFilterResult(error_message=None)
        reply.filter_results.append(result)
        try:
            asked = _filter(each)
            check_filter(asked)
        except Refused as refused:
            result.error_code, result.error_message = refused.error.code, refused.why
            continue
        matching = found.matching(asked)
        removed.update(dict.fromkeys(matching))
        told += len(matching)
        if len(removed) > CHANGES_MAX or told > TOLD_MAX:
            return _none_deleted(request, INVALID_REQUEST, _TOO_MANY_DELETED)
        result.matching_acls = [_told(acls.entries[acl_id]) for acl_id in matching]
    records: list[VersionedRecord] = [world.versioned(RemoveAccessControlEntryRecord(id=acl_id)) for acl_id in removed]
    return Decision(records, reply, "delete acls")


def _none_deleted(request: DeleteAclsRequest, error: ErrorCode, why: str) -> Decision:
    result = DeleteAclsResponse.DeleteAclsFilterResult
    results = [result(error_code=error.code, error_message=why) for _ in request.filters]
    return Decision([], DeleteAclsResponse(filter_results=results))


def _filter(each: DeleteAclsRequest.DeleteAclsFilter) -> AclFilter:
    return acl_filter(
        each.resource_type_filter,
        each.resource_name_filter,
        each.pattern_type_filter,
        each.principal_filter,
        each.host_filter,
        each.operation,
        each.permission_type,
    )


def _told(entry: AclEntry) -> DeleteAclsResponse.DeleteAclsMatchingAcl:
    return DeleteAclsResponse.DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=entry.resource_type,
        resource_name=entry.name,
        pattern_type=entry.pattern,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )


class _Found:
    """Finds what filters mean. A request may have thousands of them, so ACLs are arranged by what filters name."""

    def __init__(self, acls: AclIndex) -> None:
        self._entries = acls.entries
        self._by_name: dict[str, list[Uuid]] = {}
        self._by_principal: dict[str, list[Uuid]] = {}
        for acl_id, entry in acls.entries.items():
            self._by_name.setdefault(entry.name, []).append(acl_id)
            self._by_principal.setdefault(entry.principal, []).append(acl_id)

    def matching(self, asked: AclFilter) -> list[Uuid]:
        entries = self._entries
        return [acl_id for acl_id in self._candidates(asked) if asked.matches(entries[acl_id])]

    def _candidates(self, asked: AclFilter) -> Iterable[Uuid]:
        if asked.name is not None:
            return [acl_id for name in _names(asked, asked.name) for acl_id in self._by_name.get(name, ())]
        if asked.principal is not None:
            return self._by_principal.get(asked.principal, ())
        return self._entries


def _names(asked: AclFilter, name: str) -> Collection[str]:
    """What ACLs may be called that a filter with a name means."""
    if asked.pattern != PatternType.MATCH:
        return (name,)
    return {**dict.fromkeys(name[:length] for length in range(1, len(name) + 1)), ANY_NAME: None}
