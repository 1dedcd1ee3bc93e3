"""The published cluster as one client may see it: where brokers are reached, and what state a partition is in.

Several handlers show the same facts in different messages, so the facts are found here. Which address a client is
told depends on the listener it came through. Only a cluster of one broker on a wildcard listener answers with the
address the client dialled: that broker cannot know under which of its addresses the client can reach it, and nobody
else needs to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.controller.names import check_topic_name
from penstock.metadata.entities import NO_LEADER, PartitionImage
from penstock.model.errors import (
    LEADER_NOT_AVAILABLE,
    LISTENER_NOT_FOUND,
    NONE,
    REPLICA_NOT_AVAILABLE,
    ErrorCode,
    Refused,
)
from penstock.model.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

if TYPE_CHECKING:
    from penstock.metadata.entities import BrokerImage
    from penstock.metadata.image import ClusterImage
    from penstock.server.context import Context

SHARE_STATE_TOPIC: Final = "__share_group_state"
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC})

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


def any_controller(found: list[Address]) -> int:
    """Whom a client takes for the controller. Every broker passes requests on, so any of them will do."""
    return found[0].broker.id if found else NO_LEADER


def topic_name_problem(name: str) -> str | None:
    """Why `name` cannot be a topic's name; None when it can."""
    try:
        check_topic_name(name)
    except Refused as refusal:
        return refusal.why
    return None


class PartitionView(NamedTuple):
    """A partition's state as a reply tells it."""

    error: ErrorCode
    leader: int
    replicas: list[int]
    isr: list[int]
    offline: list[int]


def view_partition(
    image: ClusterImage,
    partition: PartitionImage,
    listener: str,
    *,
    hides_dead: bool = False,
    names_listener: bool = True,
) -> PartitionView:
    """`hides_dead` leaves brokers without an endpoint out of the lists, as Metadata v0 does; `names_listener` tells a
    leader without the listener (Metadata v6 on) apart from no leader."""
    offline = [replica for replica in partition.replicas if not _serves(image, partition, replica, listener)]
    replicas, isr = list(partition.replicas), list(partition.isr)
    error = NONE
    if hides_dead:
        reachable = {replica for replica in replicas if _reachable(image, replica, listener)}
        replicas, isr = ([node for node in nodes if node in reachable] for nodes in (replicas, isr))
        if len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr):
            error = REPLICA_NOT_AVAILABLE
    if _reachable(image, partition.leader, listener):
        return PartitionView(error, partition.leader, replicas, isr, offline)
    lacks_listener = names_listener and partition.leader in image.brokers
    error = LISTENER_NOT_FOUND if lacks_listener else LEADER_NOT_AVAILABLE
    return PartitionView(error, NO_LEADER, replicas, isr, offline)


def _reachable(image: ClusterImage, node: int, listener: str) -> bool:
    broker = image.brokers.get(node)
    return broker is not None and not broker.fenced and broker.endpoint(listener) is not None


def _serves(image: ClusterImage, partition: PartitionImage, replica: int, listener: str) -> bool:
    return _reachable(image, replica, listener) and image.brokers[replica].has_online(partition.directory_of(replica))
