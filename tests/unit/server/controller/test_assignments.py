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


def test_a_directory_that_fails_before_it_was_reported_takes_its_replicas_out_of_service() -> None:
    async def steps(plane: ControlPlane) -> None:
        topic_id = await plane.create("orders", 2)
        sound, failing = (plane.directory_ids[path] for path in TWO)
        places = {PartitionKey(topic_id, 0): sound, PartitionKey(topic_id, 1): failing}
        assignments = DirectoryAssignments(
            NodeId(1), lambda: plane.lifecycle.broker_epoch, plane.controller.submit_own, places.get
        )
        plane.metadata.on_publish(assignments.follow)
        del places[PartitionKey(topic_id, 1)]  # nobody has its log any more
        await plane.lifecycle.directory_failed(failing)
        await reported(assignments)
        partitions = plane.image.topics[topic_id].partitions
        assert [each.directories for each in partitions] == [(sound,), (failing,)]
        assert [each.leader for each in partitions] == [1, -1]
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
