"""How a broker's image tells that a change to ACLs, quotas or users is in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.metadata.image import ClusterImage, quota_entity
from penstock.model.errors import NONE
from penstock.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from penstock.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from penstock.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from penstock.protocol.messages.delete_acls import DeleteAclsResponse
from penstock.security.acls import acl_entry

if TYPE_CHECKING:
    from penstock.protocol.wire import Message
    from penstock.security.acl_index import AclIndex

Shown = Callable[[ClusterImage], bool]


def shown_when(request: Message, reply: Message, acls: AclIndex | None) -> Shown | None:
    """The question to put to later images; None when nothing was changed. `acls` follow the same image."""
    match request, reply:
        case CreateAclsRequest(), CreateAclsResponse() if acls is not None:
            return _made(request, reply, acls)
        case _, DeleteAclsResponse() if acls is not None:
            return _removed(reply, acls)
        case AlterClientQuotasRequest(), AlterClientQuotasResponse():
            return _limits(request, reply)
        case AlterUserScramCredentialsRequest(), AlterUserScramCredentialsResponse():
            return _users(request, reply)
    return None


def _made(request: CreateAclsRequest, reply: CreateAclsResponse, acls: AclIndex) -> Shown:
    made = [
        acl_entry(
            each.resource_type,
            each.resource_name,
            each.resource_pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        )
        for each, result in zip(request.creations, reply.results, strict=True)
        if result.error_code == NONE.code
    ]
    return lambda _image: all(entry in acls for entry in made)


def _removed(reply: DeleteAclsResponse, acls: AclIndex) -> Shown:
    gone = [
        acl_entry(
            each.resource_type,
            each.resource_name,
            each.pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        )
        for result in reply.filter_results
        for each in result.matching_acls
        if each.error_code == NONE.code
    ]
    return lambda _image: not any(entry in acls for entry in gone)


def _limits(request: AlterClientQuotasRequest, reply: AlterClientQuotasResponse) -> Shown:
    changed = {
        quota_entity((part.entity_type, part.entity_name) for part in entry.entity)
        for entry in reply.entries
        if entry.error_code == NONE.code
    }
    wanted = [
        (entity, op.key, None if op.remove else op.value)
        for entry in request.entries
        if (entity := quota_entity((part.entity_type, part.entity_name) for part in entry.entity)) in changed
        for op in entry.ops
    ]
    return lambda image: all(image.quotas.get(entity, {}).get(key) == value for entity, key, value in wanted)


def _users(request: AlterUserScramCredentialsRequest, reply: AlterUserScramCredentialsResponse) -> Shown:
    changed = {result.user for result in reply.results if result.error_code == NONE.code}
    gone = [(each.mechanism, each.name) for each in request.deletions if each.name in changed]
    salts = [((each.mechanism, each.name), each.salt) for each in request.upsertions if each.name in changed]

    def shown(image: ClusterImage) -> bool:
        kept = ((image.scram.get(key), salt) for key, salt in salts)
        return not any(key in image.scram for key in gone) and all(
            credential is not None and credential.salt == salt for credential, salt in kept
        )

    return shown
