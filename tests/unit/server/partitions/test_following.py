"""A follower's log becomes its leader's, byte for byte, whatever happened before."""

from __future__ import annotations

import asyncio
import errno
from random import Random
from typing import Any

import pytest

from penstock.kernels import scan_batches
from penstock.protocol.messages.fetch import FetchRequest
from tests.faults.counts import SOAKING
from tests.patience import until
from tests.unit.server.partitions.following import World, walk
from tests.unit.storage.batches import batch

LONG_WAIT = {"replica.fetch.wait.max.ms": "20000"}
"""Longer than a test may take: what passes with it does not wait for the end of a long poll."""


def test_a_follower_copies_the_leaders_bytes_and_its_high_watermark() -> None:
    async def steps() -> None:
        world = World(segment_bytes=4_000)
        await world.lead(1)
        leader, follower = world.brokers[1], world.brokers[2]
        leader.produce(50, records=3)
        await world.level()
        assert len(leader.log().segments) > 2
        assert follower.segments() == leader.segments()
        assert follower.log().committed == leader.log().next
        assert follower.log().epochs.entries() == leader.log().epochs.entries()
        assert follower.followers.bytes_in == leader.log().size_bytes
        await world.stop()

    walk(steps)


def test_a_deposed_leader_gives_up_what_nobody_copied_and_follows() -> None:
    async def steps() -> None:
        world = World(segment_bytes=2_000)
        await world.lead(1)
        first, second = world.brokers[1], world.brokers[2]
        first.produce(10, producer=7)
        await world.level()
        second.unreachable = True
        first.produce(30, size=300, producer=8)
        assert len(first.log().segments) > 3
        await world.lead(2)
        second.produce(5, producer=9)
        second.unreachable = False
        await world.level()
        assert first.segments() == second.segments()
        assert first.log().epochs.entries() == second.log().epochs.entries()
        assert [state.producer_id for state in first.log().producers.states()] == [7, 9], "the producer 8 never was"
        await world.stop()

    walk(steps)


def test_a_new_leader_epoch_of_the_same_leader_goes_on_where_it_was() -> None:
    async def steps() -> None:
        world = World(properties=LONG_WAIT)
        for _ in range(5):
            await world.lead(1)
            world.brokers[1].produce(3)
            await until(lambda: world.brokers[2].log().next == world.brokers[1].log().next)
        assert world.brokers[2].segments() == world.brokers[1].segments()
        assert [entry.epoch for entry in world.brokers[2].log().epochs.entries()] == [1, 2, 3, 4, 5]
        await world.stop()

    walk(steps)


def test_a_partition_that_comes_to_a_leader_does_not_wait_for_the_fetch_that_waits_there() -> None:
    async def steps() -> None:
        world = World(partitions=2, properties=LONG_WAIT)
        await world.lead(1)
        await until(lambda: world.brokers[1].fetches.waiting > 0)
        follower = world.brokers[2]
        moved = follower.hosted(1)
        follower.followers.leave(moved)
        world.brokers[1].produce(4, partition=1)
        follower.followers.follow(moved)
        await until(lambda: follower.log(1).next == 4)
        world.brokers[1].produce(1, partition=0)
        await until(lambda: follower.log(0).next == 1)
        await world.stop()

    walk(steps)


def test_idle_partitions_cost_nothing_in_a_fetch() -> None:
    async def steps() -> None:
        world = World(partitions=1_500)
        await world.lead(1)
        await until(lambda: world.brokers[1].fetches.waiting > 0)
        del world.asked[:]
        for number in range(3):
            world.brokers[1].produce(1, partition=700 + number)
            await until(lambda number=number: world.brokers[2].log(700 + number).committed == 1)
        named = [part.partition for _, request in world.asked for topic in request.topics for part in topic.partitions]
        assert sorted(named) == [700, 701, 702]
        await world.stop()

    walk(steps)


def test_an_empty_replica_begins_where_the_leader_begins_even_inside_of_a_batch() -> None:
    async def steps() -> None:
        world = World(3, segment_bytes=3_000)
        world.nodes = [1, 2]
        await world.lead(1)
        leader = world.brokers[1]
        leader.produce(40, records=5)
        await world.level()
        leader.trim(92)
        await world.level()
        world.nodes = [1, 2, 3]
        await world.lead(1, isr=[1, 2])
        await world.level()
        newcomer = world.brokers[3]
        assert newcomer.log().log_start == 92
        assert newcomer.log().segments[0].base == 90, "the batch that holds 92 is there whole"
        assert contents(newcomer) == contents(leader)
        await world.stop()

    walk(steps)


