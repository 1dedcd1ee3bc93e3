from __future__ import annotations

import pytest

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION
from penstock.protocol.messages.describe_quorum import DescribeQuorumRequest
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers import describe_quorum
from penstock.server.reception.authorize import Asked, Recording
from tests.walks.control_plane import ControlPlane, walk


def of(topic: str = "__cluster_metadata", partition: int = 0) -> DescribeQuorumRequest:
    asked = [DescribeQuorumRequest.PartitionData(partition_index=partition)]
    return DescribeQuorumRequest(topics=[DescribeQuorumRequest.TopicData(topic_name=topic, partitions=asked)])


@pytest.mark.parametrize("version", range(3))
def test_every_version_shows_the_leader_among_the_voters_without_lag(version: int) -> None:
    async def steps(plane: ControlPlane) -> None:
        reply = await plane.ask(describe_quorum, of(), version)
        assert reply.error_code == 0
        (partition,) = reply.topics[0].partitions
        assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 1)
        assert partition.high_watermark == plane.metadata.published_end
        (voter,) = partition.current_voters
        assert (voter.replica_id, voter.log_end_offset) == (1, plane.quorum.end)
        assert partition.observers == []
        if version >= 1:
            now = plane.clock.now_ms()
            assert (voter.last_fetch_timestamp, voter.last_caught_up_timestamp) == (now, now)
        if version >= 2:
            assert voter.replica_directory_id == plane.directory_ids["/data"]
            (node,) = reply.nodes
            listeners = [(each.name, each.host, each.port) for each in node.listeners]
            assert (node.node_id, listeners) == (1, [("CONTROLLER", "127.0.0.1", 9093)])

    walk(steps)


def test_only_the_metadata_partition_has_a_quorum() -> None:
    async def steps(plane: ControlPlane) -> None:
        for request in (of("orders"), of(partition=1)):
            reply = await plane.ask(describe_quorum, request, 2)
            assert reply.error_code == 0
            assert reply.topics[0].partitions[0].error_code == UNKNOWN_TOPIC_OR_PARTITION.code
        assert (await plane.ask(describe_quorum, DescribeQuorumRequest(), 2)).topics == []

    walk(steps)


def test_it_takes_the_right_to_describe_the_cluster() -> None:
    async def steps(plane: ControlPlane) -> None:
        assert (await plane.ask(describe_quorum, of(), 2)).error_code == CLUSTER_AUTHORIZATION_FAILED.code

    walk(steps, authorizer=Recording(Asked(Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster")))
