"""IncrementalAlterConfigs (44), versions 0-1. Sets, deletes, appends to or subtracts from single configs of a resource.

Behaviour: topics, brokers, groups and client metrics go through the controller; loggers are this node's own and change
here at once, until it stops. Each resource succeeds or fails by itself.
Notes: v1 flexible. Operations: 0 set, 1 delete, 2 append to and 3 subtract from a list.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.model.config import AlterOp, ResourceKind, apply_incremental
from penstock.model.errors import INVALID_REQUEST, Refused
from penstock.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.server.handlers.shared.config_requests import (
    REPEATED,
    check_alterable,
    check_stores,
    check_values,
    repeated,
)
from penstock.server.handlers.shared.controller_requests import submitted
from penstock.server.handlers.shared.log_levels import check_level, set_level

if TYPE_CHECKING:
    from penstock.server.doors import Context

Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
Result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


async def handle(ctx: Context, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    twice = repeated(request.resources)
    results: dict[tuple[int, str], Result] = {}
    wanted: list[Resource] = []
    for resource in request.resources:
        key = resource.resource_type, resource.resource_name
        try:
            _check(ctx, resource, twice)
            await _check_stores(ctx, resource)
            if resource.resource_type == ResourceKind.BROKER_LOGGER:
                _alter_loggers(resource, validate_only=request.validate_only)
                results[key] = Result(error_message=None, resource_type=key[0], resource_name=key[1])
                if ctx.node.audit is not None:
                    ctx.node.audit.changed(ctx, replace(request, resources=[resource]), None)
            else:
                wanted.append(resource)
        except Refused as refusal:
            results[key] = _refused(resource, refusal)
    if wanted:
        for result in await _alter(ctx, replace(request, resources=wanted)):
            results[result.resource_type, result.resource_name] = result
    return IncrementalAlterConfigsResponse(
        responses=[results[each.resource_type, each.resource_name] for each in request.resources]
    )


def _check(ctx: Context, resource: Resource, twice: set[tuple[int, str]]) -> None:
    kind, name = resource.resource_type, resource.resource_name
    if (kind, name) in twice:
        raise REPEATED
    check_alterable(ctx, kind, name)  # asks ctx.allow(ALTER_CONFIGS)
    operations = tuple(AlterOp)
    for config in resource.configs:
        if config.config_operation not in operations:
            raise Refused(INVALID_REQUEST, f"Unknown operation {config.config_operation} for config {config.name}")
    # Deleting needs no value.
    check_values(
        (config.name, "" if config.config_operation == AlterOp.DELETE else config.value) for config in resource.configs
    )


async def _check_stores(ctx: Context, resource: Resource) -> None:
    kind, name = resource.resource_type, resource.resource_name
    if kind == ResourceKind.BROKER:
        ops = [(config.name, config.config_operation, config.value) for config in resource.configs]
        after = apply_incremental(ctx.node.metadata.image.config(kind, name), ops, kind)
        await check_stores(ctx, kind, name, after, [config.name for config in resource.configs])


def _alter_loggers(resource: Resource, *, validate_only: bool) -> None:
    changes: list[tuple[str, str | None]] = []
    for config in resource.configs:
        operation = AlterOp(config.config_operation)
        if operation in (AlterOp.APPEND, AlterOp.SUBTRACT):
            raise Refused(INVALID_REQUEST, f"{operation.name} operation is not allowed for the BROKER_LOGGER resource")
        level = None if operation is AlterOp.DELETE else config.value
        check_level(config.name, level)
        changes.append((config.name, level))
    if not validate_only:
        for name, level in changes:
            set_level(name, level)


async def _alter(ctx: Context, request: IncrementalAlterConfigsRequest) -> list[Result]:
    try:
        reply = await submitted(ctx, request, IncrementalAlterConfigsResponse)
    except Refused as refusal:
        return [_refused(resource, refusal) for resource in request.resources]
    return reply.responses


def _refused(resource: Resource, refusal: Refused) -> Result:
    return Result(
        error_code=refusal.error.code,
        error_message=refusal.why or None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
