from __future__ import annotations

from penstock.model.errors import (
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    LEADER_NOT_AVAILABLE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from penstock.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest as Request
from penstock.server.doors import Operation, ResourceType
from penstock.server.handlers import describe_topic_partitions
from penstock.server.reception.authorize import Asked, Recording
from tests.walks.control_plane import ControlPlane, walk


def of(*names: str, limit: int = 2_000, cursor: tuple[str, int] | None = None) -> Request:
    return Request(
        topics=[Request.TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Request.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


async def pages(plane: ControlPlane, limit: int, *names: str) -> list[list[tuple[str, list[int]]]]:
    """All pages, each as (topic, partitions)."""
    found = []
    cursor: tuple[str, int] | None = None
    while True:
        reply = await plane.ask(describe_topic_partitions, of(*names, limit=limit, cursor=cursor), 0)
        found.append([(each.name, [part.partition_index for part in each.partitions]) for each in reply.topics])
        if reply.next_cursor is None:
            return found
        cursor = reply.next_cursor.topic_name, reply.next_cursor.partition_index


def test_topics_come_by_name_with_lists_that_are_never_null() -> None:
    async def steps(plane: ControlPlane) -> None:
        topic_id = await plane.create("orders", 2)
        reply = await plane.ask(describe_topic_partitions, of("zz", "orders", "a b"), 0)
        assert [(each.name, each.error_code, each.topic_id) for each in reply.topics] == [
            ("a b", INVALID_TOPIC_EXCEPTION.code, bytes(16)),
            ("orders", 0, topic_id),
            ("zz", UNKNOWN_TOPIC_OR_PARTITION.code, bytes(16)),
        ]
        assert [each.topic_authorized_operations for each in reply.topics] == [3576] * 3
        for partition in reply.topics[1].partitions:
            assert (partition.leader_id, partition.leader_epoch, partition.replica_nodes) == (1, 0, [1])
            assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])
        assert reply.next_cursor is None

    walk(steps)


def test_no_topics_mean_all_and_pages_tile_them() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("a", 3)
        await plane.create("b", 1)
        await plane.create("c", 2)
        assert await pages(plane, 2) == [[("a", [0, 1])], [("a", [2]), ("b", [0])], [("c", [0, 1])]]
        assert await pages(plane, 3) == [[("a", [0, 1, 2])], [("b", [0]), ("c", [0, 1])]]
        assert await pages(plane, 3, "a", "c") == [[("a", [0, 1, 2])], [("c", [0, 1])]]
        assert await pages(plane, 6) == [[("a", [0, 1, 2]), ("b", [0]), ("c", [0, 1])]]

    walk(steps)


def test_a_page_holds_at_least_one_partition_and_at_most_what_the_broker_allows() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("a", 3)
        assert await pages(plane, 0) == [[("a", [0])], [("a", [1])], [("a", [2])]]
        assert await pages(plane, 9_999) == [[("a", [0, 1])], [("a", [2])]]

    walk(steps, properties={"max.request.partition.size.limit": "2"})


def test_a_cursor_must_point_into_what_was_asked_for() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("a", 3)
        for cursor in (("b", 0), ("a", -1)):
            reply = await plane.ask(describe_topic_partitions, of("a", cursor=cursor), 0)
            assert [each.error_code for each in reply.topics] == [INVALID_REQUEST.code]
        gone = await plane.ask(describe_topic_partitions, of(cursor=("a-deleted-one", 1)), 0)
        assert gone.topics == []

    walk(steps)


def test_a_partition_without_a_leader_shows_who_may_lead_it() -> None:
    async def steps(plane: ControlPlane) -> None:
        await plane.create("a")
        plane.clock.advance(9_001)
        plane.controller._tick()
        await plane.metadata.published(plane.quorum.end)
        (partition,) = (await plane.ask(describe_topic_partitions, of("a"), 0)).topics[0].partitions
        assert (partition.error_code, partition.leader_id) == (LEADER_NOT_AVAILABLE.code, -1)
        assert (partition.isr_nodes, partition.eligible_leader_replicas, partition.last_known_elr) == ([], [1], [1])
        await plane.lifecycle._beat()

    walk(steps)


def test_topics_that_may_not_be_described_are_refused_by_name_and_left_out_of_all() -> None:
    no = Recording(Asked(Operation.DESCRIBE, ResourceType.TOPIC, "secret"))

    async def steps(plane: ControlPlane) -> None:
        await plane.create("secret")
        await plane.create("zebra")
        reply = await plane.ask(describe_topic_partitions, of("secret", "zebra"), 0)
        assert [(each.name, each.error_code) for each in reply.topics] == [
            ("zebra", 0),
            ("secret", TOPIC_AUTHORIZATION_FAILED.code),
        ]
        assert [each.name for each in (await plane.ask(describe_topic_partitions, of(), 0)).topics] == ["zebra"]

    walk(steps, authorizer=no)