def test_a_replica_that_is_behind_the_leaders_start_starts_over() -> None:
    async def steps() -> None:
        world = World(segment_bytes=3_000)
        await world.lead(1, isr=[1])
        leader, follower = world.brokers[1], world.brokers[2]
        leader.produce(5)
        await world.level()
        follower.unreachable = True
        leader.produce(60)
        leader.log().commit_to(leader.log().next)
        leader.trim(50)
        follower.unreachable = False
        await world.level()
        assert follower.log().log_start == 50
        assert contents(follower) == contents(leader)
        await world.stop()

    walk(steps)


@pytest.mark.parametrize("kept", [{"retention.bytes": "2000"}, {"retention.ms": "1000"}])
def test_a_follower_whose_own_retention_deletes_something_goes_on(kept: dict[str, str]) -> None:
    """Its log begins later than the leader's, which hears of it and never waits for it."""

    async def steps() -> None:
        world = World(segment_bytes=1_500, topic={**kept, "retention.ms": kept.get("retention.ms", "-1")})
        await world.lead(1)
        leader, follower = world.brokers[1], world.brokers[2]
        for _ in range(4):
            leader.produce(20)
            await world.level()
            world.clock.advance(2_000)
            await follower.upkeep.retain()
            start = follower.log().log_start
            assert start > leader.log().log_start == 0
            await until(lambda start=start: told_by(follower, leader).log_start == start)
        leader.produce(20)
        asked = len(world.asked)
        await world.level()
        assert len(world.asked) - asked < 10
        assert contents(follower) == contents(leader, follower.log().log_start)
        await world.stop()

    walk(steps)


def test_a_follower_that_emptied_its_log_goes_on_at_its_end() -> None:
    async def steps() -> None:
        world = World(topic={"retention.ms": "1000"})
        await world.lead(1)
        leader, follower = world.brokers[1], world.brokers[2]
        leader.produce(20)
        await world.level()
        world.clock.advance(2_000)
        await follower.upkeep.retain()
        assert (follower.log().log_start, follower.log().size_bytes) == (20, 0)
        leader.produce(3)
        await world.level()
        assert follower.log().log_start == 20
        assert contents(follower) == contents(leader, 20)
        await world.stop()

    walk(steps)


def told_by(follower: Any, leader: Any) -> Any:
    """What the leader knows of a follower by its fetches."""
    return leader.hosted().state.followers[follower.node]


def test_answers_that_speak_of_nothing_that_is_followed_are_not_asked_for_without_end() -> None:
    """Whatever the leader believes: it is told otherwise, and not six hundred times a second."""

    async def steps() -> None:
        world = World(partitions=2, properties={"replica.fetch.backoff.ms": "200"})
        await world.lead(1)
        await world.level()

        def misdirect(reply: Any) -> Any:
            for topic in getattr(reply, "responses", ()):
                for data in topic.partitions:
                    data.partition_index += 100
            return reply

        world.spoil = misdirect
        world.brokers[1].produce(1)
        asked, began = len(world.asked), asyncio.get_running_loop().time()
        await until(lambda: len(world.asked) > asked + 12)
        assert asyncio.get_running_loop().time() - began > 0.8, "a dozen fetches take a second"
        told = [topic for _, request in world.asked for topic in request.forgotten_topics_data]
        assert {number for topic in told for number in topic.partitions} == {100}
        world.spoil = lambda reply: reply
        await world.level()
        await world.stop()

    walk(steps)


def test_a_replica_without_epochs_that_is_ahead_is_cut_to_the_leaders_end() -> None:
    async def steps() -> None:
        world = World()
        await world.lead(1)
        leader, follower = world.brokers[1], world.brokers[2]
        leader.produce(5)
        await world.level()
        follower.unreachable = True
        follower.log().append_exact(b"".join(batch_at(offset) for offset in range(5, 9)), now=world.clock.now_ms())
        follower.log().epochs.clear()
        await world.lead(1)
        follower.unreachable = False
        await until(lambda: follower.log().next == 5)
        leader.produce(2)
        await world.level()
        assert contents(follower) == contents(leader)
        await world.stop()

    walk(steps)


