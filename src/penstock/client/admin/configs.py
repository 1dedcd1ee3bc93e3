"""Configuration of topics, brokers, the cluster's defaults, groups and loggers: read and change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from penstock.client.admin.session import Results, Session, gathered, refused
from penstock.client.errors import ClientError
from penstock.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from penstock.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from penstock.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_KINDS = {"topic": 2, "broker": 4, "broker_logger": 8, "client_metrics": 16, "group": 32}
_KIND_NAMES = {number: name for name, number in _KINDS.items()}
_SOURCES = {
    1: "topic",
    2: "broker",
    3: "cluster",
    4: "static",
    5: "default",
    6: "logger",
    7: "client_metrics",
    8: "group",
}
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """What has a configuration. `kind` is topic, broker, broker_logger, client_metrics or group."""

    kind: str
    name: str

    @classmethod
    def topic(cls, name: str) -> ConfigResource:
        """A topic, by its name."""
        return cls("topic", name)

    @classmethod
    def broker(cls, node_id: int) -> ConfigResource:
        """One broker, by its id."""
        return cls("broker", str(node_id))

    @classmethod
    def cluster(cls) -> ConfigResource:
        """The defaults of all brokers."""
        return cls("broker", "")

    @classmethod
    def loggers(cls, node_id: int) -> ConfigResource:
        """The levels of a broker's loggers."""
        return cls("broker_logger", str(node_id))

    @classmethod
    def group(cls, group_id: str) -> ConfigResource:
        """A group, by its id."""
        return cls("group", group_id)

    def __str__(self) -> str:
        return "the cluster's defaults" if self == self.cluster() else f"{self.kind.replace('_', ' ')} {self.name!r}"

    @property
    def node_id(self) -> int | None:
        """The only broker that can answer, for what belongs to one."""
        return int(self.name) if self.kind in ("broker", "broker_logger") and self.name else None


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One value. `source` says where it comes from: topic, broker, cluster, static, default, logger, group."""

    name: str
    value: str | None
    source: str
    read_only: bool
    sensitive: bool
    documentation: str | None = None


Entries: TypeAlias = "dict[str, ConfigEntry]"


async def describe_configs(
    session: Session,
    resources: Iterable[ConfigResource],
    *,
    documentation: bool = False,
    names: Sequence[str] | None = None,
) -> Results[ConfigResource, dict[str, ConfigEntry]]:
    """All values, those that were never set too, or those of some names."""
    keys = None if names is None else list(names)

    async def ask_one(node: int | None, part: list[ConfigResource]) -> Mapping[ConfigResource, Entries | ClientError]:
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=_KINDS[resource.kind], resource_name=resource.name, configuration_keys=keys
                )
                for resource in part
            ],
            include_documentation=documentation,
        )
        reply = await (session.any(request) if node is None else session.broker(node, request))
        outcomes: dict[ConfigResource, Entries | ClientError] = {}
        for found in reply.results:
            resource = ConfigResource(_KIND_NAMES[found.resource_type], found.resource_name)
            outcomes[resource] = (
                refused(found.error_code, found.error_message, str(resource))
                if found.error_code
                else {entry.name: _entry(entry) for entry in found.configs}
            )
        return outcomes

    async def ask(pending: list[ConfigResource]) -> Mapping[ConfigResource, Entries | ClientError]:
        outcomes: dict[ConfigResource, Entries | ClientError] = {}
        for node, part in _by_node(pending).items():
            outcomes.update(await gathered(partial(ask_one, node, part), part))
        return outcomes

    return await session.settled(resources, ask)


async def alter_configs(
    session: Session,
    changes: Mapping[ConfigResource, Mapping[str, str | None]],
    *,
    append: bool,
    subtract: bool,
    validate_only: bool,
) -> Results[ConfigResource, None]:
    """Sets values; None takes one away. `append` and `subtract` treat values as lists."""
    operation = _APPEND if append else _SUBTRACT if subtract else _SET

    async def ask_one(node: int | None, part: list[ConfigResource]) -> Mapping[ConfigResource, ClientError | None]:
        request = IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsRequest.AlterConfigsResource(
                    resource_type=_KINDS[resource.kind],
                    resource_name=resource.name,
                    configs=[
                        IncrementalAlterConfigsRequest.AlterableConfig(
                            name=name, config_operation=_DELETE if value is None else operation, value=value
                        )
                        for name, value in changes[resource].items()
                    ],
                )
                for resource in part
            ],
            validate_only=validate_only,
        )
        return _changes_told(await (session.any(request) if node is None else session.broker(node, request)))

    return await session.settled(changes, _asking_each(ask_one))


async def replace_configs(
    session: Session, values: Mapping[ConfigResource, Mapping[str, str]], *, validate_only: bool
) -> Results[ConfigResource, None]:
    """Puts values in place of all that were set before: the older request, for brokers that know no other."""

    async def ask_one(node: int | None, part: list[ConfigResource]) -> Mapping[ConfigResource, ClientError | None]:
        request = AlterConfigsRequest(
            resources=[
                AlterConfigsRequest.AlterConfigsResource(
                    resource_type=_KINDS[resource.kind],
                    resource_name=resource.name,
                    configs=[
                        AlterConfigsRequest.AlterableConfig(name=name, value=value)
                        for name, value in values[resource].items()
                    ],
                )
                for resource in part
            ],
            validate_only=validate_only,
        )
        return _changes_told(await (session.any(request) if node is None else session.broker(node, request)))

    return await session.settled(values, _asking_each(ask_one))


def _changes_told(
    reply: AlterConfigsResponse | IncrementalAlterConfigsResponse,
) -> dict[ConfigResource, ClientError | None]:
    outcomes: dict[ConfigResource, ClientError | None] = {}
    for changed in reply.responses:
        resource = ConfigResource(_KIND_NAMES[changed.resource_type], changed.resource_name)
        refusal = refused(changed.error_code, changed.error_message, str(resource)) if changed.error_code else None
        outcomes[resource] = refusal
    return outcomes


def _asking_each(
    ask_one: Callable[[int | None, list[ConfigResource]], Awaitable[Mapping[ConfigResource, ClientError | None]]],
) -> Callable[[list[ConfigResource]], Awaitable[Mapping[ConfigResource, ClientError | None]]]:
    """Asks the broker that each resource belongs to."""

    async def ask(pending: list[ConfigResource]) -> Mapping[ConfigResource, ClientError | None]:
        outcomes: dict[ConfigResource, ClientError | None] = {}
        for node, part in _by_node(pending).items():
            outcomes.update(await gathered(partial(ask_one, node, part), part))
        return outcomes

    return ask


def _by_node(resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    parts: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        parts.setdefault(resource.node_id, []).append(resource)
    return parts


def _entry(found: DescribeConfigsResponse.DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        found.name,
        found.value,
        _SOURCES.get(found.config_source, "unknown"),
        found.read_only,
        found.is_sensitive,
        found.documentation,
    )
