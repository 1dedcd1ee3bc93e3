"""Keeps the partitions that this node follows level with their leaders.

Partitions are spread over loops: `num.replica.fetchers` of them for each leading broker. See `follower_fetcher.py`
for what a loop does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.model.errors import StorageFailed
    from penstock.model.ids import NodeId
    from penstock.model.ports import Clock
    from penstock.server.drivers.hosted import Hosted
    from penstock.server.live_settings import LiveSettings
    from penstock.server.peers import Address, Peers


class FollowerDriver:
    """Told by the partition driver whom to follow; there is at most one loop for a partition at any time."""

    def __init__(
        self,
        me: NodeId,
        peers: Peers,
        clock: Clock,
        settings: LiveSettings,
        *,
        broker_epoch: Callable[[], int],
        address_of: Callable[[NodeId], Address | None],
        storage_failed: Callable[[StorageFailed], None],
        throttle_rate: Callable[[], int],
    ) -> None:
        self._me, self._peers, self._clock, self._settings = me, peers, clock, settings
        self._broker_epoch, self._address_of = broker_epoch, address_of
        self._storage_failed, self._throttle_rate = storage_failed, throttle_rate
        self._followed: dict[Hosted, None] = {}

    def follow(self, hosted: Hosted) -> None:
        """The partition has a leader that is not this node; called again for each new leader or epoch."""
        self._followed[hosted] = None

    def leave(self, hosted: Hosted) -> None:
        """This node leads the partition, has it no more, or nobody leads it."""
        self._followed.pop(hosted, None)

    async def close(self) -> None:
        """Follows nobody any more."""
        self._followed.clear()
