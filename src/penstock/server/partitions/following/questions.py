"""What a follower asks its leader: the next batches, and where the leader's log begins and ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.protocol.codec import decode
from penstock.protocol.messages.fetch import FetchRequest
from penstock.protocol.messages.list_offsets import ListOffsetsRequest
from penstock.protocol.replica_fetch import VERSION, encode_fetch
from penstock.replication.fetching_session import FULL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.model.config import BrokerSettings
    from penstock.model.ids import NodeId, PartitionKey
    from penstock.protocol.messages.list_offsets import ListOffsetsResponse
    from penstock.replication.fetching_session import Question
    from penstock.server.partitions.following.intake import Followed
    from penstock.server.partitions.hosted import Hosted
    from penstock.server.peers import Address, Peers

    Asked = Question[Hosted]

LIST_OFFSETS_VERSION: Final = 9
_LATEST, _EARLIEST = -1, -2


class Limits(NamedTuple):
    """The settings of fetches. `wait_ms` is for how long the leader may keep one that finds nothing."""

    wait_ms: int
    min_bytes: int
    max_bytes: int
    partition_bytes_max: int
    timeout_ms: int

    @classmethod
    def of(cls, settings: BrokerSettings) -> Limits:
        return cls(
            settings.number("replica.fetch.wait.max.ms"),
            settings.number("replica.fetch.min.bytes"),
            settings.number("replica.fetch.response.max.bytes"),
            settings.number("replica.fetch.max.bytes"),
            settings.number("replica.socket.timeout.ms"),
        )


def wait_ms_of(question: Asked, limits: Limits, *, one_at_a_time: bool) -> int:
    """With `one_at_a_time` the leader keeps no session, and nothing can come between."""
    if question.more or (question.session_epoch == FULL and not one_at_a_time):
        return 0  # there is more to say, and it can be said only when this is answered
    return limits.wait_ms


def fetch_body(question: Asked, limits: Limits, wait_ms: int, me: NodeId, broker_epoch: int) -> bytearray:
    """The question as the body of a request."""
    asked: dict[bytes, list[tuple[int, int, int, int, int]]] = {}
    for following, position in question.wanted:
        topic_id, partition = following.key
        asked.setdefault(topic_id, []).append(
            (partition, position.leader_epoch, position.offset, position.last_fetched_epoch, position.log_start)
        )
    forgotten: dict[bytes, list[int]] = {}
    for topic_id, partition in question.forgotten:
        forgotten.setdefault(topic_id, []).append(partition)
    return encode_fetch(
        wait_ms=wait_ms,
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        session_id=question.session_id,
        session_epoch=question.session_epoch,
        topics=asked.items(),
        partition_bytes_max=limits.partition_bytes_max,
        forgotten=forgotten.items(),
        replica=me,
        replica_epoch=broker_epoch,
    )


def fetch_request(question: Asked, body: bytearray) -> FetchRequest:
    """The same question as a message, which can be said in older versions too: they know topics by their names."""
    request, _ = decode(FetchRequest, VERSION, body)
    names = {following.key.topic_id: following.name.topic for following, _ in question.wanted}
    for topic in request.topics:
        topic.topic = names[topic.topic_id]
    return request


async def ask_ends(
    peers: Peers, leader: Address, me: NodeId, lost: Sequence[Followed], *, purpose: str, timeout_ms: float
) -> dict[PartitionKey, tuple[int, int]]:
    """(log start, log end) of each partition at its leader; those that it does not tell are left out."""
    keys = {following.name: following.key for following in lost}
    found: list[dict[PartitionKey, int]] = []
    for when in (_EARLIEST, _LATEST):
        topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
        for following in lost:
            name = following.name.topic
            if name not in topics:
                topics[name] = ListOffsetsRequest.ListOffsetsTopic(name=name)
            topics[name].partitions.append(
                ListOffsetsRequest.ListOffsetsPartition(
                    partition_index=following.key.partition, current_leader_epoch=following.epoch, timestamp=when
                )
            )
        request = ListOffsetsRequest(replica_id=me, topics=list(topics.values()))
        reply: ListOffsetsResponse = await peers.ask(
            leader, request, LIST_OFFSETS_VERSION, purpose=purpose, timeout_ms=timeout_ms
        )
        offsets = {
            (topic.name, told.partition_index): told.offset
            for topic in reply.topics
            for told in topic.partitions
            if not told.error_code
        }
        found.append({key: offsets[name] for name, key in keys.items() if name in offsets})
    starts, ends = found
    return {key: (starts[key], ends[key]) for key in starts if key in ends}
