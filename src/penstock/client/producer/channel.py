"""One broker as the sender sees it: a connection, what is ready for it, and how much is out."""

from __future__ import annotations

import asyncio

from penstock.client.outage import Outage
from penstock.client.producer.lane import Lane
from penstock.transport.dial import Link


class Channel:
    """Connections are made when there is something to send, and again after they broke."""

    __slots__ = ("connecting", "failures", "in_flight", "link", "muted", "node_id", "outage", "ready")

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.link: Link | None = None
        self.connecting: asyncio.Task[None] | None = None
        self.in_flight = 0
        self.failures = 0  # to connect, in a row
        self.outage = Outage.of_broker(node_id)
        self.muted = False  # the broker asked for a pause
        self.ready: dict[Lane, None] = {}

    @property
    def up(self) -> bool:
        return self.link is not None and self.link.up

    def close(self) -> None:
        if self.connecting is not None:
            self.connecting.cancel()
        if self.link is not None:
            self.link.abort()
