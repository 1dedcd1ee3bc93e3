"""Replicas move between directories while they are read and written, and nobody can tell from the records."""

from __future__ import annotations

import asyncio
import errno

import pytest

from penstock.model.errors import (
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_TOPIC_EXCEPTION,
    KAFKA_STORAGE_ERROR,
    LOG_DIR_NOT_FOUND,
    REPLICA_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
    Refused,
)
from penstock.model.ids import Epoch, Offset
from penstock.storage.log import Log
from tests.unit.server.partitions.replicas import A, B, Replicas, content, walk


def refusal(world: Replicas, topic: str, path: str) -> ErrorCode:
    with pytest.raises(Refused) as refused:
        world.relocations.alter(topic, 0, path)
    return refused.value.error


def names_in(world: Replicas, directory: str, topic: str) -> list[str]:
    """What is left of a topic in a directory: the ends of the names."""
    return [name.rpartition("-")[2] for name in world.files.listdir(directory) if name.startswith(topic)]


def test_a_move_carries_everything_over_and_leaves_nothing_behind() -> None:
    async def steps() -> None:
        world = Replicas(segment_bytes=200_000)
        hosted = await world.create("orders")
        world.produce(hosted, 500, size=3_000)
        world.produce(hosted, 7, producer=5)
        old = hosted.require_log()
        before, facts = content(old), (old.next, old.committed, old.log_start, old.last_stable, old.epochs.entries())
        batches = [state.batches for state in old.producers.states()]
        assert world.path_of(hosted) == A
        world.relocations.alter("orders", 0, B)
        await world.settle()
        log = hosted.require_log()
        assert (world.path_of(hosted), log.directory) == (B, "/b/orders-0")
        assert content(log) == before
        assert (log.next, log.committed, log.log_start, log.last_stable, log.epochs.entries()) == facts
        assert [state.batches for state in log.producers.states()] == batches, "all five, not only the last"
        assert len(log.segments) > 1
        assert log.flushed == log.written
        assert world.moved == [hosted.key]
        assert (names_in(world, A, "orders"), names_in(world, B, "orders")) == (["delete"], ["0"])
        assert world.store.purgeable(world.clock.monotonic_ms()) == []
        world.clock.advance(60_001)
        world.store.purge(world.clock.monotonic_ms())
        assert names_in(world, A, "orders") == []

    walk(steps)


def test_what_is_appended_meanwhile_moves_too_and_appends_never_wait() -> None:
    async def steps() -> None:
        world = Replicas()
        hosted = await world.create("orders")
        world.produce(hosted, 2_000, size=1_000)
        world.relocations.alter("orders", 0, B)
        for _ in range(400):
            world.produce(hosted, 2, size=1_000)
            await asyncio.sleep(0)
        await world.settle()
        world.produce(hosted, 3)
        log = hosted.require_log()
        assert log.next == log.committed == 2_803
        assert world.path_of(hosted) == B
        assert content(log).count(b"00002801") > 0

    walk(steps)


def test_describe_log_dirs_shows_the_copy_and_how_far_it_is_behind() -> None:
    async def steps() -> None:
        world = Replicas()
        hosted = await world.create("orders")
        world.produce(hosted, 1_000, size=2_000)
        world.relocations.alter("orders", 0, B)
        await world.copied(hosted, 1)
        here, there = world.store.describe()
        assert [(each.future, each.offset_lag) for each in here.logs] == [(False, 0)]
        (copy,) = there.logs
        assert copy.future
        assert 0 < copy.offset_lag < 1_000
        assert copy.size_bytes > 0
        while world.path_of(hosted) == A:
            await asyncio.sleep(0)
        assert world.relocations._retiring, "the old directory is still there, but nobody is told of it"
        assert [[each.future for each in report.logs] for report in world.store.describe()] == [[], [False]]
        await world.settle()

    walk(steps)


def test_who_waits_for_a_sync_or_a_commit_is_answered_by_the_new_log() -> None:
    async def steps() -> None:
        world = Replicas(flush_messages="1")
        hosted = await world.create("orders")
        world.produce(hosted, 10)
        await world.flushes.drain()
        answered: list[str] = []
        world.relocations.alter("orders", 0, B)
        while world.path_of(hosted) == A:
            world.produce(hosted)
            await asyncio.sleep(0)
        world.produce(hosted)
        end = hosted.require_log().next
        hosted.when_committed(end, lambda: answered.append("committed"))
        hosted.when_flushed(end, lambda: answered.append("flushed"))
        await world.settle()
        assert sorted(answered) == ["committed", "flushed"]
        assert hosted.state.high_watermark == end

    walk(steps)


