"""AlterConfigs (33), versions 0-2. Replaces all configs of a resource: what is not named goes back to its default.

Behaviour: topics, brokers, groups and client metrics, through the controller; each resource succeeds or fails by
itself. Loggers cannot be replaced as a whole: IncrementalAlterConfigs sets them.
Notes: v2 flexible. Old clients (kafkajs, aiokafka, sarama) have no other way to change a config.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.model.config import ResourceKind
from penstock.model.errors import INVALID_REQUEST, Refused
from penstock.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from penstock.server.handlers.shared.config_requests import (
    REPEATED,
    check_alterable,
    check_stores,
    check_values,
    repeated,
)
from penstock.server.handlers.shared.controller_requests import submitted

if TYPE_CHECKING:
    from penstock.server.doors import Context

Resource = AlterConfigsRequest.AlterConfigsResource
Result = AlterConfigsResponse.AlterConfigsResourceResponse


async def handle(ctx: Context, request: AlterConfigsRequest) -> AlterConfigsResponse:
    twice = repeated(request.resources)
    results: dict[tuple[int, str], Result] = {}
    wanted: list[Resource] = []
    for resource in request.resources:
        try:
            _check(ctx, resource, twice)
            await _check_stores(ctx, resource)
            wanted.append(resource)
        except Refused as refusal:
            results[resource.resource_type, resource.resource_name] = _refused(resource, refusal)
    if wanted:
        for result in await _alter(ctx, replace(request, resources=wanted)):
            results[result.resource_type, result.resource_name] = result
    return AlterConfigsResponse(
        responses=[results[each.resource_type, each.resource_name] for each in request.resources]
    )


def _check(ctx: Context, resource: Resource, twice: set[tuple[int, str]]) -> None:
    kind, name = resource.resource_type, resource.resource_name
    if (kind, name) in twice:
        raise REPEATED
    if kind == ResourceKind.BROKER_LOGGER:
        raise Refused(INVALID_REQUEST, f"Unknown resource type {int(kind)}")
    check_alterable(ctx, kind, name)  # asks ctx.allow(ALTER_CONFIGS)
    check_values((config.name, config.value) for config in resource.configs)


async def _check_stores(ctx: Context, resource: Resource) -> None:
    after = {config.name: config.value or "" for config in resource.configs}
    await check_stores(ctx, resource.resource_type, resource.resource_name, after, after)


async def _alter(ctx: Context, request: AlterConfigsRequest) -> list[Result]:
    try:
        reply = await submitted(ctx, request, AlterConfigsResponse)
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
