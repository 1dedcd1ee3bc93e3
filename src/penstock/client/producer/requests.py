"""Produce requests out of batches, and what the replies say about each."""

from __future__ import annotations

from typing import NamedTuple

from penstock.client.cluster_view import ClusterView
from penstock.client.producer.lane import Batch
from penstock.model.ids import ZERO_UUID, Uuid
from penstock.protocol.compression import ZSTD
from penstock.protocol.messages.produce import ProduceRequest, ProduceResponse
from penstock.transport.dial import Link

PRODUCE = 0
NAMES_UNTIL = 12
ZSTD_SINCE = 7


class Verdict(NamedTuple):
    """What a broker said about one batch."""

    code: int
    base_offset: int
    append_time: int
    why: str | None
    leader: tuple[int, int] | None
    """(leader, epoch) when the broker knows better who leads."""


def version_for(link: Link, view: ClusterView, batches: list[Batch], newest: int | None = None) -> int:
    """The newest version that can carry these batches: ids are only good when every topic's is known."""
    version = link.newest(PRODUCE, newest)
    if version > NAMES_UNTIL:
        for batch in batches:
            topic = view.cached(batch.lane.topic)
            if topic is None or topic.id == ZERO_UUID:
                return NAMES_UNTIL
    return version


def takes_codec(version: int, codec: int) -> bool:
    return codec != ZSTD or version >= ZSTD_SINCE


def produce_request(
    view: ClusterView, batches: list[Batch], acks: int, timeout_ms: int, transactional_id: str | None = None
) -> ProduceRequest:
    """At most one batch of each partition; they are not copied."""
    topics: dict[str, ProduceRequest.TopicProduceData] = {}
    for batch in batches:
        name = batch.lane.topic
        topic = topics.get(name)
        if topic is None:
            known = view.cached(name)
            topic_id = Uuid(known.id) if known is not None else ZERO_UUID
            topic = topics[name] = ProduceRequest.TopicProduceData(name=name, topic_id=topic_id, partition_data=[])
        topic.partition_data.append(
            ProduceRequest.PartitionProduceData(index=batch.lane.partition, records=batch.sealed)
        )
    return ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=list(topics.values())
    )


def verdicts(reply: ProduceResponse, request: ProduceRequest, version: int) -> dict[tuple[str, int], Verdict]:
    """What the reply says, by topic and partition."""
    names = {topic.topic_id: topic.name for topic in request.topic_data}
    found: dict[tuple[str, int], Verdict] = {}
    for topic in reply.responses:
        name = topic.name if version <= NAMES_UNTIL else names.get(topic.topic_id, "")
        for answer in topic.partition_responses:
            hint = answer.current_leader
            why = answer.error_message
            if answer.record_errors:
                worst = answer.record_errors[0]
                why = f"record {worst.batch_index}: {worst.batch_index_error_message or why or 'it was refused'}"
            found[name, answer.index] = Verdict(
                answer.error_code,
                answer.base_offset,
                answer.log_append_time_ms,
                why,
                (hint.leader_id, hint.leader_epoch) if hint.leader_id >= 0 else None,
            )
    return found


def endpoints(reply: ProduceResponse) -> dict[int, tuple[str, int]]:
    return {node.node_id: (node.host, node.port) for node in reply.node_endpoints}
