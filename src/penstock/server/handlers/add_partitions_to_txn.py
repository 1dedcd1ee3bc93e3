"""AddPartitionsToTxn (24), versions 0-5. Takes partitions into a transaction, or looks whether they are in it.

Behaviour: up to v3 clients ask, for one transaction and all or nothing: a partition that is unknown or forbidden is
told so, the others OPERATION_NOT_ATTEMPTED. Topics of coordinators are forbidden to everybody. From v4 on only brokers
ask, for several transactions at once, each of which is added to or, with `verify_only`, only looked at; answered when
all are.
Notes: v2 knows PRODUCER_FENCED, which is INVALID_PRODUCER_EPOCH before; v5 knows TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING

from penstock.coordinators.transactions.answers import all_or_nothing, told_by_add_partitions
from penstock.coordinators.transactions.requests import (
    BROKER_ADDS_SINCE,
    AddPartitions,
    Partition,
    PartitionsAdded,
    client_version_of,
)
from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
)
from penstock.model.ids import INTERNAL_TOPICS
from penstock.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from penstock.server.doors import Operation, ResourceType
from penstock.server.loops.later import gathered, then

if TYPE_CHECKING:
    from penstock.server.doors import Context, Outcome

Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
TopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
PartitionResult = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult


def handle(ctx: Context, request: AddPartitionsToTxnRequest) -> Outcome:
    return _of_brokers(ctx, request) if ctx.api_version >= BROKER_ADDS_SINCE else _of_a_client(ctx, request)


def _of_a_client(ctx: Context, request: AddPartitionsToTxnRequest) -> Outcome:
    transactional_id, topics = request.v3_and_below_transactional_id, request.v3_and_below_topics
    partitions = _partitions(topics)
    if not ctx.allow(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return _told_client(ctx, PartitionsAdded.all_with(TRANSACTIONAL_ID_AUTHORIZATION_FAILED, partitions))
    writable = {
        # What coordinators keep joins by AddOffsetsToTxn alone, or not at all.
        topic.name: topic.name not in INTERNAL_TOPICS and ctx.allow(Operation.WRITE, ResourceType.TOPIC, topic.name)
        for topic in topics
    }
    refused = all_or_nothing(
        {each: _known(ctx, each) if writable[each[0]] else TOPIC_AUTHORIZATION_FAILED for each in partitions}
    )
    if refused is not None:
        return _told_client(ctx, PartitionsAdded(refused))
    wanted = AddPartitions(
        transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        partitions,
        client_version=client_version_of(ctx.api_version),
    )
    return then(_asked(ctx, wanted), lambda added: _told_client(ctx, added))


def _of_brokers(ctx: Context, request: AddPartitionsToTxnRequest) -> Outcome:
    if not ctx.allow(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return AddPartitionsToTxnResponse(error_code=CLUSTER_AUTHORIZATION_FAILED.code)
    transactions = request.transactions

    def joined(added: list[PartitionsAdded]) -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResponse.AddPartitionsToTxnResult(
                    transactional_id=transaction.transactional_id, topic_results=_by_topic(each)
                )
                for transaction, each in zip(transactions, added, strict=True)
            ]
        )

    return gathered([_of_one(ctx, transaction) for transaction in transactions], joined)


def _of_one(
    ctx: Context, transaction: AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
) -> PartitionsAdded | Awaitable[PartitionsAdded]:
    partitions = _partitions(transaction.topics)
    refused = all_or_nothing({each: _known(ctx, each) for each in partitions})
    if refused is not None:
        return PartitionsAdded(refused)
    return _asked(
        ctx,
        AddPartitions(
            transaction.transactional_id,
            transaction.producer_id,
            transaction.producer_epoch,
            partitions,
            transaction.verify_only,
            client_version_of(ctx.api_version),
        ),
    )


def _asked(ctx: Context, wanted: AddPartitions) -> PartitionsAdded | Awaitable[PartitionsAdded]:
    added: PartitionsAdded | Awaitable[PartitionsAdded] = ctx.node.transactions.ask(
        wanted.transactional_id, wanted, ctx, lambda error: PartitionsAdded.all_with(error, wanted.partitions)
    )
    return added


def _known(ctx: Context, partition: Partition) -> ErrorCode:
    topic = ctx.node.metadata.image.topic(partition[0])
    return UNKNOWN_TOPIC_OR_PARTITION if topic is None or topic.get(partition[1]) is None else NONE


def _partitions(topics: Iterable[Topic]) -> tuple[Partition, ...]:
    """Each once, however often it is named."""
    return tuple(dict.fromkeys((topic.name, index) for topic in topics for index in topic.partitions))


def _told_client(ctx: Context, added: PartitionsAdded) -> AddPartitionsToTxnResponse:
    version = ctx.api_version
    told = {each: told_by_add_partitions(error, version) for each, error in added.errors.items()}
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_by_topic(PartitionsAdded(told)))


def _by_topic(added: PartitionsAdded) -> list[TopicResult]:
    results: dict[str, TopicResult] = {}
    for (topic, index), error in added.errors.items():
        result = results.get(topic)
        if result is None:
            result = results[topic] = TopicResult(name=topic)
        result.results_by_partition.append(PartitionResult(partition_index=index, partition_error_code=error.code))
    return list(results.values())
