"""What a request changes, thing by thing, as the audit stream tells it: names, and never what a secret is set to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from penstock.model.config import AlterOp, ResourceKind
from penstock.model.errors import NONE
from penstock.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from penstock.protocol.messages.alter_configs import AlterConfigsRequest
from penstock.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from penstock.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from penstock.protocol.messages.create_acls import CreateAclsRequest
from penstock.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from penstock.protocol.messages.create_partitions import CreatePartitionsRequest
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from penstock.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from penstock.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from penstock.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from penstock.protocol.messages.unregister_broker import UnregisterBrokerRequest
from penstock.protocol.messages.update_features import UpdateFeaturesRequest
from penstock.security.acls import acl_entry
from penstock.security.audit import Resource
from penstock.security.scram.keys import BY_TYPE

if TYPE_CHECKING:
    from penstock.protocol.wire import Message

_SIGNS: Final = {AlterOp.DELETE: "-", AlterOp.APPEND: "+=", AlterOp.SUBTRACT: "-="}


class Change(NamedTuple):
    """One thing that was changed, or not: then `error_code` says why."""

    resource: Resource
    error_code: int
    details: tuple[str, ...] = ()


def changes_of(request: Message, reply: Message | None, error_code: int = NONE.code) -> Iterator[Change]:
    """The changes in a request; without a reply all of them ended with `error_code`. Nothing for other requests."""
    if getattr(request, "validate_only", False):
        return
    match request:
        case CreateTopicsRequest():
            codes = _codes(reply, "topics", "name", error_code)
            for topic in request.topics:
                configs = tuple(each.name for each in topic.configs)
                size = f"partitions={topic.num_partitions}", f"replication={topic.replication_factor}"
                yield Change(Resource("TOPIC", topic.name), codes(topic.name), (*size, *configs))
        case DeleteTopicsRequest():
            yield from _deleted_topics(request, reply, error_code)
        case CreatePartitionsRequest():
            codes = _codes(reply, "results", "name", error_code)
            for grown in request.topics:
                yield Change(Resource("TOPIC", grown.name), codes(grown.name), (f"partitions={grown.count}",))
        case AlterPartitionReassignmentsRequest():
            code = error_code if reply is None else reply.error_code  # type: ignore[attr-defined]
            for moved in request.topics:
                yield Change(
                    Resource("TOPIC", moved.name), code, tuple(str(p.partition_index) for p in moved.partitions)
                )
        case AlterConfigsRequest() | IncrementalAlterConfigsRequest():
            yield from _configs(request, reply, error_code)
        case _:
            yield from _of_security(request, reply, error_code)


def _of_security(request: Message, reply: Message | None, error_code: int) -> Iterator[Change]:
    match request:
        case CreateAclsRequest():
            results = [error_code] * len(request.creations)
            if reply is not None:
                results = [each.error_code for each in reply.results]  # type: ignore[attr-defined]
            for acl, code in zip(request.creations, results, strict=False):
                text = str(
                    acl_entry(
                        acl.resource_type, acl.resource_name, acl.resource_pattern_type,
                        acl.principal, acl.host, acl.operation, acl.permission_type,
                    )
                )  # fmt: skip
                yield Change(Resource("ACL", acl.resource_name), code, (text,))
        case DeleteAclsRequest():
            yield from _deleted_acls(request, cast("DeleteAclsResponse | None", reply), error_code)
        case AlterUserScramCredentialsRequest():
            codes = _codes(reply, "results", "user", error_code)
            for put in request.upsertions:
                yield Change(Resource("USER", put.name), codes(put.name), (f"set {_mechanism(put.mechanism)}",))
            for gone in request.deletions:
                yield Change(Resource("USER", gone.name), codes(gone.name), (f"deleted {_mechanism(gone.mechanism)}",))
        case AlterClientQuotasRequest():
            results = [error_code] * len(request.entries)
            if reply is not None:
                results = [each.error_code for each in reply.entries]  # type: ignore[attr-defined]
            for entry, code in zip(request.entries, results, strict=False):
                whose = ",".join(f"{part.entity_type}={part.entity_name or '<default>'}" for part in entry.entity)
                limits = tuple(f"-{op.key}" if op.remove else f"{op.key}={op.value:g}" for op in entry.ops)
                yield Change(Resource("QUOTA", whose), code, limits)
        case _:
            yield from _others(request, reply, error_code)


def _others(request: Message, reply: Message | None, error_code: int) -> Iterator[Change]:
    code = error_code if reply is None else getattr(reply, "error_code", error_code)
    match request:
        case CreateDelegationTokenRequest():
            token_id = reply.token_id if isinstance(reply, CreateDelegationTokenResponse) else ""
            yield Change(Resource("DELEGATION_TOKEN", token_id), code, ("created",))
        # Who asks for the next two shows the token's HMAC, which is the token itself.
        case RenewDelegationTokenRequest():
            yield Change(Resource("DELEGATION_TOKEN", ""), code, ("renewed",))
        case ExpireDelegationTokenRequest():
            yield Change(Resource("DELEGATION_TOKEN", ""), code, ("expired",))
        case UpdateFeaturesRequest():
            for feature in request.feature_updates:
                yield Change(Resource("FEATURE", feature.feature), code, (f"level={feature.max_version_level}",))
        case UnregisterBrokerRequest():
            yield Change(Resource("BROKER", str(request.broker_id)), code, ("unregistered",))


def _deleted_topics(request: DeleteTopicsRequest, reply: Message | None, error_code: int) -> Iterator[Change]:
    if isinstance(reply, DeleteTopicsResponse):
        for gone in reply.responses:
            yield Change(Resource("TOPIC", gone.name or str(gone.topic_id)), gone.error_code, ("deleted",))
        return
    names = [*request.topic_names, *(each.name or str(each.topic_id) for each in request.topics)]
    for name in names:
        yield Change(Resource("TOPIC", name), error_code, ("deleted",))


def _configs(
    request: AlterConfigsRequest | IncrementalAlterConfigsRequest, reply: Message | None, error_code: int
) -> Iterator[Change]:
    codes: dict[tuple[int, str], int] = {}
    if reply is not None:
        codes = {(each.resource_type, each.resource_name): each.error_code for each in reply.responses}  # type: ignore[attr-defined]
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        known = kind in tuple(ResourceKind)
        about = Resource(f"{ResourceKind(kind).name}_CONFIG" if known else "CONFIG", name)
        yield Change(about, codes.get((kind, name), error_code), tuple(_settings(resource.configs)))


def _settings(configs: Iterable[object]) -> Iterator[str]:
    """Names, with what is done to them; values may be secrets, and are nobody's business here."""
    for config in configs:
        operation = getattr(config, "config_operation", AlterOp.SET)
        yield f"{_SIGNS.get(operation, '')}{getattr(config, 'name', '')}"