def batch_at(offset: int) -> bytes:
    return bytes(batch(base=offset, epoch=1))


def test_a_batch_that_was_damaged_on_the_way_never_lands() -> None:
    async def steps() -> None:
        world = World()
        await world.lead(1)
        leader, follower = world.brokers[1], world.brokers[2]
        damaged = 0

        def spoil(reply: Any) -> Any:
            nonlocal damaged
            for topic in getattr(reply, "responses", ()):
                for data in topic.partitions:
                    if data.records and damaged < 3:
                        damaged += 1
                        data.records = bytes(data.records[:-1]) + bytes([data.records[-1] ^ 1])
            return reply

        world.spoil = spoil
        leader.produce(10)
        await world.level()
        assert damaged == 3
        assert follower.segments() == leader.segments()
        await world.stop()

    walk(steps)


@pytest.mark.parametrize("byte", [16, 80], ids=["its format", "its records"])
def test_a_follower_has_all_before_a_batch_that_is_damaged_in_the_leaders_log(byte: int) -> None:
    """Where its log ends tells which batch it is that cannot be copied."""

    async def steps() -> None:
        world = World()
        await world.lead(1)
        leader, follower = world.brokers[1], world.brokers[2]
        follower.unreachable = True
        leader.produce(400)  # more than are appended at once
        segment = leader.log().segments[-1]
        whole = segment.file.pread(segment.size, 0)
        position = next(at for at, header in scan_batches(whole) if header.base_offset == 300)
        segment.file.pwritev((bytes([whole[position + byte] ^ 1]),), position + byte)
        follower.unreachable = False
        await until(lambda: follower.log().next == 300)
        await until(lambda: bool(follower.followers.held()))
        assert follower.segments() == {"0": whole[:position]}
        segment.file.pwritev((whole[position + byte : position + byte + 1],), position + byte)
        await world.level()
        assert follower.segments() == leader.segments()
        await world.stop()

    walk(steps)


def test_batches_of_an_epoch_that_was_not_asked_with_wait_for_the_metadata() -> None:
    """The leader has begun a new epoch of which the follower has not heard; its batches come all the same."""

    async def steps() -> None:
        world = World()
        await world.lead(1)
        leader, follower = world.brokers[1], world.brokers[2]
        leader.produce(2)
        await world.level()
        # A leader that does not look at the follower's epoch, as an in-flight fetch of before may have been served.
        leader.log().epochs.assign(leader.hosted().state.epoch + 1, leader.log().next)  # type: ignore[arg-type]
        made = batch_at(2)
        leader.log().append_exact(made[:12] + (2).to_bytes(4, "big") + made[16:], now=world.clock.now_ms())
        leader.hosted().grew(world.clock.now_ms())
        await until(lambda: bool(follower.followers.held()))
        assert follower.log().next == 2
        await world.lead(1)
        await world.level()
        assert contents(follower) == contents(leader)
        await world.stop()

    walk(steps)


def test_a_link_that_breaks_is_used_again_when_it_is_back() -> None:
    async def steps() -> None:
        world = World(properties=LONG_WAIT)
        await world.lead(1)
        leader, follower = world.brokers[1], world.brokers[2]
        for _ in range(3):
            leader.unreachable = True
            leader.produce(2)
            asked = len(world.asked)
            await until(lambda asked=asked: len(world.asked) > asked + 2)
            leader.unreachable = False
            await until(lambda: follower.log().next == leader.log().next)
        await world.stop()

    walk(steps)


def test_without_a_leader_nothing_is_asked() -> None:
    async def steps() -> None:
        world = World()
        await world.lead(1)
        await world.level()
        await world.lead(-1)
        follower = world.brokers[2].followers
        assert (len(follower), follower._fetchers) == (0, {})
        await until(lambda: not follower._ending)
        await world.stop()

    walk(steps)


def test_a_leader_that_has_no_room_for_sessions_is_followed_all_the_same() -> None:
    async def steps() -> None:
        world = World(session_slots=0)
        await world.lead(1)
        world.brokers[1].produce(10)
        await world.level()
        world.brokers[1].produce(10)
        await world.level()
        assert all(request.session_epoch == 0 for _, request in world.asked if isinstance(request, FetchRequest))
        await world.stop()

    walk(steps)


