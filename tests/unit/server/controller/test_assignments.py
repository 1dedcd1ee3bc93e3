from __future__ import annotations

import asyncio

from penstock.model.ids import DIRECTORY_UNASSIGNED, NodeId, PartitionKey, Uuid
from penstock.server.controller.assignments import DirectoryAssignments
from tests.patience import within
from tests.walks.control_plane import ControlPlane, walk

TWO = ("/data", "/more")


async def reported(assignments: DirectoryAssignments) -> None:
    """Waits until nothing is left to report."""
    async with asyncio.timeout(within(20)):
        while assignments._reporting is not None:
            await asyncio.shield(assignments._reporting)


def test_the_controller_learns_where_replicas_are() -> None:
    async def steps(plane: ControlPlane) -> None:
        places: dict[PartitionKey, Uuid] = {}
        assignments = DirectoryAssignments(
            NodeId(1), lambda: plane.lifecycle.broker_epoch, plane.controller.submit_own, places.get
        )
        topic_id = await plane.create("orders", 3)
        first, second = (plane.directory_ids[path] for path in TWO)
        partitions = plane.image.topics[topic_id].partitions
        assert [each.directories for each in partitions] == [(DIRECTORY_UNASSIGNED,)] * 3
        for index, place in enumerate((first, second, second)):
            places[PartitionKey(topic_id, index)] = place
        end = plane.quorum.end
        plane.metadata.on_publish(assignments.follow)
        await reported(assignments)
        assert [each.directories for each in partitions] == [(first,), (second,), (second,)]
        assert plane.quorum.end == end + 3
        places[PartitionKey(topic_id, 0)] = second
        assignments.check(PartitionKey(topic_id, 0))
        await reported(assignments)
        assert partitions[0].directories == (second,)
        await assignments.close()

    walk(steps, directories=TWO)


def test_a_directory_that_fails_before_it_was_reported_is_reported_all_the_same() -> None:
    """Its log is gone by the time of the report; the controller has to learn that the replica went with it."""

    async def steps(plane: ControlPlane) -> None:
        places: dict[PartitionKey, Uuid] = {}
        assignments = DirectoryAssignments(
            NodeId(1), lambda: plane.lifecycle.broker_epoch, plane.controller.submit_own, places.get
        )
        plane.metadata.on_publish(assignments.follow)
        topic_id = await plane.create("orders", 1)
        failed = plane.directory_ids["/more"]
        places[PartitionKey(topic_id, 0)] = failed
        assignments.check(PartitionKey(topic_id, 0))
        places.clear()
        await plane.lifecycle.directory_failed(failed)
        assert plane.image.topics[topic_id].partitions[0].leader == 1, "nobody knows yet what it took along"
        await reported(assignments)
        assert plane.image.topics[topic_id].partitions[0].leader == -1
        await assignments.close()

    walk(steps, directories=TWO)


def test_one_directory_needs_no_report() -> None:
    async def steps(plane: ControlPlane) -> None:
        only = plane.directory_ids["/data"]
        assignments = DirectoryAssignments(
            NodeId(1), lambda: plane.lifecycle.broker_epoch, plane.controller.submit_own, lambda _key: only
        )
        plane.metadata.on_publish(assignments.follow)
        topic_id = await plane.create("orders", 3)
        assert assignments._reporting is None
        assert plane.image.topics[topic_id].partitions[0].directories == (only,)

    walk(steps)
