"""What both requests that alter configs check before the controller sees them: who asks, for what, and whether it is
this node's to change. Duplicates are refused as a whole, because nobody can tell which one was meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from penstock.model.config import ResourceKind
from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    TOPIC_AUTHORIZATION_FAILED,
    Refused,
)
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.server.doors import Context


class Resource(Protocol):
    """What the resources of both requests have."""

    resource_type: int
    resource_name: str


def repeated(resources: Iterable[Resource]) -> set[tuple[int, str]]:
    """The resources that appear more than once."""
    times = Counter((each.resource_type, each.resource_name) for each in resources)
    return {resource for resource, count in times.items() if count > 1}


def check_alterable(ctx: Context, kind: int, name: str) -> None:
    """Refused unless the client may alter this resource and may do so through this node."""
    if kind == ResourceKind.TOPIC:
        if not ctx.allow(Operation.ALTER_CONFIGS, ResourceType.TOPIC, name):
            raise Refused(TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
    elif kind == ResourceKind.GROUP:
        if not ctx.allow(Operation.ALTER_CONFIGS, ResourceType.GROUP, name):
            raise Refused(GROUP_AUTHORIZATION_FAILED, "Group authorization failed.")
    elif kind in (ResourceKind.BROKER, ResourceKind.BROKER_LOGGER, ResourceKind.CLIENT_METRICS):
        # What a controller logs is a matter between nodes, and no config of the cluster.
        logger_of_controller = kind == ResourceKind.BROKER_LOGGER and ctx.listener.for_controllers
        operation = Operation.CLUSTER_ACTION if logger_of_controller else Operation.ALTER_CONFIGS
        if not ctx.allow(operation, ResourceType.CLUSTER):
            raise Refused(CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
        if kind != ResourceKind.CLIENT_METRICS:
            _check_own(ctx, kind, name)
    else:
        raise Refused(INVALID_REQUEST, f"Unknown resource type {kind}")


def _check_own(ctx: Context, kind: int, name: str) -> None:
    """A broker's own settings are checked against its file, so only that broker can tell whether they will do."""
    if kind == ResourceKind.BROKER and not name:
        return
    if not (name.isascii() and name.isdigit()):
        raise Refused(INVALID_REQUEST, f"A broker is named by its id, but the name is {name!r}")
    # What a broker passes on to the controller it has checked itself.
    if int(name) != ctx.node.metadata.node_id and not (ctx.listener.for_controllers and kind == ResourceKind.BROKER):
        raise Refused(
            INVALID_REQUEST, f"Unexpected broker id, expected {ctx.node.metadata.node_id}, but received {name}"
        )


async def check_stores(ctx: Context, kind: int, name: str, after: Mapping[str, str], named: Iterable[str]) -> None:
    """Refused when a change of a broker's own configs would leave one of its listeners with stores it cannot use.

    `after` are all configs that the resource would have; `named` are those that the request names.
    """
    stores = ctx.node.stores
    if kind != ResourceKind.BROKER or not name or stores is None:
        return
    image = ctx.node.metadata.image
    gone = image.config(kind, name).keys() - after.keys()
    await stores.check(image, after, {*named, *gone})


def check_values(names_and_values: Iterable[tuple[str, str | None]]) -> None:
    """Refused when a value is null or a name stands twice."""
    named = list(names_and_values)
    if len({name for name, _ in named}) < len(named):
        raise Refused(INVALID_REQUEST, "Error due to duplicate config keys")
    if nulls := [name for name, value in named if value is None]:
        raise Refused(INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")


REPEATED = Refused(INVALID_REQUEST, "Each resource must appear at most once.")
