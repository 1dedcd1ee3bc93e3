"""What is to be done with audit lines that are meant for the topic, by what the cluster looks like. Pure.

| the image says | then |
|---|---|
| no such topic, and a live broker | make it |
| the same, with fewer brokers than replicas are wanted | wait for a few attempts: a cluster may be starting |
| no such topic, and no live broker | wait |
| partitions, none of which has a live leader that can be reached | wait |
| a partition with a live leader | write there; at the next attempt, to the next such partition |

| the answer says | then |
|---|---|
| no error | delivered |
| that the leader is another, or cannot write now | look again, after a pause |
| anything else | lost: the same batch would be refused again |
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.kernels import Record
from penstock.model.errors import (
    KAFKA_STORAGE_ERROR,
    LEADER_NOT_AVAILABLE,
    NETWORK_EXCEPTION,
    NONE,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from penstock.model.ids import AUDIT_TOPIC, NodeId
from penstock.protocol.batch import build_batch
from penstock.protocol.messages.produce import ProduceRequest
from penstock.server.peers import Address

if TYPE_CHECKING:
    from penstock.metadata.image import ClusterImage
    from penstock.server.auditing.outlet import Line

ALL_IN_SYNC: Final = -1
WRITE_WITHIN_MS: Final = 10_000
PATIENT_ATTEMPTS: Final = 6
"""After so many, which is three seconds, a cluster counts as whole, and it is news what is waited for."""

_PASSING: Final = frozenset(
    each.code
    for each in (
        KAFKA_STORAGE_ERROR, LEADER_NOT_AVAILABLE, NETWORK_EXCEPTION, NOT_ENOUGH_REPLICAS,
        NOT_ENOUGH_REPLICAS_AFTER_APPEND, NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT, UNKNOWN_TOPIC_ID,
        UNKNOWN_TOPIC_OR_PARTITION,
    )
)  # fmt: skip


class Make(NamedTuple):
    """Ask the controller for the topic."""


class Wait(NamedTuple):
    """Nothing can be done now, for a reason that people should hear of."""

    why: str


class Write(NamedTuple):
    """Produce to a partition, whose leader is at an address."""

    leader: NodeId
    address: Address
    partition: int


class Answer(Enum):
    DELIVERED = auto()
    AGAIN = auto()
    LOST = auto()


def plan(image: ClusterImage, node_id: int, listener: str, attempt: int, replicas: int) -> Make | Wait | Write:
    """The next step of a node that dials brokers at `listener`, and would make the topic with so many replicas.

    The lines of one node stay in one partition, in their order, as long as that can be written.
    """
    topic = image.topic(AUDIT_TOPIC)
    if topic is None:
        live = sum(broker.active for broker in image.brokers.values())
        if live < (1 if attempt >= PATIENT_ATTEMPTS else replicas):
            return Wait(f"{live} brokers are live, and it would have {replicas} replicas")
        return Make()
    ways: list[Write] = []
    unheard_of = False
    for index, partition in enumerate(topic.partitions):
        broker = image.brokers.get(partition.leader)
        if broker is None or broker.fenced:
            continue
        endpoint = broker.endpoint(listener)
        if endpoint is None:
            unheard_of = True
        else:
            ways.append(Write(broker.id, Address(endpoint.host, endpoint.port), index))
    if ways:
        return ways[(node_id + attempt) % len(ways)]
    if unheard_of:
        return Wait(f"brokers have no listener {listener}, which inter.broker.listener.name of this node names")
    return Wait(f"no partition of {AUDIT_TOPIC} has a leader")


def request_of(lines: Sequence[Line], partition: int) -> ProduceRequest:
    """A record for each line, with the time of the event."""
    records = [Record(number, line.at_ms, None, line.text.rstrip(b"\n")) for number, line in enumerate(lines)]
    data = ProduceRequest.PartitionProduceData(index=partition, records=bytearray(build_batch(records)))
    topic = ProduceRequest.TopicProduceData(name=AUDIT_TOPIC, partition_data=[data])
    return ProduceRequest(acks=ALL_IN_SYNC, timeout_ms=WRITE_WITHIN_MS, topic_data=[topic])


def answer_of(error_code: int) -> Answer:
    if error_code == NONE.code:
        return Answer.DELIVERED
    return Answer.AGAIN if error_code in _PASSING else Answer.LOST