def test_a_follower_claims_only_what_is_synced_when_the_topic_syncs_before_it_answers() -> None:
    async def steps() -> None:
        world = World(topic={"flush.messages": "1"}, properties=LONG_WAIT)
        await world.lead(1)
        leader, follower = world.brokers[1], world.brokers[2]
        held = asyncio.Event()
        want = follower.flushes.want
        follower.partitions._on_unsynced = lambda hosted: want(hosted) if held.is_set() else None
        leader.produce(3)
        await until(lambda: follower.log().next == 3)
        await leader.flushes.drain()
        assert leader.log().flushed == 3
        await until(lambda: bool(follower.followers.held()))
        assert leader.log().committed == 0, "the follower has it, but not for good"
        held.set()
        want(follower.hosted())
        await until(lambda: leader.log().committed == 3)
        leader.produce(3)
        await until(lambda: leader.log().committed == 6)
        assert follower.log().flushed == 6
        await world.stop()

    walk(steps)


def test_what_a_crash_left_unsynced_is_synced_before_a_follower_claims_it() -> None:
    async def steps() -> None:
        world = World(properties=LONG_WAIT)
        await world.lead(1)
        leader, follower = world.brokers[1], world.brokers[2]
        leader.produce(4)
        await until(lambda: follower.log().next == 4)
        world.configs = {"flush.messages": "1"}
        await follower.killed()
        await until(lambda: leader.log().next == 4 and follower.log().flushed == 4)
        leader.produce(1)
        await until(lambda: follower.log().flushed == 5)
        await world.stop()

    walk(steps)


def test_offsets_that_compaction_left_out_stay_left_out_also_after_a_crash() -> None:
    """A gap between two segments of a follower is not taken for the loss of the first one's end."""

    async def steps() -> None:
        world = World(segment_bytes=1_000)
        await world.lead(1)
        leader, follower = world.brokers[1], world.brokers[2]
        for base in range(0, 400, 10):
            leader.log().append_exact(bytes(batch(3, base=base, epoch=1, value=b"x" * 100)), now=world.clock.now_ms())
            leader.hosted().grew(world.clock.now_ms())
        await until(lambda: follower.log().next == leader.log().next == 393)
        whole = contents(leader)
        assert contents(follower) == whole
        assert len(follower.log().segments) > 3
        await follower.killed()
        assert contents(follower) == whole, "nothing was cut when the log was read again"
        await world.stop()

    walk(steps)


def test_a_disk_that_fails_takes_its_partitions_out_and_leaves_the_loop_running() -> None:
    async def steps() -> None:
        world = World(partitions=2)
        await world.lead(1)
        leader, follower = world.brokers[1], world.brokers[2]
        leader.produce(1)
        await world.level()
        follower.files.fail("/data/t-0", errno.EIO)
        leader.produce(1)
        await until(lambda: follower.hosted(0).log is None)
        assert follower.failures
        assert len(follower.followers) == 0, "both lay in the directory that is offline now"
        await world.stop()

    walk(steps)


def test_a_throttle_holds_back_listed_replicas_that_are_behind_and_nobody_else() -> None:
    async def steps() -> None:
        world = World(
            partitions=2,
            topic={"follower.replication.throttled.replicas": "0:2"},
            properties={"replica.fetch.max.bytes": "4096"},
            throttle_rate=50_000,
        )
        leader, follower = world.brokers[1], world.brokers[2]
        await world.lead(1, isr=[1], told=[1])
        for partition in (0, 1):
            leader.produce(200, size=1_000, partition=partition)
        await follower.publish(world.image)
        await until(lambda: follower.log(1).next == 200)
        assert follower.log(0).next < 100, "a second's worth came through, and one fetch more"
        assert "it is throttled" in follower.followers.held().values()
        world.throttle_rate = 1 << 40
        await until(lambda: follower.log(0).next == 200)
        await world.stop()

    walk(steps)


def test_partitions_are_spread_over_as_many_loops_as_the_setting_says() -> None:
    async def steps() -> None:
        world = World(partitions=8, properties={"num.replica.fetchers": "3"})
        await world.lead(1)
        follower = world.brokers[2]
        assert sorted(len(fetcher) for fetcher in follower.followers._fetchers.values()) == [2, 3, 3]
        follower.settings._values["num.replica.fetchers"] = 2
        follower.followers._spread_anew()
        assert sorted(len(fetcher) for fetcher in follower.followers._fetchers.values()) == [4, 4]
        for partition in range(8):
            world.brokers[1].produce(1, partition=partition)
        for partition in range(8):
            await world.level(partition=partition)
        await world.stop()

    walk(steps)