def test_a_read_that_began_before_the_take_over_ends_well() -> None:
    async def steps() -> None:
        world = Replicas()
        hosted = await world.create("orders")
        world.produce(hosted, 10)
        (span,) = hosted.require_log().read(3, max_bytes=10_000, limit=10, at_least_one=True).spans
        expected = span.read()
        world.relocations.alter("orders", 0, B)
        await world.settle()
        assert span.read() == expected
        assert world.partitions.named("orders", 0) is hosted

    walk(steps)


def test_a_move_to_where_the_replica_is_ends_a_move_elsewhere() -> None:
    async def steps() -> None:
        world = Replicas(directories=(A, B, "/c"))
        hosted = await world.create("orders")
        world.produce(hosted, 2_000, size=1_000)
        world.relocations.alter("orders", 0, A)
        assert world.relocations._task is None, "it is there already"
        world.relocations.alter("orders", 0, B)
        await world.turns(10)
        world.relocations.alter("orders", 0, B)
        assert len(world.store.futures) == 1, "asked twice, moved once"
        world.relocations.alter("orders", 0, "/c")
        await world.turns(10)
        world.relocations.alter("orders", 0, A)
        assert not hosted.moving
        await world.settle()
        assert world.path_of(hosted) == A
        assert world.moved == []
        assert [names_in(world, each, "orders") for each in (A, B, "/c")] == [["0"], ["delete"], ["delete"]]
        world.relocations.alter("orders", 0, "/c/")
        await world.settle()
        assert world.path_of(hosted) == "/c"

    walk(steps)


def test_every_refusal_has_kafkas_code() -> None:
    async def steps() -> None:
        world = Replicas(directories=(A, B, "/c"))
        await world.create("orders")
        await world.create("elsewhere", number=2, replica=2)
        await world.create("x" * 240, number=3)
        assert refusal(world, "orders", "/nowhere") is LOG_DIR_NOT_FOUND
        assert refusal(world, "unknown", B) is UNKNOWN_TOPIC_OR_PARTITION
        assert refusal(world, "elsewhere", B) is REPLICA_NOT_AVAILABLE
        assert refusal(world, "x" * 240, B) is INVALID_TOPIC_EXCEPTION
        world.store.directory_at(B).cordoned = True
        assert refusal(world, "orders", B) is INVALID_REPLICA_ASSIGNMENT
        world.store.directory_at(B).cordoned = False
        world.store.fail("/c", "the test says so")
        assert refusal(world, "orders", "/c") is KAFKA_STORAGE_ERROR
        assert refusal(world, "orders", B) is KAFKA_STORAGE_ERROR, "the offline one may hold a copy"
        world.relocations.alter("orders", 0, A)
        world.store.fail(A, "the test says so")
        assert refusal(world, "orders", A) is KAFKA_STORAGE_ERROR
        assert refusal(world, "orders", B) is KAFKA_STORAGE_ERROR
        assert world.store.futures == {}

    walk(steps)


def test_a_wish_for_a_replica_that_is_still_to_come_is_remembered() -> None:
    async def steps() -> None:
        world = Replicas()
        await world.create("other", number=9)
        assert refusal(world, "first", A) is UNKNOWN_TOPIC_OR_PARTITION
        assert refusal(world, "second", A) is UNKNOWN_TOPIC_OR_PARTITION
        assert world.path_of(await world.create("first")) == A, "against the order of fewest replicas"
        assert world.path_of(await world.create("second", number=2)) == A
        assert world.path_of(await world.create("third", number=3)) == B

    walk(steps)


def test_metadata_says_where_a_missing_replica_is_made() -> None:
    async def steps() -> None:
        world = Replicas()
        second = world.store.directory_at(B).id
        assert second is not None
        for number in range(1, 4):
            assert world.path_of(await world.create(f"topic{number}", number=number, directory=second)) == B

    walk(steps)


