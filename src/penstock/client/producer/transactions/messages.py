"""The requests of a transaction for its coordinators, and what their replies say about each partition. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from penstock.client.producer.transactions.prepared import ProducerEpoch
from penstock.model.ids import TopicPartition
from penstock.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from penstock.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from penstock.protocol.messages.end_txn import EndTxnRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

if TYPE_CHECKING:
    from penstock.client.consumer.offsets import GroupMetadata, OffsetAndMetadata

ADD_PARTITIONS_NEWEST: Final = 3
"""Later versions are for brokers."""
ADD_OFFSETS_NEWEST: Final = 4
END_NEWEST: Final = 4
END_BUMPING: Final = 5
COMMIT_NEWEST: Final = 4
COMMIT_JOINING: Final = 5
COMMIT_MEMBER_SINCE: Final = 3
INIT_NEWEST: Final = 5
INIT_NAMING_SINCE: Final = 3
PRODUCE_NEWEST: Final = 11
"""From Produce 12 on the partition's leader adds it to the transaction by itself."""


def initialise(transactional_id: str, timeout_ms: int, named: ProducerEpoch | None) -> InitProducerIdRequest:
    """For a producer id; who has one already names it, and is refused if another has taken over meanwhile."""
    producer_id, epoch = named or (-1, -1)
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
    )


def end(transactional_id: str, producer: ProducerEpoch, *, commits: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=commits,
    )


def add_offsets(transactional_id: str, producer: ProducerEpoch, group_id: str) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        group_id=group_id,
    )


def add_partitions(
    transactional_id: str, producer: ProducerEpoch, partitions: Iterable[tuple[str, int]]
) -> AddPartitionsToTxnRequest:
    of_topic: dict[str, list[int]] = {}
    for topic, index in partitions:
        of_topic.setdefault(topic, []).append(index)
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=indexes)
            for topic, indexes in of_topic.items()
        ],
    )


def added(reply: AddPartitionsToTxnResponse) -> Iterator[tuple[tuple[str, int], int]]:
    """((topic, partition), error code) of each."""
    for topic in reply.results_by_topic_v3_and_below:
        for result in topic.results_by_partition:
            yield (topic.name, result.partition_index), result.partition_error_code


def commit_offsets(
    transactional_id: str,
    producer: ProducerEpoch,
    group: GroupMetadata,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
) -> TxnOffsetCommitRequest:
    of_topic: dict[str, list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition]] = {}
    for (topic, index), offset in offsets.items():
        of_topic.setdefault(topic, []).append(
            TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=offset.offset,
                committed_leader_epoch=offset.leader_epoch,
                committed_metadata=offset.metadata,
            )
        )
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group.group_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        generation_id=group.generation,
        member_id=group.member_id,
        group_instance_id=group.instance_id,
        topics=[
            TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=topic, partitions=partitions)
            for topic, partitions in of_topic.items()
        ],
    )


def committed(reply: TxnOffsetCommitResponse) -> Iterator[tuple[TopicPartition, int]]:
    """(partition, error code) of each."""
    for topic in reply.topics:
        for result in topic.partitions:
            yield TopicPartition(topic.name, result.partition_index), result.error_code