def test_a_large_answer_leaves_the_loop_free_in_between() -> None:
    async def steps() -> None:
        world = World(properties=LONG_WAIT)
        await world.lead(1, told=[1])
        world.brokers[1].produce(12_000, size=10)
        follower = world.brokers[2]
        await follower.publish(world.image)
        ends: list[int] = []
        while not ends or ends[-1] < 12_000:
            await asyncio.sleep(0)
            if not ends or ends[-1] != follower.log().next:
                ends.append(follower.log().next)
        assert len(ends) > 1, "it came in pieces"
        await world.stop()

    walk(steps)


@pytest.mark.parametrize("seed", range(400 if SOAKING else 15))
def test_whatever_leaders_did_replicas_end_up_the_same(seed: int) -> None:
    """Unclean elections, cut links, restarts with and without loss, trimming, retention; then the links heal."""

    async def steps() -> None:
        random = Random(seed)
        syncs = {"flush.messages": "1"} if random.random() < 0.3 else {}
        kept = random.choice(({}, {"retention.bytes": "3000"}, {"retention.ms": "1000"}))
        world = World(3, segment_bytes=random.choice((0, 1_500, 6_000)), topic={**syncs, **kept})
        await world.lead(1)
        for _ in range(random.randrange(5, 40)):
            await disturb(world, random)
        for broker in world.brokers.values():
            broker.unreachable = False
        leader = random.choice(world.nodes)
        await world.lead(leader)
        world.brokers[leader].produce(2)
        await world.level()
        start = max(broker.log().log_start for broker in world.brokers.values())
        whole = [contents(broker, start) for broker in world.brokers.values()]
        assert whole[0] == whole[1] == whole[2]
        epochs = [broker.log().epochs.entries() for broker in world.brokers.values()]
        assert len({entries[-1] for entries in epochs}) == 1
        states = [producers_of(broker) for broker in world.brokers.values()]
        assert states[0] == states[1] == states[2] or start > 0
        asked, began = len(world.asked), asyncio.get_running_loop().time()
        await until(lambda: len(world.asked) > asked + 12)
        # Two followers that have nothing to ask for wait 20 ms each time.
        assert asyncio.get_running_loop().time() - began > 0.08, "nobody asks in vain"
        await world.stop()

    walk(steps)


async def disturb(world: World, random: Random) -> None:
    leader = next((each for each in world.brokers.values() if each.hosted().state.leading), None)
    match random.randrange(8):
        case 0 | 1 | 2 if leader is not None:
            leader.produce(
                random.randrange(1, 12),
                records=random.randrange(1, 4),
                size=random.randrange(300),
                producer=random.randrange(5),
            )
        case 3:
            broker = world.brokers[random.choice(world.nodes)]
            broker.unreachable = not broker.unreachable
        case 4:
            await world.lead(random.choice(world.nodes))
        case 5:
            node = random.choice(world.nodes)
            if leader is world.brokers[node]:
                # Its session ends before it comes back: it never goes on in the same epoch with less than it had.
                await world.lead(random.choice([other for other in world.nodes if other != node]))
            await world.brokers[node].restart(crash=random if random.random() < 0.5 else None)
        case 6 if leader is not None and random.random() < 0.3:
            log = leader.log()
            leader.trim(random.randint(log.log_start, log.committed))
        case 7:
            world.clock.advance(random.choice((10, 2_000)))
            await world.brokers[random.choice(world.nodes)].upkeep.retain()
    for _ in range(random.choice((0, 3, 30))):
        await asyncio.sleep(0)


def producers_of(broker: Any) -> dict[int, tuple[int, int]]:
    return {each.producer_id: (each.epoch, each.last_offset) for each in broker.log().producers.states()}


def contents(broker: Any, start: int | None = None) -> bytes:
    """All batches from the one that holds `start` on."""
    log = broker.log()
    whole, offset = b"", log.log_start if start is None else start
    while offset < log.written:
        read = log.read(offset, max_bytes=1 << 20, limit=log.written, at_least_one=True)
        whole += b"".join(span.read() for span in read.spans)
        offset = read.end
    return whole
