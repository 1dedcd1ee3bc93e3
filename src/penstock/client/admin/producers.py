"""Producers that are active in partitions: their sequences and open transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.client.admin.session import Results, Session, gathered, partition_words, refused
from penstock.client.errors import ClientError
from penstock.model.ids import TopicPartition
from penstock.protocol.messages.describe_producers import DescribeProducersRequest


@dataclass(frozen=True, slots=True)
class ProducerInfo:
    """An idempotent or transactional producer; `transaction_start` is the first offset of an open one, or -1."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start: int


async def describe_producers(
    session: Session, partitions: Iterable[TopicPartition], *, broker_id: int | None = None
) -> Results[TopicPartition, list[ProducerInfo]]:
    """Asks the leaders, or for all partitions one broker that has replicas of them."""

    async def ask(node: int, led: list[TopicPartition]) -> Mapping[TopicPartition, list[ProducerInfo] | ClientError]:
        of_topic: dict[str, list[int]] = {}
        for item in led:
            of_topic.setdefault(item.topic, []).append(item.partition)
        request = DescribeProducersRequest(
            topics=[
                DescribeProducersRequest.TopicRequest(name=name, partition_indexes=indexes)
                for name, indexes in of_topic.items()
            ]
        )
        outcomes: dict[TopicPartition, list[ProducerInfo] | ClientError] = {}
        for topic in (await session.broker(node, request)).topics:
            for found in topic.partitions:
                item = TopicPartition(topic.name, found.partition_index)
                outcomes[item] = (
                    refused(found.error_code, found.error_message, partition_words(item))
                    if found.error_code
                    else [
                        ProducerInfo(
                            p.producer_id,
                            p.producer_epoch,
                            p.last_sequence,
                            p.last_timestamp,
                            p.coordinator_epoch,
                            p.current_txn_start_offset,
                        )
                        for p in found.active_producers
                    ]
                )
        return outcomes

    if broker_id is None:
        return await session.by_leader(partitions, ask)
    return await session.settled(partitions, lambda pending: gathered(lambda: ask(broker_id, pending), pending))
