"""What a very large cluster answers: 200 brokers, 10,000 topics with 40,000 partitions, 2,000 groups, one of which
reads half of all topics.

Every log grows by a record a second and partition, and every group follows its topic some records behind. Pure: time
comes with the question.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from penstock.model.ids import Uuid
from penstock.protocol.messages.api_versions import ApiVersionsResponse
from penstock.protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from penstock.protocol.messages.describe_cluster import DescribeClusterResponse
from penstock.protocol.messages.describe_configs import DescribeConfigsResponse
from penstock.protocol.messages.describe_log_dirs import DescribeLogDirsResponse
from penstock.protocol.messages.describe_quorum import DescribeQuorumResponse
from penstock.protocol.messages.find_coordinator import FindCoordinatorResponse
from penstock.protocol.messages.list_groups import ListGroupsResponse
from penstock.protocol.messages.list_offsets import ListOffsetsResponse
from penstock.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsResponse
from penstock.protocol.messages.metadata import MetadataResponse
from penstock.protocol.messages.offset_fetch import OffsetFetchResponse
from penstock.protocol.registry import APIS

BROKERS: Final = 200
TOPICS: Final = 10_000
PARTITIONS: Final = 4
GROUPS: Final = 2_000
READ_BY_WIDE: Final = 5_000
"""Topics that the first group reads; each other one reads one."""
REPLICAS: Final = 3
BEHIND: Final = 25
"""Records that a group has not read, in each partition."""
EARLIEST: Final = -2
SERVED: Final = (3, 9, 10, 16, 18, 2, 32, 35, 46, 55, 60, 69)


def topic_name(number: int) -> str:
    return f"shop.{number % 40:02d}.topic-{number:05d}"


def group_name(number: int) -> str:
    return f"readers-{number:04d}"


def topics_of(group: str) -> range:
    """The topics that a group reads, by number."""
    number = int(group.rpartition("-")[2])
    return range(READ_BY_WIDE) if number == 0 else range(number, number + 1)


def _id(number: int) -> Uuid:
    return Uuid((number + 1).to_bytes(16, "big"))


def host_of(node: int) -> str:
    """Each broker has an address of its own on the loopback network, so that each has connections of its own."""
    return f"127.0.{1 + node // 250}.{1 + node % 250}"


def replicas_of(topic: int, partition: int) -> list[int]:
    first = (topic * PARTITIONS + partition) % BROKERS
    return [(first + step) % BROKERS for step in range(REPLICAS)]


def coordinator_of(group: str) -> int:
    return int(group.rpartition("-")[2]) % BROKERS


class LargeWorld:
    """Answers of any of its brokers. Names that it does not know end the test."""

    def __init__(self, port: int, began_s: float) -> None:
        self._port, self._began_s = port, began_s
        self._numbers = {topic_name(number): number for number in range(TOPICS)}
        self._answers: dict[int, Callable[[int, Any, float], Any]] = {
            2: self._list_offsets,
            3: self._metadata,
            9: self._offset_fetch,
            10: self._find_coordinator,
            16: self._list_groups,
            18: self._api_versions,
            32: self._configs,
            35: self._log_dirs,
            46: self._reassignments,
            55: self._quorum,
            60: self._cluster,
            69: self._groups,
        }

    def answer(self, node: int, key: int, request: Any, now_s: float) -> Any:
        return self._answers[key](node, request, now_s)

    def end(self, topic: int, partition: int, now_s: float) -> int:
        """Numbers of records that no float holds exactly, so that whoever rounds is found out."""
        return (1 << 60) + topic * 10 + partition + int(now_s - self._began_s)

    def _api_versions(self, _node: int, _request: Any, _now_s: float) -> Any:
        made = ApiVersionsResponse
        newest = {9: 9}
        return made(
            api_keys=[
                made.ApiVersion(api_key=key, min_version=APIS[key].min, max_version=newest.get(key, APIS[key].max))
                for key in SERVED
            ]
        )

    def _cluster(self, _node: int, _request: Any, _now_s: float) -> Any:
        made = DescribeClusterResponse
        return made(
            error_code=0,
            cluster_id="large",
            controller_id=0,
            brokers=[
                made.DescribeClusterBroker(
                    broker_id=node, host=host_of(node), port=self._port, rack=f"r{node % 3}", is_fenced=False
                )
                for node in range(BROKERS)
            ],
        )

    def _quorum(self, _node: int, _request: Any, now_s: float) -> Any:
        made, now_ms = DescribeQuorumResponse, int(now_s * 1_000)
        voters = [
            made.ReplicaState(
                replica_id=node,
                replica_directory_id=_id(node),
                log_end_offset=10_000,
                last_fetch_timestamp=now_ms,
                last_caught_up_timestamp=now_ms,
            )
            for node in range(3)
        ]
        partition = made.PartitionData(
            partition_index=0,
            error_code=0,
            error_message=None,
            leader_id=0,
            leader_epoch=7,
            high_watermark=10_000,
            current_voters=voters,
            observers=[],
        )
        return made(
            error_code=0,
            error_message=None,
            topics=[made.TopicData(topic_name="__cluster_metadata", partitions=[partition])],
            nodes=[],
        )

    def _metadata(self, _node: int, request: Any, _now_s: float) -> Any:
        made = MetadataResponse
        wanted = range(TOPICS) if request.topics is None else [self._numbers[each.name] for each in request.topics]
        return made(
            brokers=[
                made.MetadataResponseBroker(node_id=node, host=host_of(node), port=self._port, rack=f"r{node % 3}")
                for node in range(BROKERS)
            ],
            cluster_id="large",
            controller_id=0,
            topics=[self._topic(number) for number in wanted],
            error_code=0,
        )

    def _topic(self, number: int) -> Any:
        made = MetadataResponse
        return made.MetadataResponseTopic(
            error_code=0,
            name=topic_name(number),
            topic_id=_id(number),
            is_internal=False,
            partitions=[
                made.MetadataResponsePartition(
                    error_code=0,
                    partition_index=partition,
                    leader_id=(nodes := replicas_of(number, partition))[0],
                    leader_epoch=3,
                    replica_nodes=nodes,
                    isr_nodes=nodes,
                    offline_replicas=[],
                )
                for partition in range(PARTITIONS)
            ],
        )

    def _list_offsets(self, _node: int, request: Any, now_s: float) -> Any:
        made = ListOffsetsResponse
        return made(
            topics=[
                made.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        made.ListOffsetsPartitionResponse(
                            partition_index=each.partition_index,
                            error_code=0,
                            offset=0
                            if each.timestamp == EARLIEST
                            else self.end(self._numbers[topic.name], each.partition_index, now_s),
                            leader_epoch=3,
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _find_coordinator(self, _node: int, request: Any, _now_s: float) -> Any:
        made = FindCoordinatorResponse
        return made(
            coordinators=[
                made.Coordinator(
                    key=key,
                    node_id=(node := coordinator_of(key)),
                    host=host_of(node),
                    port=self._port,
                    error_code=0,
                    error_message=None,
                )
                for key in request.coordinator_keys
            ]
        )

    def _list_groups(self, node: int, _request: Any, _now_s: float) -> Any:
        made = ListGroupsResponse
        return made(
            error_code=0,
            groups=[
                made.ListedGroup(
                    group_id=group_name(number), protocol_type="consumer", group_state="Stable", group_type="consumer"
                )
                for number in range(node, GROUPS, BROKERS)
            ],
        )

    def _groups(self, _node: int, request: Any, _now_s: float) -> Any:
        made = ConsumerGroupDescribeResponse
        return made(groups=[self._group(name) for name in request.group_ids])

    def _group(self, name: str) -> Any:
        made, number, read = ConsumerGroupDescribeResponse, int(name.rpartition("-")[2]), topics_of(name)
        share = made.Assignment(
            topic_partitions=[
                made.TopicPartitions(
                    topic_id=_id(each),
                    topic_name=topic_name(each),
                    partitions=list(range(PARTITIONS)),
                )
                for each in read
            ]
        )
        member = made.Member(
            member_id=f"m-{number}",
            member_epoch=4,
            client_id="app",
            client_host="/10.0.0.1",
            subscribed_topic_names=[topic_name(each) for each in read],
            assignment=share,
            target_assignment=share,
        )
        return made.DescribedGroup(
            error_code=0,
            group_id=name,
            group_state="Stable",
            group_epoch=4,
            assignment_epoch=4,
            assignor_name="uniform",
            members=[member],
        )

    def _offset_fetch(self, _node: int, request: Any, now_s: float) -> Any:
        made = OffsetFetchResponse
        return made(groups=[self._positions(group.group_id, now_s) for group in request.groups])

    def _positions(self, name: str, now_s: float) -> Any:
        made = OffsetFetchResponse
        topics = [
            made.OffsetFetchResponseTopics(
                name=topic_name(number),
                topic_id=_id(number),
                partitions=[
                    made.OffsetFetchResponsePartitions(
                        partition_index=partition,
                        committed_offset=self.end(number, partition, now_s) - BEHIND,
                        metadata="",
                        error_code=0,
                    )
                    for partition in range(PARTITIONS)
                ],
            )
            for number in topics_of(name)
        ]
        return made.OffsetFetchResponseGroup(group_id=name, topics=topics, error_code=0)

    def _log_dirs(self, node: int, _request: Any, _now_s: float) -> Any:
        made = DescribeLogDirsResponse
        mine: dict[int, list[int]] = {}
        for first in range(node - REPLICAS + 1, node + 1):
            for place in range(first % BROKERS, TOPICS * PARTITIONS, BROKERS):
                mine.setdefault(place // PARTITIONS, []).append(place % PARTITIONS)
        topics = [
            made.DescribeLogDirsTopic(
                name=topic_name(number),
                partitions=[
                    made.DescribeLogDirsPartition(
                        partition_index=each, partition_size=1 << 20, offset_lag=0, is_future_key=False
                    )
                    for each in partitions
                ],
            )
            for number, partitions in mine.items()
        ]
        result = made.DescribeLogDirsResult(
            error_code=0, log_dir="/data", topics=topics, total_bytes=1 << 40, usable_bytes=1 << 39
        )
        return made(error_code=0, results=[result])

    def _configs(self, _node: int, request: Any, _now_s: float) -> Any:
        made = DescribeConfigsResponse
        known = {"retention.ms": "604800000", "cleanup.policy": "delete", "min.insync.replicas": "2"}
        return made(
            results=[
                made.DescribeConfigsResult(
                    error_code=0,
                    error_message=None,
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    configs=[
                        made.DescribeConfigsResourceResult(
                            name=name, value=value, read_only=False, config_source=5, is_sensitive=False, synonyms=[]
                        )
                        for name, value in known.items()
                    ],
                )
                for each in request.resources
            ]
        )

    def _reassignments(self, _node: int, _request: Any, _now_s: float) -> Any:
        return ListPartitionReassignmentsResponse(error_code=0, error_message=None, topics=[])
