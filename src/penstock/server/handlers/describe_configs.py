"""DescribeConfigs (32), versions 1-4. What is configured for topics, brokers, loggers, groups and client metrics.

Behaviour: each entry tells its value in force and where it comes from; synonyms name every layer that could supply it,
the strongest first. Secrets have no value. A broker answers for itself and for the defaults of all brokers (name ""); a
client that wants another broker's configuration asks that broker. No keys, or null, mean all of them.
Notes: v1 sources and synonyms; v3 types and documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.metadata.entities import CONFIG_BROKER, CONFIG_CLIENT_METRICS, CONFIG_GROUP, CONFIG_TOPIC
from penstock.model.config import ConfigDescriber, ConfigEntry, ConfigSource, ConfigType, ResourceKind
from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    Refused,
)
from penstock.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers.shared.cluster_view import topic_name_problem
from penstock.server.handlers.shared.log_levels import levels

if TYPE_CHECKING:
    from penstock.server.doors import Context

Resource = DescribeConfigsRequest.DescribeConfigsResource
Result = DescribeConfigsResponse.DescribeConfigsResult
Entry = DescribeConfigsResponse.DescribeConfigsResourceResult
Keys = Sequence[str] | None
Describe = Callable[["Context", ConfigDescriber, str, Keys], list[ConfigEntry]]


def handle(ctx: Context, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    unknown = [each for each in request.resources if each.resource_type not in _DESCRIBED]
    if unknown:
        why = f"Configs of resource type {unknown[0].resource_type} cannot be described."
        return DescribeConfigsResponse(
            results=[_refused(resource, Refused(INVALID_REQUEST, why)) for resource in request.resources]
        )
    image = ctx.node.metadata.image
    # Live settings show what is in force; which layer that comes from is for the file to say.
    file = getattr(ctx.node.settings, "static", ctx.node.settings)
    describer = ConfigDescriber(
        image.config(CONFIG_BROKER, str(ctx.node.metadata.node_id)),
        image.config(CONFIG_BROKER, ""),
        file.properties,
    )
    return DescribeConfigsResponse(results=[_describe(ctx, request, describer, each) for each in request.resources])


def _describe(ctx: Context, request: DescribeConfigsRequest, describer: ConfigDescriber, resource: Resource) -> Result:
    name = resource.resource_name
    try:
        _check_allowed(ctx, resource.resource_type, name)
        entries = _DESCRIBED[resource.resource_type](ctx, describer, name, resource.configuration_keys)
    except Refused as refusal:
        return _refused(resource, refusal)
    return Result(
        resource_type=resource.resource_type,
        resource_name=name,
        configs=[_shown(entry, request.include_synonyms, request.include_documentation) for entry in entries],
    )


def _check_allowed(ctx: Context, kind: int, name: str) -> None:
    if kind == ResourceKind.TOPIC:
        if not ctx.allow(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name):
            raise Refused(TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
    elif kind == ResourceKind.GROUP:
        if not ctx.allow(Operation.DESCRIBE_CONFIGS, ResourceType.GROUP, name):
            raise Refused(GROUP_AUTHORIZATION_FAILED, "Group authorization failed.")
    elif not ctx.allow(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER):
        raise Refused(CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")


def _topic(ctx: Context, describer: ConfigDescriber, name: str, keys: Keys) -> list[ConfigEntry]:
    if problem := topic_name_problem(name):
        raise Refused(INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")
    image = ctx.node.metadata.image
    if name not in image.ids:
        raise Refused(UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")
    return describer.topic(image.config(CONFIG_TOPIC, name), keys)


def _broker(ctx: Context, describer: ConfigDescriber, name: str, keys: Keys) -> list[ConfigEntry]:
    if not name:
        return describer.broker_default(keys)
    _check_own_id(ctx, name, " or empty string,")
    return describer.broker(keys)


def _logger(ctx: Context, _describer: ConfigDescriber, name: str, keys: Keys) -> list[ConfigEntry]:
    if not name:
        raise Refused(INVALID_REQUEST, "Broker id must not be empty")
    _check_own_id(ctx, name, "")
    source = ConfigSource.DYNAMIC_BROKER_LOGGER
    return [
        ConfigEntry(logger, level, source, False, False, ConfigType.UNKNOWN, None, ())
        for logger, level in levels().items()
        if not keys or logger in keys
    ]


def _named(what: str, kind: int, ctx: Context, describer: ConfigDescriber, name: str, keys: Keys) -> list[ConfigEntry]:
    if not name:
        raise Refused(INVALID_REQUEST, f"{what} name must not be empty")
    describe = describer.group if kind == CONFIG_GROUP else describer.client_metrics
    return describe(ctx.node.metadata.image.config(kind, name), keys)


def _check_own_id(ctx: Context, name: str, alternative: str) -> None:
    expected = ctx.node.metadata.node_id
    if not (name.isascii() and name.removeprefix("-").isdigit()):
        raise Refused(INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != expected:
        raise Refused(INVALID_REQUEST, f"Unexpected broker id, expected {expected}{alternative} but received {name}")


_DESCRIBED: Final[dict[int, Describe]] = {
    ResourceKind.TOPIC: _topic,
    ResourceKind.BROKER: _broker,
    ResourceKind.BROKER_LOGGER: _logger,
    ResourceKind.CLIENT_METRICS: partial(_named, "Client metrics subscription", CONFIG_CLIENT_METRICS),
    ResourceKind.GROUP: partial(_named, "Group", CONFIG_GROUP),
}


def _shown(entry: ConfigEntry, synonyms: bool, documentation: bool) -> Entry:
    shown = Entry(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        config_type=entry.type,
        documentation=entry.documentation if documentation else None,
    )
    if synonyms:
        shown.synonyms = [
            DescribeConfigsResponse.DescribeConfigsSynonym(name=name, value=value, source=source)
            for name, value, source in entry.synonyms
        ]
    return shown


def _refused(resource: Resource, refusal: Refused) -> Result:
    return Result(
        error_code=refusal.error.code,
        error_message=refusal.why,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
