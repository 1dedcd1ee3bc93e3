"""From an empty disk to a cluster of one and back again: what the metadata log holds is what a restart finds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.metadata.delta import Delta
from penstock.metadata.image import ClusterImage
from penstock.model.errors import KAFKA_STORAGE_ERROR, NOT_CONTROLLER, Corrupt, Refused
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.server.quorum.snapshot_driver import SnapshotSettings
from penstock.server.quorum.snapshot_file import SnapshotId
from penstock.testing.memory_files import MemoryFiles
from tests.walks.control_plane import ControlPlane, walk

LOG_DIRECTORY = "/data/__cluster_metadata-0"
MADE_BY_KAFKA = Path(__file__).parents[1] / "unit" / "metadata" / "kafka-4.3.1"


def topics_of(image: ClusterImage) -> dict[str, int]:
    return {topic.name: len(topic.partitions) for topic in image.topics.values()}


def creation(name: str) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic])


def test_a_new_cluster_has_the_levels_of_its_bootstrap_file_and_one_live_broker() -> None:
    async def steps(plane: ControlPlane) -> None:
        assert plane.image.features == {
            "metadata.version": 30,
            "group.version": 1,
            "eligible.leader.replicas.version": 1,
            "transaction.version": 2,
        }
        assert [broker.fenced for broker in plane.image.brokers.values()] == [False]
        assert list(plane.image.controllers) == [1]
        assert plane.image.config(4, "") == {"min.insync.replicas": "1"}

    walk(steps)


def test_a_restart_finds_the_image_that_was_published() -> None:
    async def main() -> None:
        first = await ControlPlane(directories=("/data", "/more")).start()
        await first.create("orders", 3, retention_ms="60000")
        await first.create("events", 2)
        await first.stop()
        published = first.image
        second = ControlPlane(first.files, directories=("/data", "/more"))
        second.quorum.start()
        await second.metadata.published(first.metadata.published_end)
        assert second.image == published
        assert second.cluster_id == first.cluster_id

    asyncio.run(main())


def test_a_restart_from_a_snapshot_finds_the_same_image_as_from_the_log() -> None:
    async def main() -> None:
        first = await ControlPlane().start()
        await first.create("orders", 3, retention_ms="60000")
        assert await first.snapshots.write_now() == SnapshotId(first.metadata.published_end, first.image.epoch)
        await first.create("after the snapshot".replace(" ", "-"), 2)
        await first.stop()
        second = ControlPlane(first.files)
        second.quorum.start()
        await second.metadata.published(first.metadata.published_end)
        assert second.image == first.image

    asyncio.run(main())


def test_what_was_answered_survives_a_crash_that_loses_unsynced_bytes() -> None:
    async def main() -> None:
        files = MemoryFiles()
        first = await ControlPlane(files).start()
        for number in range(5):
            await first.create(f"topic-{number}", 2)
        # Decided and appended, but nobody was told: this one may go.
        waiting = first.controller.submit(creation("lost"), first.context(7))
        await first.abandon()
        files.crash()
        waiting.close()  # type: ignore[attr-defined]
        second = await ControlPlane(files).start()
        found = topics_of(second.image)
        assert {f"topic-{number}": 2 for number in range(5)}.items() <= found.items()
        await second.stop()

    asyncio.run(main())


def test_each_start_leads_a_new_epoch() -> None:
    async def main() -> None:
        files = MemoryFiles()
        epochs = []
        for _ in range(3):
            plane = await ControlPlane(files).start()
            epochs.append(plane.image.epoch)
            await plane.stop()
        assert epochs == [1, 2, 3]

    asyncio.run(main())


def test_a_clean_stop_keeps_partitions_clean_and_a_crash_is_noticed() -> None:
    async def main() -> None:
        files = MemoryFiles()
        first = await ControlPlane(files).start()
        await first.create("orders")
        epoch = first.lifecycle.broker_epoch
        await first.stop()
        second = await ControlPlane(files).start(previous_epoch=epoch)
        orders = second.image.topic("orders")
        assert orders is not None
        assert (orders.partitions[0].leader, orders.partitions[0].isr) == (1, (1,))
        assert orders.partitions[0].leader_recovery_state == 0
        await second.stop()

    asyncio.run(main())


def test_nothing_is_published_before_it_is_synced() -> None:
    async def main() -> None:
        plane = await ControlPlane().start()
        syncs = plane.quorum.syncs
        waiting = plane.controller.submit(creation("t"), plane.context(7))
        assert plane.image.topic("t") is None
        assert plane.quorum.end > plane.metadata.published_end
        await waiting
        assert plane.image.topic("t") is not None
        assert plane.quorum.syncs > syncs
        await plane.stop()

    asyncio.run(main())


def test_requests_that_wait_together_share_a_sync() -> None:
    async def steps(plane: ControlPlane) -> None:
        before = plane.quorum.syncs
        await asyncio.gather(*(plane.create(f"topic-{number}") for number in range(50)))
        assert plane.quorum.syncs - before <= 4

    walk(steps)


def test_subscribers_hear_of_changes_in_order_and_late_ones_of_everything() -> None:
    async def steps(plane: ControlPlane) -> None:
        heard: list[tuple[str, list[str]]] = []

        def listener(name: str) -> None:
            def publish(image: ClusterImage, delta: Delta) -> None:
                assert image is plane.image
                heard.append((name, sorted(delta.created.values())))

            plane.metadata.on_publish(publish)

        await plane.create("a")
        listener("early")
        await plane.create("b")
        listener("late")
        topics = [DeleteTopicsRequest.DeleteTopicState(name="a")]
        await plane.controller.submit(DeleteTopicsRequest(topics=topics, timeout_ms=30_000), plane.context(6))
        assert heard == [("early", ["a"]), ("early", ["b"]), ("late", ["a", "b"]), ("early", []), ("late", [])]

    walk(steps)


def test_a_decision_too_large_for_one_batch_is_published_at_once() -> None:
    async def steps(plane: ControlPlane) -> None:
        seen: list[int] = []
        plane.metadata.on_publish(
            lambda image, _delta: seen.append(sum(len(topic.partitions) for topic in image.topics.values()))
        )
        await plane.create("wide", 3_000)
        assert seen == [0, 3_000]

    walk(steps)


def test_snapshots_are_written_by_size_and_old_ones_go_with_their_log() -> None:
    async def steps(plane: ControlPlane) -> None:
        for number in range(30):
            await plane.create(f"topic-{number}", 20)
        for _ in range(50):
            await asyncio.sleep(0)
        kept = plane.snapshots.kept
        assert len(kept) == 1, kept
        assert kept[0].end > 0
        names = plane.files.listdir(LOG_DIRECTORY)
        assert [name for name in names if name.endswith(".checkpoint")] == [kept[0].file_name]
        assert not [name for name in names if name.endswith(".part")]

    walk(steps, snapshots=SnapshotSettings(max_bytes_between=10_000, retention_bytes=5_000))


def test_an_interrupted_snapshot_is_swept_away() -> None:
    async def main() -> None:
        first = await ControlPlane().start()
        await first.stop()
        first.files.write_atomic(f"{LOG_DIRECTORY}/00000000000000000099-0000000009.checkpoint.part", b"half")
        second = await ControlPlane(first.files).start()
        assert not [name for name in first.files.listdir(LOG_DIRECTORY) if name.endswith(".part")]
        await second.stop()

    asyncio.run(main())


def test_a_broken_snapshot_is_passed_over_for_an_older_one() -> None:
    async def main() -> None:
        first = await ControlPlane().start()
        await first.create("orders")
        written = await first.snapshots.write_now()
        assert written is not None
        await first.stop()
        path = f"{LOG_DIRECTORY}/{written.file_name}"
        data = bytearray(first.files.read(path))
        data[len(data) // 2] ^= 1
        first.files.write_atomic(path, bytes(data))
        second = await ControlPlane(first.files).start()
        assert topics_of(second.image) == {"orders": 1}
        assert not first.files.exists(path), "nobody may be sent to it"
        await second.stop()

    asyncio.run(main())


def test_a_node_whose_only_snapshot_is_broken_refuses_and_names_it() -> None:
    """The log still has its first segment, but not who votes; with later ones alone it would tell half a cluster."""

    async def main() -> None:
        first = await ControlPlane(snapshots=SnapshotSettings(max_bytes_between=2_000, retention_bytes=1_000)).start()
        for number in range(30):
            await first.create(f"topic-{number}")
        await first.snapshots.write_now()
        (kept,) = first.snapshots.kept
        await first.stop()
        path = f"{LOG_DIRECTORY}/{kept.file_name}"
        data = first.files.read(path)
        first.files.write_atomic(path, data[: len(data) // 2])
        with pytest.raises(Corrupt, match=f"{path} at byte .* Restore it from a copy"):
            await ControlPlane(first.files).start()

    asyncio.run(main())


def test_an_idle_controller_writes_no_ops_at_its_interval() -> None:
    async def steps(plane: ControlPlane) -> None:
        end = plane.quorum.end
        for _ in range(3):
            plane.clock.advance(500)
            plane.controller._tick()
        assert plane.quorum.end == end + 3
        await plane.metadata.published(plane.quorum.end)

    walk(steps, idle_interval_ms=500)


def test_a_silent_broker_is_fenced() -> None:
    async def main() -> None:
        plane = await ControlPlane().start()
        await plane.create("orders")
        plane.clock.advance(9_001)
        plane.controller._tick()
        await plane.metadata.published(plane.quorum.end)
        orders = plane.image.topic("orders")
        assert orders is not None
        assert plane.image.brokers[1].fenced
        assert orders.partitions[0].leader == -1
        await plane.abandon()

    asyncio.run(main())


def test_a_metadata_log_that_cannot_be_synced_ends_the_node() -> None:
    async def main() -> None:
        plane = await ControlPlane().start()
        waiting = asyncio.ensure_future(plane.create("never"))
        await asyncio.sleep(0)
        plane.files.fail("/data", 5)
        with pytest.raises(Refused) as refused:
            await waiting
        assert refused.value.error in (NOT_CONTROLLER, KAFKA_STORAGE_ERROR)
        assert plane.failures
        assert not plane.controller.active
        await plane.abandon()

    asyncio.run(main())


def test_a_log_made_by_apache_kafka_is_taken_over() -> None:
    async def main() -> None:
        files = MemoryFiles()
        ControlPlane(files)  # formats the directory
        files.write_atomic(
            f"{LOG_DIRECTORY}/00000000000000000000.log", (MADE_BY_KAFKA / "00000000000000000000.log").read_bytes()
        )
        files.write_atomic(f"{LOG_DIRECTORY}/partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
        plane = ControlPlane(files)
        plane.quorum._me = await _voter_in_log(ControlPlane(files))
        plane.quorum.start()
        await plane.metadata.published(plane.quorum.end)
        assert plane.image.topics
        assert plane.image.features["metadata.version"] == 30
        assert plane.quorum.kraft_version == 1
        await plane.abandon()

    asyncio.run(main())


async def _voter_in_log(plane: ControlPlane):  # type: ignore[no-untyped-def]
    """The voter that the log names: a directory id is part of who it is."""
    return next(iter(plane.quorum._read_disk().newest.voters))


def test_producer_ids_never_repeat_over_restarts() -> None:
    async def main() -> None:
        files = MemoryFiles()
        taken: list[int] = []
        for _ in range(3):
            plane = await ControlPlane(files).start()
            taken += [await plane.producer_ids.next_id() for _ in range(1_500)]
            await plane.stop()
        assert len(set(taken)) == len(taken)

    asyncio.run(main())


def test_files_of_forgotten_segments_go_after_their_delay() -> None:
    async def steps(plane: ControlPlane) -> None:
        for number in range(40):
            await plane.create(f"topic-{number}", 20)
        while len(plane.snapshots.kept) > 1 or plane.snapshots._writing is not None:
            await asyncio.sleep(0)
        assert [name for name in plane.files.listdir(LOG_DIRECTORY) if name.endswith(".deleted")]
        for _ in range(2):  # the first look begins the delay
            plane.quorum._log._purge()
            await plane.quorum._log.quiet()
            plane.clock.advance(60_001)
        assert not [name for name in plane.files.listdir(LOG_DIRECTORY) if name.endswith(".deleted")]

    walk(
        steps,
        snapshots=SnapshotSettings(max_bytes_between=10_000, retention_bytes=5_000),
        properties={"internal.metadata.log.segment.bytes": "20000"},
    )


def test_the_session_of_a_broker_is_timed_even_when_nothing_else_is() -> None:
    async def steps(plane: ControlPlane) -> None:
        assert plane.controller._timer is not None
        assert plane.controller._next_due() == plane.clock.monotonic_ms() + 9_000

    walk(steps)
