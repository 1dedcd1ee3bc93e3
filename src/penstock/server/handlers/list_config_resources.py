"""ListConfigResources (74), versions 0-1. The names of what configs can be set on.

Behaviour: topics and brokers are listed as they are, groups and client metrics when something is set on them.
Notes: v0 client metrics alone; v1 chooses kinds, none meaning all. UNSUPPORTED_VERSION for a kind nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from penstock.metadata.entities import CONFIG_CLIENT_METRICS, CONFIG_GROUP
from penstock.model.config import ResourceKind
from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION
from penstock.protocol.messages.list_config_resources import ListConfigResourcesResponse
from penstock.server.doors import Operation, ResourceType

if TYPE_CHECKING:
    from penstock.metadata.image import ClusterImage
    from penstock.protocol.messages.list_config_resources import ListConfigResourcesRequest
    from penstock.server.doors import Context

_CHOICE_SINCE: Final = 1
_ALL: Final = (
    ResourceKind.TOPIC,
    ResourceKind.BROKER,
    ResourceKind.BROKER_LOGGER,
    ResourceKind.CLIENT_METRICS,
    ResourceKind.GROUP,
)


def handle(ctx: Context, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    if not ctx.allow(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER):
        return ListConfigResourcesResponse(error_code=CLUSTER_AUTHORIZATION_FAILED.code)
    if ctx.api_version < _CHOICE_SINCE:
        kinds: Iterable[int] = (ResourceKind.CLIENT_METRICS,)
    else:
        kinds = sorted(set(request.resource_types)) or _ALL
    if any(kind not in _ALL for kind in kinds):
        return ListConfigResourcesResponse(error_code=UNSUPPORTED_VERSION.code)
    image = ctx.node.metadata.image
    return ListConfigResourcesResponse(
        config_resources=[
            ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=int(kind))
            for kind in kinds
            for name in _names(image, kind)
        ]
    )


def _names(image: ClusterImage, kind: int) -> list[str]:
    if kind == ResourceKind.TOPIC:
        return sorted(image.ids)
    if kind in (ResourceKind.BROKER, ResourceKind.BROKER_LOGGER):
        return [str(broker) for broker in sorted(image.brokers)]
    wanted = CONFIG_GROUP if kind == ResourceKind.GROUP else CONFIG_CLIENT_METRICS
    return sorted(key.name for key, values in image.configs.items() if key.type == wanted and values)
