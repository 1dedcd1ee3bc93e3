"""What several handlers of group requests share: who is served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.metadata.features import GROUP_VERSION

if TYPE_CHECKING:
    from penstock.server.doors import Context

CONSUMER_PROTOCOL: Final = "consumer"


def serves_consumer_protocol(ctx: Context) -> bool:
    """Whether groups that the coordinator assigns are served: by this broker's settings and by the whole cluster."""
    allowed = CONSUMER_PROTOCOL in ctx.node.settings.names("group.coordinator.rebalance.protocols")
    return allowed and ctx.node.metadata.image.features.get(GROUP_VERSION, 0) > 0