def _deleted_acls(request: DeleteAclsRequest, reply: DeleteAclsResponse | None, error_code: int) -> Iterator[Change]:
    """One that is told for each ACL that went; a filter that fits none changes nothing."""
    if reply is None:
        for each in request.filters:
            yield Change(Resource("ACL", each.resource_name_filter or ""), error_code, ("deleted",))
        return
    for result in reply.filter_results:
        for acl in result.matching_acls:
            text = acl_entry(
                acl.resource_type, acl.resource_name, acl.pattern_type,
                acl.principal, acl.host, acl.operation, acl.permission_type,
            )  # fmt: skip
            yield Change(Resource("ACL", acl.resource_name), acl.error_code or result.error_code, (f"deleted {text}",))


def _mechanism(kind: int) -> str:
    return BY_TYPE[kind].name if kind in BY_TYPE else str(kind)


class _Codes:
    """Error codes of results that are found by name."""

    def __init__(self, codes: dict[str, int], otherwise: int) -> None:
        self._codes, self._otherwise = codes, otherwise

    def __call__(self, name: str) -> int:
        return self._codes.get(name, self._otherwise)


def _codes(reply: Message | None, results: str, name: str, error_code: int) -> _Codes:
    found = getattr(reply, results, ()) if reply is not None else ()
    return _Codes({getattr(each, name): each.error_code for each in found}, error_code)
