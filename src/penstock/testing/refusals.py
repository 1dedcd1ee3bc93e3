"""The reply of each API that says nothing but an error: what `fail` of an embedded broker answers with.

An API whose reply has one error for the whole request needs no entry. The others repeat what the request named, each
with the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from penstock.protocol.registry import Api

_BATCHED_COORDINATORS = 4
_BATCHED_OFFSETS = 8
_TOPICS_BY_STATE = 6
_TRANSACTIONS_OF_BROKERS = 4


def refusal_of(api: Api, request: Any, version: int, code: int) -> Any:
    """The response of `api` that refuses all of `request` with `code`."""
    made = api.response()
    maker = _MAKERS.get(api.name)
    if maker is None:
        return made(error_code=code)
    return maker(made, request, version, code)


def _produce(made: Any, request: Any, _version: int, code: int) -> Any:
    def pieces(asked: Any) -> list[Any]:
        return [
            made.PartitionProduceResponse(index=each.index, error_code=code, base_offset=-1)
            for each in asked.partition_data
        ]

    return made(
        responses=[
            made.TopicProduceResponse(name=asked.name, topic_id=asked.topic_id, partition_responses=pieces(asked))
            for asked in request.topic_data
        ]
    )


def _fetch(made: Any, request: Any, version: int, code: int) -> Any:
    if version >= 7 and not request.topics:
        return made(error_code=code)  # an incremental fetch that names no partition
    return made(
        responses=[
            made.FetchableTopicResponse(
                topic=asked.topic,
                topic_id=asked.topic_id,
                partitions=[
                    made.PartitionData(partition_index=each.partition, error_code=code, high_watermark=-1, records=b"")
                    for each in asked.partitions
                ],
            )
            for asked in request.topics
        ]
    )


def _list_offsets(made: Any, request: Any, _version: int, code: int) -> Any:
    def pieces(asked: Any) -> list[Any]:
        return [
            made.ListOffsetsPartitionResponse(partition_index=each.partition_index, error_code=code)
            for each in asked.partitions
        ]

    return made(
        topics=[made.ListOffsetsTopicResponse(name=asked.name, partitions=pieces(asked)) for asked in request.topics]
    )


def _metadata(made: Any, request: Any, version: int, code: int) -> Any:
    topics = [
        made.MetadataResponseTopic(error_code=code, name=asked.name, topic_id=asked.topic_id)
        for asked in request.topics or ()
    ]
    return made(topics=topics, error_code=code if version >= 13 and not topics else 0)


def _offset_for_leader_epoch(made: Any, request: Any, _version: int, code: int) -> Any:
    return made(
        topics=[
            made.OffsetForLeaderTopicResult(
                topic=asked.topic,
                partitions=[
                    made.EpochEndOffset(error_code=code, partition=each.partition) for each in asked.partitions
                ],
            )
            for asked in request.topics
        ]
    )


def _find_coordinator(made: Any, request: Any, version: int, code: int) -> Any:
    if version < _BATCHED_COORDINATORS:
        return made(error_code=code, node_id=-1, host="", port=-1)
    return made(
        coordinators=[
            made.Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code) for key in request.coordinator_keys
        ]
    )


def _create_topics(made: Any, request: Any, _version: int, code: int) -> Any:
    return made(topics=[made.CreatableTopicResult(name=asked.name, error_code=code) for asked in request.topics])


def _delete_topics(made: Any, request: Any, version: int, code: int) -> Any:
    if version >= _TOPICS_BY_STATE:
        asked = [(each.name, each.topic_id) for each in request.topics]
        return made(
            responses=[made.DeletableTopicResult(name=name, topic_id=id, error_code=code) for name, id in asked]
        )
    return made(responses=[made.DeletableTopicResult(name=name, error_code=code) for name in request.topic_names])


def _create_partitions(made: Any, request: Any, _version: int, code: int) -> Any:
    return made(
        results=[made.CreatePartitionsTopicResult(name=asked.name, error_code=code) for asked in request.topics]
    )


def _delete_records(made: Any, request: Any, _version: int, code: int) -> Any:
    return made(
        topics=[
            made.DeleteRecordsTopicResult(
                name=asked.name,
                partitions=[
                    made.DeleteRecordsPartitionResult(
                        partition_index=each.partition_index, low_watermark=-1, error_code=code
                    )
                    for each in asked.partitions
                ],
            )
            for asked in request.topics
        ]
    )


def _describe_configs(made: Any, request: Any, _version: int, code: int) -> Any:
    return made(results=_resources(made.DescribeConfigsResult, request.resources, code))


def _alter_configs(made: Any, request: Any, _version: int, code: int) -> Any:
    return made(responses=_resources(made.AlterConfigsResourceResponse, request.resources, code))


def _resources(made: Any, asked: Iterable[Any], code: int) -> list[Any]:
    return [made(error_code=code, resource_type=each.resource_type, resource_name=each.resource_name) for each in asked]


def _describe_topic_partitions(made: Any, request: Any, _version: int, code: int) -> Any:
    topics = [each.name for each in request.topics]
    return made(topics=[made.DescribeTopicPartitionsResponseTopic(error_code=code, name=name) for name in topics])


def _describe_log_dirs(made: Any, _request: Any, version: int, code: int) -> Any:
    if version >= 3:
        return made(error_code=code)
    return made(results=[made.DescribeLogDirsResult(error_code=code, log_dir="")])


def _alter_replica_log_dirs(made: Any, request: Any, _version: int, code: int) -> Any:
    return made(
        results=[
            made.AlterReplicaLogDirTopicResult(
                topic_name=asked.name,
                partitions=[
                    made.AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                    for index in asked.partitions
                ],
            )
            for directory in request.dirs
            for asked in directory.topics
        ]
    )


def _describe_producers(made: Any, request: Any, _version: int, code: int) -> Any:
    def pieces(asked: Any) -> list[Any]:
        return [made.PartitionResponse(partition_index=index, error_code=code) for index in asked.partition_indexes]

    return made(topics=[made.TopicResponse(name=asked.name, partitions=pieces(asked)) for asked in request.topics])


def _add_partitions_to_txn(made: Any, request: Any, version: int, code: int) -> Any:
    if version >= _TRANSACTIONS_OF_BROKERS:
        return made(error_code=code)
    return made(
        results_by_topic_v3_and_below=[
            made.AddPartitionsToTxnTopicResult(
                name=asked.name,
                results_by_partition=[
                    made.AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                    for index in asked.partitions
                ],
            )
            for asked in request.v3_and_below_topics
        ]
    )


def _txn_offset_commit(made: Any, request: Any, _version: int, code: int) -> Any:
    def pieces(asked: Any) -> list[Any]:
        return [
            made.TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in asked.partitions
        ]

    return made(
        topics=[
            made.TxnOffsetCommitResponseTopic(name=asked.name, partitions=pieces(asked)) for asked in request.topics
        ]
    )


def _describe_transactions(made: Any, request: Any, _version: int, code: int) -> Any:
    states = [made.TransactionState(error_code=code, transactional_id=each) for each in request.transactional_ids]
    return made(transaction_states=states)


def _write_txn_markers(made: Any, request: Any, _version: int, code: int) -> Any:
    def pieces(asked: Any) -> list[Any]:
        return [
            made.WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
            for index in asked.partition_indexes
        ]

    return made(
        markers=[
            made.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    made.WritableTxnMarkerTopicResult(name=asked.name, partitions=pieces(asked))
                    for asked in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _offset_commit(made: Any, request: Any, _version: int, code: int) -> Any:
    def pieces(asked: Any) -> list[Any]:
        return [
            made.OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in asked.partitions
        ]

    return made(
        topics=[
            made.OffsetCommitResponseTopic(name=asked.name, topic_id=asked.topic_id, partitions=pieces(asked))
            for asked in request.topics
        ]
    )


def _offset_fetch(made: Any, request: Any, version: int, code: int) -> Any:
    if version >= _BATCHED_OFFSETS:
        groups = [each.group_id for each in request.groups]
        return made(groups=[made.OffsetFetchResponseGroup(group_id=group_id, error_code=code) for group_id in groups])
    if version >= 2:
        return made(error_code=code)

    def pieces(asked: Any) -> list[Any]:
        return [
            made.OffsetFetchResponsePartition(partition_index=index, committed_offset=-1, metadata="", error_code=code)
            for index in asked.partition_indexes
        ]

    return made(
        topics=[made.OffsetFetchResponseTopic(name=asked.name, partitions=pieces(asked)) for asked in request.topics]
    )


def _describe_groups(made: Any, request: Any, _version: int, code: int) -> Any:
    return made(groups=[made.DescribedGroup(error_code=code, group_id=group_id) for group_id in request.groups])


def _consumer_group_describe(made: Any, request: Any, _version: int, code: int) -> Any:
    return made(groups=[made.DescribedGroup(error_code=code, group_id=group_id) for group_id in request.group_ids])


def _delete_groups(made: Any, request: Any, _version: int, code: int) -> Any:
    return made(results=[made.DeletableGroupResult(group_id=id, error_code=code) for id in request.groups_names])


def _elect_leaders(made: Any, request: Any, version: int, code: int) -> Any:
    results = [
        made.ReplicaElectionResult(
            topic=asked.topic,
            partition_result=[
                made.PartitionResult(partition_id=index, error_code=code, error_message=None)
                for index in asked.partitions
            ],
        )
        for asked in request.topic_partitions or ()
    ]
    return made(error_code=code if version else 0, replica_election_results=results)


def _create_acls(made: Any, request: Any, _version: int, code: int) -> Any:
    return made(results=[made.AclCreationResult(error_code=code) for _ in request.creations])


def _delete_acls(made: Any, request: Any, _version: int, code: int) -> Any:
    return made(filter_results=[made.DeleteAclsFilterResult(error_code=code) for _ in request.filters])


def _alter_client_quotas(made: Any, request: Any, _version: int, code: int) -> Any:
    def parts(asked: Any) -> list[Any]:
        return [made.EntityData(entity_type=each.entity_type, entity_name=each.entity_name) for each in asked.entity]

    return made(entries=[made.EntryData(error_code=code, entity=parts(asked)) for asked in request.entries])


def _alter_user_scram_credentials(made: Any, request: Any, _version: int, code: int) -> Any:
    users = dict.fromkeys(each.name for each in (*request.deletions, *request.upsertions))
    return made(results=[made.AlterUserScramCredentialsResult(user=user, error_code=code) for user in users])


_MAKERS: Final[dict[str, Callable[[Any, Any, int, int], Any]]] = {
    "Produce": _produce,
    "Fetch": _fetch,
    "ListOffsets": _list_offsets,
    "Metadata": _metadata,
    "OffsetForLeaderEpoch": _offset_for_leader_epoch,
    "FindCoordinator": _find_coordinator,
    "CreateTopics": _create_topics,
    "DeleteTopics": _delete_topics,
    "CreatePartitions": _create_partitions,
    "DeleteRecords": _delete_records,
    "DescribeConfigs": _describe_configs,
    "AlterConfigs": _alter_configs,
    "IncrementalAlterConfigs": _alter_configs,
    "DescribeTopicPartitions": _describe_topic_partitions,
    "DescribeLogDirs": _describe_log_dirs,
    "AlterReplicaLogDirs": _alter_replica_log_dirs,
    "AddPartitionsToTxn": _add_partitions_to_txn,
    "DescribeTransactions": _describe_transactions,
    "DescribeProducers": _describe_producers,
    "WriteTxnMarkers": _write_txn_markers,
    "TxnOffsetCommit": _txn_offset_commit,
    "OffsetCommit": _offset_commit,
    "OffsetFetch": _offset_fetch,
    "DescribeGroups": _describe_groups,
    "ConsumerGroupDescribe": _consumer_group_describe,
    "DeleteGroups": _delete_groups,
    "ElectLeaders": _elect_leaders,
    "CreateAcls": _create_acls,
    "DeleteAcls": _delete_acls,
    "AlterClientQuotas": _alter_client_quotas,
    "AlterUserScramCredentials": _alter_user_scram_credentials,
}
