"""The published cluster as one client may see it: where brokers are reached, and what state a partition is in.

Several handlers show the same facts in different messages, so the facts are found here. Which address a client is
told depends on the listener it came through. Only a cluster of one broker on a wildcard listener answers with the
address the client dialled: that broker cannot know under which of its addresses the client can reach it, and nobody
else needs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.controller.names import check_topic_name
from penstock.metadata.entities import NO_LEADER
from penstock.model.errors import (
    LEADER_NOT_AVAILABLE,
    LISTENER_NOT_FOUND,
    NONE,
    REPLICA_NOT_AVAILABLE,
    ErrorCode,
    Refused,
)

if TYPE_CHECKING:
    from penstock.metadata.entities import BrokerImage, PartitionImage
    from penstock.metadata.image import ClusterImage
    from penstock.server.doors import Context

_WILDCARDS: Final = frozenset({"", "0.0.0.0", "::", "[::]"})


class Address(NamedTuple):
    """Where a client reaches a broker."""

    broker: BrokerImage
    host: str
    port: int


def addresses(ctx: Context, *, fenced_too: bool = False) -> list[Address]:
    """The brokers that have an endpoint on the request's listener, ordered by id; only those alive unless asked."""
    image = ctx.node.metadata.image
    found = []
    for _, broker in sorted(image.brokers.items()):
        endpoint = broker.endpoint(ctx.listener.name)
        if endpoint is not None and (fenced_too or not broker.fenced):
            host, port = ctx.dialled if _tells_dialled(ctx, image) else (endpoint.host, endpoint.port)
            found.append(Address(broker, host, port))
    return found


def _tells_dialled(ctx: Context, image: ClusterImage) -> bool:
    return len(image.brokers) == 1 and ctx.listener.host in _WILDCARDS and not ctx.node.settings["advertised.listeners"]


def any_controller(ctx: Context, found: list[Address]) -> int:
    """Whom a client takes for the controller. Every broker passes requests on, so any of them will do: this one.

    Clients are spread over brokers, and so are their changes; and there is a connection to this broker already.
    """
    brokers = [address.broker.id for address in found]
    if ctx.node.metadata.node_id in brokers:
        return ctx.node.metadata.node_id
    return brokers[0] if brokers else NO_LEADER


def topic_name_problem(name: str) -> str | None:
    """Why `name` cannot be a topic's name; None when it can."""
    try:
        check_topic_name(name)
    except Refused as refusal:
        return refusal.why
    return None


class PartitionView(NamedTuple):
    """A partition's state as a reply tells it. The lists may be shared: nobody changes them."""

    error: ErrorCode
    leader: int
    replicas: Sequence[int]
    isr: Sequence[int]
    offline: Sequence[int]


class PartitionViewer:
    """Looks at partitions for the clients of one listener. Made once per reply, because brokers change seldom.

    `hides_dead` leaves brokers without an endpoint out of the lists, as Metadata v0 does; `names_listener` tells a
    leader without the listener (Metadata v6 on) apart from no leader.
    """

    __slots__ = ("_all", "_hides_dead", "_names_listener", "_reachable")

    def __init__(
        self, image: ClusterImage, listener: str, *, hides_dead: bool = False, names_listener: bool = True
    ) -> None:
        self._all = image.brokers
        self._reachable = {
            node: broker
            for node, broker in image.brokers.items()
            if not broker.fenced and broker.endpoint(listener) is not None
        }
        self._hides_dead, self._names_listener = hides_dead, names_listener

    def view(self, partition: PartitionImage) -> PartitionView:
        replicas: Sequence[int] = partition.replicas
        isr: Sequence[int] = partition.isr
        reachable = self._reachable
        offline = []
        for replica, directory in zip(replicas, partition.directories, strict=False):
            broker = reachable.get(replica)
            if broker is None or not broker.has_online(directory):
                offline.append(replica)
        error = NONE
        if self._hides_dead and offline:
            replicas, isr = ([node for node in nodes if node in reachable] for nodes in (replicas, isr))
            if len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr):
                error = REPLICA_NOT_AVAILABLE
        if partition.leader in reachable:
            return PartitionView(error, partition.leader, replicas, isr, offline)
        lacks_listener = self._names_listener and partition.leader in self._all
        return PartitionView(
            LISTENER_NOT_FOUND if lacks_listener else LEADER_NOT_AVAILABLE, NO_LEADER, replicas, isr, offline
        )
