"""What the published image says about the brokers around this one: where they are, and whether they may be in sync."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.metadata.entities import CONFIG_BROKER
from penstock.model.config.definition import LONG_MAX
from penstock.model.ids import NodeId
from penstock.server.peers import Address

if TYPE_CHECKING:
    from penstock.metadata.entities import BrokerImage
    from penstock.metadata.image import ClusterImage

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"


class Reachable(NamedTuple):
    """A broker as clients of one listener find it."""

    node: NodeId
    host: str
    port: int
    rack: str | None


class Neighbours:
    """Answers from the image that was published last; knows nobody before the first."""

    __slots__ = ("_image", "_inter_broker_listener", "_me")

    def __init__(self, me: NodeId, inter_broker_listener: str) -> None:
        self._me, self._inter_broker_listener = me, inter_broker_listener
        self._image: ClusterImage | None = None

    def follow(self, image: ClusterImage) -> None:
        self._image = image

    def broker(self, node: int) -> BrokerImage | None:
        return None if self._image is None else self._image.brokers.get(node)

    def may_be_in_sync(self, node: NodeId, broker_epoch: int) -> bool:
        """Whether that incarnation of a broker may come into an in-sync set; -1 stands for whichever there is."""
        broker = self.broker(node)
        return broker is not None and broker.active and broker_epoch in (-1, broker.epoch)

    def is_outdated(self, node: NodeId, broker_epoch: int) -> bool:
        """Whether another process has registered as this broker since."""
        broker = self.broker(node)
        return broker is not None and -1 < broker_epoch < broker.epoch

    def is_alive(self, node: NodeId) -> bool:
        broker = self.broker(node)
        return broker is not None and not broker.fenced

    def rack_of(self, node: NodeId) -> str | None:
        broker = self.broker(node)
        return None if broker is None else broker.rack

    def address_of(self, node: NodeId) -> Address | None:
        """Where other brokers reach a live broker."""
        found = self.reachable(node, self._inter_broker_listener)
        return None if found is None else Address(found.host, found.port)

    def reachable(self, node: NodeId, listener: str) -> Reachable | None:
        """A live broker on the listener of that name."""
        broker = self.broker(node)
        if broker is None or broker.fenced:
            return None
        endpoint = broker.endpoint(listener)
        return None if endpoint is None else Reachable(node, endpoint.host, endpoint.port, broker.rack)

    def throttled_rate(self, name: str) -> int:
        """Bytes a second of a throttle; only dynamic configs can set one, for this broker or for all."""
        if self._image is not None:
            for broker in (str(self._me), ""):
                rate = self._image.config(CONFIG_BROKER, broker).get(name)
                if rate is not None:
                    return int(rate)
        return LONG_MAX
