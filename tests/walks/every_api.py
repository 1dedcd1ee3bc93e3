"""One request of every API that a node serves, each of which would do or tell something."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

from penstock.model.ids import METADATA_TOPIC, ZERO_UUID, Uuid
from penstock.protocol.registry import APIS, Api
from penstock.server.reception.dispatch import SERVED
from tests.walks.data_plane import batch_of

TOPIC_RESOURCE = 2
SET = 0
VOTER = Uuid(b"a voter nobody's")


TOKENS = frozenset(f"{what}DelegationToken" for what in ("Create", "Renew", "Expire", "Describe"))
"""What is taken only from who proved a name."""


LOGINS = frozenset({"SaslHandshake", "SaslAuthenticate"})
"""What belongs to a login, and is out of place once there is none to make."""


def served() -> list[Api]:
    return [api for api in APIS.values() if api.name in SERVED]


class Target(NamedTuple):
    """What requests are about: a topic that exists and the name of one that does not."""

    topic: str
    topic_id: Uuid
    new_topic: str
    version: int = 0


def request_of(api: Api, version: int, target: Target) -> Any:
    """A request that names both the topic and its id; each version carries what it knows."""
    return MAKERS[api.name](api.request(), target._replace(version=version))


def codes(reply: Any) -> set[int]:
    """Every error code in a reply, however deep."""
    found: set[int] = set()
    for field in dataclasses.fields(reply):
        value = getattr(reply, field.name)
        if field.name in ("error_code", "partition_error_code"):
            found.add(value)
        for inner in value if isinstance(value, list) else [value]:
            if dataclasses.is_dataclass(inner):
                found |= codes(inner)
    return found


def _metadata(made: Any, target: Target) -> Any:
    return made(topics=[made.MetadataRequestTopic(name=target.topic)])


def _produce(made: Any, target: Target) -> Any:
    data = made.PartitionProduceData(index=0, records=batch_of(b"x"))
    return made(
        acks=1,
        timeout_ms=1_000,
        topic_data=[made.TopicProduceData(name=target.topic, topic_id=target.topic_id, partition_data=[data])],
    )


def _fetch(made: Any, target: Target) -> Any:
    wanted = made.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 16)
    return made(topics=[made.FetchTopic(topic=target.topic, topic_id=target.topic_id, partitions=[wanted])])


def _list_offsets(made: Any, target: Target) -> Any:
    wanted = made.ListOffsetsPartition(partition_index=0, timestamp=-1)
    return made(replica_id=-1, topics=[made.ListOffsetsTopic(name=target.topic, partitions=[wanted])])


def _offset_for_leader_epoch(made: Any, target: Target) -> Any:
    wanted = made.OffsetForLeaderPartition(partition=0, leader_epoch=0, current_leader_epoch=-1)
    return made(topics=[made.OffsetForLeaderTopic(topic=target.topic, partitions=[wanted])])


def _find_coordinator(made: Any, target: Target) -> Any:
    return made(key="group") if target.version < 4 else made(coordinator_keys=["group"])


def _create_topics(made: Any, target: Target) -> Any:
    return made(
        topics=[made.CreatableTopic(name=target.new_topic, num_partitions=1, replication_factor=1)], timeout_ms=1_000
    )


def _delete_topics(made: Any, target: Target) -> Any:
    if target.version < 6:
        return made(topic_names=[target.topic], timeout_ms=1_000)
    return made(topics=[made.DeleteTopicState(name=target.topic, topic_id=ZERO_UUID)], timeout_ms=1_000)


def _create_partitions(made: Any, target: Target) -> Any:
    return made(topics=[made.CreatePartitionsTopic(name=target.topic, count=3, assignments=None)], timeout_ms=1_000)


def _delete_records(made: Any, target: Target) -> Any:
    wanted = made.DeleteRecordsPartition(partition_index=0, offset=-1)
    return made(topics=[made.DeleteRecordsTopic(name=target.topic, partitions=[wanted])], timeout_ms=1_000)


def _describe_configs(made: Any, target: Target) -> Any:
    return made(
        resources=[
            made.DescribeConfigsResource(
                resource_type=TOPIC_RESOURCE, resource_name=target.topic, configuration_keys=None
            )
        ]
    )


def _alter_configs(made: Any, target: Target) -> Any:
    change = made.AlterableConfig(name="retention.ms", value="1000")
    wanted = made.AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=target.topic, configs=[change])
    return made(resources=[wanted])


def _incremental_alter_configs(made: Any, target: Target) -> Any:
    change = made.AlterableConfig(name="retention.ms", config_operation=SET, value="1000")
    wanted = made.AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=target.topic, configs=[change])
    return made(resources=[wanted])


def _describe_topic_partitions(made: Any, target: Target) -> Any:
    return made(topics=[made.TopicRequest(name=target.topic)])


def _describe_log_dirs(made: Any, target: Target) -> Any:
    return made(topics=None)


def _alter_replica_log_dirs(made: Any, target: Target) -> Any:
    moved = made.AlterReplicaLogDirTopic(name=target.topic, partitions=[0])
    return made(dirs=[made.AlterReplicaLogDir(path="/more", topics=[moved])])


def _init_producer_id(made: Any, target: Target) -> Any:
    return made(transactional_id=None, producer_id=-1, producer_epoch=-1)


def _describe_producers(made: Any, target: Target) -> Any:
    return made(topics=[made.TopicRequest(name=target.topic, partition_indexes=[0])])


def _add_partitions_to_txn(made: Any, target: Target) -> Any:
    topic = made.AddPartitionsToTxnTopic(name=target.topic, partitions=[0])
    if target.version >= 4:
        one = made.AddPartitionsToTxnTransaction(transactional_id="tx", producer_id=7, topics=[topic])
        return made(transactions=[one])
    return made(v3_and_below_transactional_id="tx", v3_and_below_producer_id=7, v3_and_below_topics=[topic])


def _write_txn_markers(made: Any, target: Target) -> Any:
    topic = made.WritableTxnMarkerTopic(name=target.topic, partition_indexes=[0])
    return made(markers=[made.WritableTxnMarker(producer_id=7, transaction_result=True, topics=[topic])])


def _txn_offset_commit(made: Any, target: Target) -> Any:
    done = made.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    topic = made.TxnOffsetCommitRequestTopic(name=target.topic, partitions=[done])
    return made(transactional_id="tx", group_id="group", producer_id=7, topics=[topic])


def _describe_quorum(made: Any, target: Target) -> Any:
    wanted = made.PartitionData(partition_index=0)
    return made(topics=[made.TopicData(topic_name=METADATA_TOPIC, partitions=[wanted])])


def _elect_leaders(made: Any, target: Target) -> Any:
    return made(topic_partitions=[made.TopicPartitions(topic=target.topic, partitions=[0])], timeout_ms=1_000)


def _alter_partition_reassignments(made: Any, target: Target) -> Any:
    moved = made.ReassignablePartition(partition_index=0, replicas=[1])
    return made(topics=[made.ReassignableTopic(name=target.topic, partitions=[moved])], timeout_ms=1_000)


def _list_partition_reassignments(made: Any, target: Target) -> Any:
    return made(topics=None, timeout_ms=1_000)


def _unregister_broker(made: Any, target: Target) -> Any:
    return made(broker_id=7)


def _add_raft_voter(made: Any, target: Target) -> Any:
    listener = made.Listener(name="CONTROLLER", host="127.0.0.1", port=9)
    return made(cluster_id=None, timeout_ms=1_000, voter_id=7, voter_directory_id=VOTER, listeners=[listener])


def _remove_raft_voter(made: Any, target: Target) -> Any:
    return made(cluster_id=None, voter_id=7, voter_directory_id=VOTER)


def _update_features(made: Any, target: Target) -> Any:
    lowered = {"allow_downgrade": True} if target.version < 1 else {"upgrade_type": 2}
    return made(feature_updates=[made.FeatureUpdateKey(feature="group.version", max_version_level=0, **lowered)])


def _join_group(made: Any, target: Target) -> Any:
    protocol = made.JoinGroupRequestProtocol(name="range", metadata=b"")
    return made(
        group_id="group",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=[protocol],
    )


def _leave_group(made: Any, target: Target) -> Any:
    if target.version < 3:
        return made(group_id="group", member_id="m")
    return made(group_id="group", members=[made.MemberIdentity(member_id="m")])


def _offset_commit(made: Any, target: Target) -> Any:
    wanted = made.OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    topic = made.OffsetCommitRequestTopic(name=target.topic, topic_id=target.topic_id, partitions=[wanted])
    return made(group_id="group", topics=[topic])


def _offset_fetch(made: Any, target: Target) -> Any:
    if target.version < 8:
        return made(group_id="group", topics=[made.OffsetFetchRequestTopic(name=target.topic, partition_indexes=[0])])
    topic = made.OffsetFetchRequestTopics(name=target.topic, topic_id=target.topic_id, partition_indexes=[0])
    return made(groups=[made.OffsetFetchRequestGroup(group_id="group", topics=[topic])])


def _offset_delete(made: Any, target: Target) -> Any:
    wanted = made.OffsetDeleteRequestPartition(partition_index=0)
    topic = made.OffsetDeleteRequestTopic(name=target.topic, partitions=[wanted])
    return made(group_id="group", topics=[topic])


def _consumer_group_heartbeat(made: Any, target: Target) -> Any:
    return made(
        group_id="group",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=[target.topic],
        topic_partitions=[],
    )


RULE = {"operation": 3, "permission_type": 3}
"""Everybody may read: what access rules are asked for, kept and removed with."""


def _describe_acls(made: Any, target: Target) -> Any:
    return made(resource_type_filter=TOPIC_RESOURCE, resource_name_filter=target.topic, **RULE)


def _create_acls(made: Any, target: Target) -> Any:
    rule = made.AclCreation(
        resource_type=TOPIC_RESOURCE, resource_name=target.topic, principal="User:*", host="*", **RULE
    )
    return made(creations=[rule])


def _delete_acls(made: Any, target: Target) -> Any:
    return made(filters=[made.DeleteAclsFilter(resource_type_filter=TOPIC_RESOURCE, **RULE)])


def _alter_client_quotas(made: Any, target: Target) -> Any:
    entity = made.EntityData(entity_type="user", entity_name="alice")
    limit = made.OpData(key="producer_byte_rate", value=1024.0)
    return made(entries=[made.EntryData(entity=[entity], ops=[limit])])


def _alter_user_scram_credentials(made: Any, target: Target) -> Any:
    added = made.ScramCredentialUpsertion(
        name="alice", mechanism=2, iterations=4096, salt=b"salt", salted_password=b"salted"
    )
    return made(upsertions=[added])


def _nothing(made: Any, target: Target) -> Any:
    return made()


MAKERS: dict[str, Callable[[Any, Target], Any]] = {
    "ApiVersions": lambda made, _: made(client_software_name="walks", client_software_version="1"),
    "SaslHandshake": lambda made, _: made(mechanism="PLAIN"),
    "SaslAuthenticate": lambda made, _: made(auth_bytes=b"\0user\0password"),
    "Metadata": _metadata,
    "Produce": _produce,
    "Fetch": _fetch,
    "ListOffsets": _list_offsets,
    "OffsetForLeaderEpoch": _offset_for_leader_epoch,
    "FindCoordinator": _find_coordinator,
    "JoinGroup": _join_group,
    "SyncGroup": lambda made, _: made(group_id="group", generation_id=1, member_id="m"),
    "Heartbeat": lambda made, _: made(group_id="group", generation_id=1, member_id="m"),
    "LeaveGroup": _leave_group,
    "ConsumerGroupHeartbeat": _consumer_group_heartbeat,
    "OffsetCommit": _offset_commit,
    "OffsetFetch": _offset_fetch,
    "OffsetDelete": _offset_delete,
    "ListGroups": _nothing,
    "DescribeGroups": lambda made, _: made(groups=["group"]),
    "ConsumerGroupDescribe": lambda made, _: made(group_ids=["group"]),
    "DeleteGroups": lambda made, _: made(groups_names=["group"]),
    "CreateTopics": _create_topics,
    "DeleteTopics": _delete_topics,
    "CreatePartitions": _create_partitions,
    "DeleteRecords": _delete_records,
    "DescribeConfigs": _describe_configs,
    "AlterConfigs": _alter_configs,
    "IncrementalAlterConfigs": _incremental_alter_configs,
    "ListConfigResources": _nothing,
    "DescribeCluster": _nothing,
    "DescribeTopicPartitions": _describe_topic_partitions,
    "DescribeLogDirs": _describe_log_dirs,
    "AlterReplicaLogDirs": _alter_replica_log_dirs,
    "InitProducerId": _init_producer_id,
    "AddPartitionsToTxn": _add_partitions_to_txn,
    "AddOffsetsToTxn": lambda made, _: made(transactional_id="tx", producer_id=7, group_id="group"),
    "EndTxn": lambda made, _: made(transactional_id="tx", producer_id=7, committed=True),
    "DescribeTransactions": lambda made, _: made(transactional_ids=["tx"]),
    "ListTransactions": _nothing,
    "DescribeProducers": _describe_producers,
    "WriteTxnMarkers": _write_txn_markers,
    "TxnOffsetCommit": _txn_offset_commit,
    "DescribeQuorum": _describe_quorum,
    "UpdateFeatures": _update_features,
    "ElectLeaders": _elect_leaders,
    "AlterPartitionReassignments": _alter_partition_reassignments,
    "ListPartitionReassignments": _list_partition_reassignments,
    "UnregisterBroker": _unregister_broker,
    "AddRaftVoter": _add_raft_voter,
    "RemoveRaftVoter": _remove_raft_voter,
    "DescribeAcls": _describe_acls,
    "CreateAcls": _create_acls,
    "DeleteAcls": _delete_acls,
    "DescribeClientQuotas": _nothing,
    "AlterClientQuotas": _alter_client_quotas,
    "DescribeUserScramCredentials": _nothing,
    "AlterUserScramCredentials": _alter_user_scram_credentials,
    "CreateDelegationToken": lambda made, _: made(max_lifetime_ms=-1),
    "RenewDelegationToken": lambda made, _: made(hmac=b"a token's", renew_period_ms=-1),
    "ExpireDelegationToken": lambda made, _: made(hmac=b"a token's", expiry_time_period_ms=-1),
    "DescribeDelegationToken": lambda made, _: made(owners=None),
}