@pytest.mark.parametrize("to", [300, 1_900, 2_000])
def test_records_deleted_during_a_move_stay_deleted(to: int) -> None:
    async def steps() -> None:
        world = Replicas()
        hosted = await world.create("orders")
        world.produce(hosted, 2_000, size=1_000)
        world.relocations.alter("orders", 0, B)
        await world.copied(hosted, 500)
        assert world.store.futures[hosted.key].next < 1_900
        assert world.partitions.delete_records("orders", 0, to) == to
        world.produce(hosted, 5)
        expected = content(hosted.require_log())
        await world.settle()
        log = hosted.require_log()
        assert world.path_of(hosted) == B
        assert (log.log_start, log.next) == (to, 2_005)
        assert content(log) == expected

    walk(steps)


def test_a_log_that_is_cut_and_written_anew_is_copied_as_it_is_now() -> None:
    async def steps() -> None:
        world = Replicas()
        hosted = await world.create("orders")
        world.produce(hosted, 1_000, size=2_000)
        source = hosted.require_log()
        world.relocations.alter("orders", 0, B)
        await world.copied(hosted, 600)
        source.truncate(Offset(500))
        hosted.state.epoch = Epoch(2)
        hosted.state.high_watermark = source.committed
        source.epochs.assign(Epoch(2), source.next)
        world.produce(hosted, 300, size=2_008)
        expected = content(source)
        await world.settle()
        log = hosted.require_log()
        assert world.path_of(hosted) == B
        assert content(log) == expected
        assert [(entry.epoch, entry.start) for entry in log.epochs.entries()] == [(1, 0), (2, 500)]

    walk(steps)


def test_a_topic_that_is_deleted_takes_its_copy_along() -> None:
    async def steps() -> None:
        world = Replicas()
        hosted = await world.create("orders")
        world.produce(hosted, 2_000, size=1_000)
        world.relocations.alter("orders", 0, B)
        await world.copied(hosted, 500)
        world.partitions._drop(hosted)
        await world.settle()
        assert (names_in(world, A, "orders"), names_in(world, B, "orders")) == (["delete"], ["delete"])
        assert world.store.futures == {}
        assert world.lost == []

    walk(steps)


def test_a_target_that_fails_ends_the_move_and_nothing_else() -> None:
    async def steps() -> None:
        world = Replicas()
        hosted = await world.create("orders")
        world.produce(hosted, 2_000, size=1_000)
        world.relocations.alter("orders", 0, B)
        await world.copied(hosted, 500)
        world.files.fail(B, errno.EIO)
        await world.settle()
        assert world.path_of(hosted) == A
        assert not hosted.moving
        assert world.lost == [world.store.directories[1].id]
        world.produce(hosted, 5)

    walk(steps)


def test_a_source_that_fails_leaves_the_copy_for_the_next_start() -> None:
    async def steps() -> None:
        world = Replicas()
        hosted = await world.create("orders")
        world.produce(hosted, 2_000, size=1_000)
        expected = content(hosted.require_log())
        world.relocations.alter("orders", 0, B)
        await world.copied(hosted, 500)
        world.files.fail(A, errno.EIO, reads=True)
        world.store.fail(A, "I/O error")
        await world.settle()
        assert hosted.log is None
        assert list(world.store.futures) == [hosted.key]
        world.files.heal(A)
        world.files.kill()
        again = Replicas(world.files, image=world.image)
        await again.publish()
        again.relocations.resume()
        await again.settle()
        found = again.partitions.named("orders", 0)
        assert again.path_of(found) == B
        assert content(found.require_log()) == expected

    walk(steps)


def test_a_copy_that_metadata_calls_the_replica_becomes_it() -> None:
    """The current log's directory was replaced after the controller had heard of the move."""

    async def steps() -> None:
        world = Replicas(directories=(B,))
        directory = world.store.directory_at(B).id
        assert directory is not None
        hosted = await world.create("orders", directory=directory)
        world.produce(hosted, 10)
        world.store.close(0)
        world.files.rename("/b/orders-0", "/b/orders-0.0123456789abcdef0123456789abcdef-future")
        again = Replicas(world.files, image=world.image)
        await again.publish()
        found = again.partitions.named("orders", 0)
        assert (again.path_of(found), found.require_log().next) == (B, 10)
        assert again.store.futures == {}

    walk(steps)


