"""Which connection each broker reports over, so that the controller learns at once when a broker's process is gone.

When a process dies its system closes its connections, long before its session runs out. A connection may also break
while the process lives: then it dials again at once, and only the newest connection of a broker counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.server.doors import ConnectionDoor


class HeartbeatLinks:
    """`on_lost` is told (broker id, broker epoch) when the connection of a broker's last heartbeat is gone."""

    def __init__(self, on_lost: Callable[[int, int], None]) -> None:
        self._on_lost = on_lost
        self._brokers: dict[int, tuple[int, int]] = {}  # by connection: who reports over it
        self._newest: dict[int, int] = {}  # by broker: the connection that it used last

    def heard(self, connection: ConnectionDoor, broker_id: int, broker_epoch: int) -> None:
        """A heartbeat came in over this connection."""
        number = connection.number
        is_new = number not in self._brokers
        self._brokers[number] = broker_id, broker_epoch
        self._newest[broker_id] = number
        if is_new:
            connection.when_closed(lambda: self._closed(number))

    def _closed(self, number: int) -> None:
        broker_id, broker_epoch = self._brokers.pop(number)
        if self._newest.get(broker_id) == number:
            del self._newest[broker_id]
            self._on_lost(broker_id, broker_epoch)
