from __future__ import annotations

import pytest

from penstock.model.errors import CLUSTER_AUTHORIZATION_FAILED
from penstock.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.server.doors import ListenerInfo, Operation, ResourceType
from penstock.server.handlers import fetch
from penstock.server.reception.authorize import Asked, Recording
from tests.walks.control_plane import ControlPlane, walk

CONTROLLERS = ListenerInfo("CONTROLLER", "127.0.0.1", 9093, for_controllers=True)


@pytest.mark.parametrize("version", range(4, 19))
def test_whoever_is_no_node_is_refused_the_metadata_log_partition_by_partition(version: int) -> None:
    """Up to version 12, as Kafka has it: what comes later looks at the error of the whole."""
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchRequest.FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
    session = 7 if version >= 7 else 0
    request = FetchRequest(max_wait_ms=0, min_bytes=0, session_id=session, topics=[topic])

    async def steps(plane: ControlPlane) -> None:
        reply = await plane.ask(fetch, request, version, listener=CONTROLLERS)
        denied = CLUSTER_AUTHORIZATION_FAILED.code
        assert (reply.error_code, reply.session_id) == (denied if version >= 7 else 0, session)
        assert [_told(each) for each in reply.responses] == ([(METADATA_TOPIC, [(0, denied)])] if version < 13 else [])

    walk(steps, authorizer=Recording(Asked(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster")))


def _told(topic: FetchResponse.FetchableTopicResponse) -> tuple[str, list[tuple[int, int]]]:
    return topic.topic, [(each.partition_index, each.error_code) for each in topic.partitions]