def test_a_copy_goes_on_where_the_last_life_stopped() -> None:
    async def steps() -> None:
        world = Replicas()
        hosted = await world.create("orders")
        world.produce(hosted, 2_000, size=1_000)
        expected = content(hosted.require_log())
        world.relocations.alter("orders", 0, B)
        await world.copied(hosted, 1)
        await world.relocations.stop()
        copied = world.store.futures[hosted.key].next
        assert 0 < copied < 2_000
        world.store.close(0)
        again = Replicas(world.files, image=world.image)
        assert again.store.futures[hosted.key].next == copied
        await again.publish()
        again.relocations.resume()
        await again.settle()
        found = again.partitions.named("orders", 0)
        assert again.path_of(found) == B
        assert content(found.require_log()) == expected
        assert again.relocations.bytes_copied < len(expected)

    walk(steps)


def test_moves_wait_for_a_cleaning_and_cleanings_for_a_move() -> None:
    async def steps() -> None:
        world = Replicas()
        hosted = await world.create("orders")
        world.produce(hosted, 10)
        world.cleaning = hosted
        world.relocations.alter("orders", 0, B)
        await world.turns(10)
        assert hosted.moving, "the compaction driver passes it over"
        assert world.store.futures[hosted.key].size_bytes == 0
        world.cleaning = None
        await world.settle()
        assert world.path_of(hosted) == B
        assert not hosted.moving

    walk(steps)


def test_a_log_whose_last_records_were_compacted_away_keeps_its_end() -> None:
    async def steps() -> None:
        world = Replicas()
        hosted = await world.create("orders")
        world.produce(hosted, 10)
        source = hosted.require_log()
        source.skip_to(Offset(20), now=world.clock.now_ms())
        hosted.grew(world.clock.now_ms())
        world.relocations.alter("orders", 0, B)
        await world.settle()
        log = hosted.require_log()
        assert world.path_of(hosted) == B
        assert (log.next, log.committed) == (20, 20)
        world.produce(hosted)
        assert log.next == 21

    walk(steps)


def test_an_empty_replica_moves_too() -> None:
    async def steps() -> None:
        world = Replicas()
        hosted = await world.create("orders")
        world.relocations.alter("orders", 0, B)
        await world.settle()
        world.produce(hosted, 3)
        assert world.path_of(hosted) == B
        assert [each.base for each in hosted.require_log().segments] == [0]

    walk(steps)


def test_many_moves_take_turns() -> None:
    async def steps() -> None:
        world = Replicas()
        wanted = [await world.create(f"topic{number}", number=number) for number in range(1, 7)]
        for hosted in wanted:
            world.produce(hosted, 300, size=2_000)
        targets = {hosted: B if world.path_of(hosted) == A else A for hosted in wanted}
        for hosted, target in targets.items():
            world.relocations.alter(hosted.name.topic, 0, target)
        for hosted in wanted:
            await world.copied(hosted, 1)
        assert max(world.store.futures[hosted.key].next for hosted in wanted) < 300, "all begin before one ends"
        await world.settle()
        assert {hosted: world.path_of(hosted) for hosted in wanted} == targets

    walk(steps)


def test_an_unreadable_source_stays_where_it_is() -> None:
    async def steps() -> None:
        world = Replicas()
        hosted = await world.create("orders")
        world.produce(hosted, 500, size=1_000)
        path = hosted.require_log().segments[0].path(".log")
        world.files.open(path).pwritev((b"\xff",), 100_000)
        world.relocations.alter("orders", 0, B)
        await world.settle()
        assert world.path_of(hosted) == A
        assert world.store.futures == {}
        assert world.lost == [], "one bad batch is no reason to take a disk away"

    walk(steps)


def test_the_take_over_is_one_step() -> None:
    """Whoever looks sees the old log or the new one, each complete."""

    async def steps() -> None:
        world = Replicas()
        hosted = await world.create("orders")
        world.produce(hosted, 700, size=1_000)
        seen: list[Log] = []
        world.relocations.alter("orders", 0, B)
        while world.relocations._task is not None or world.relocations._retiring:
            log = hosted.require_log()
            assert log.committed == log.next == hosted.state.high_watermark
            assert log.read(699, max_bytes=1, limit=700, at_least_one=True).size > 0
            if log not in seen:
                seen.append(log)
            await asyncio.sleep(0)
        assert len(seen) == 2

    walk(steps)
