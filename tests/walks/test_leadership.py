"""A leader and its followers: what is committed when, who is told, and what happens when roles change."""

from __future__ import annotations

import asyncio

from penstock.model.errors import (
    FENCED_LEADER_EPOCH,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    UNKNOWN_LEADER_EPOCH,
    ErrorCode,
    Refused,
)
from penstock.protocol.messages.fetch import FetchResponse
from penstock.protocol.messages.produce import ProduceResponse
from penstock.server.partitions.partition_driver import ROLES_AT_ONCE
from tests.walks.data_plane import data_of
from tests.walks.houses import (
    CONFIG_BROKER,
    CONFIG_TOPIC,
    LONG_MS,
    TOPIC,
    TOPIC_ID,
    House,
    Street,
    bytes_of,
    count,
    walk,
)


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def errors(reply: ProduceResponse) -> list[int]:
    return [answer.error_code for topic in reply.responses for answer in topic.partition_responses]


async def error_of(asked: asyncio.Future[FetchResponse]) -> int:
    return data_of(await asked).error_code


def high_watermark(house: House, partition: int = 0) -> int:
    return house.hosted(partition).require_log().committed


# -- committing


def test_a_produce_with_all_acks_is_answered_by_the_fetch_of_the_last_in_sync_follower() -> None:
    async def steps(street: Street) -> None:
        await street.create()
        produced = street[1].produce()
        street[1].fetch(1, replica=2)
        assert not produced.done()
        street[1].fetch(1, replica=3)
        await asyncio.sleep(0)
        assert produced.done(), "in the loop's next turn"
        assert errors(produced.result()) == [0]
        assert high_watermark(street[1]) == 1

    walk(steps)


def test_consumers_see_what_is_committed_and_followers_everything() -> None:
    async def steps(street: Street) -> None:
        await street.create()
        waiting = street[1].fetch(0, max_wait_ms=LONG_MS)
        street[1].produce()
        assert count(data_of(await street[1].fetch(0, replica=2))) == 1
        await turns()
        assert not waiting.done()
        for node in (2, 3):
            street[1].fetch(1, replica=node)
        assert count(data_of(await waiting)) == 1

    walk(steps)


def test_a_follower_waits_for_records_and_learns_the_high_watermark_with_the_next_reply() -> None:
    async def steps(street: Street) -> None:
        await street.create()
        leader = street[1]
        first = await leader.fetch(0, replica=2, session=(0, 0))
        waiting = leader.fetch(0, replica=2, session=(first.session_id, 1), names=False, max_wait_ms=LONG_MS)
        leader.produce()
        assert count(data_of(await waiting)) == 1
        waiting = leader.fetch(1, replica=2, session=(first.session_id, 2), max_wait_ms=LONG_MS)
        leader.fetch(1, replica=3)
        assert high_watermark(leader) == 1
        await turns()
        assert not waiting.done(), "a high watermark alone hurries nobody"
        leader.produce()
        assert data_of(await waiting).high_watermark == 1

    walk(steps)


def test_a_follower_from_which_consumers_read_learns_the_high_watermark_at_once() -> None:
    async def steps(street: Street) -> None:
        await street.create()
        leader = street[1]
        first = await leader.fetch(0, replica=2, session=(0, 0))
        leader.produce()
        assert count(data_of(await leader.fetch(0, replica=2, session=(first.session_id, 1), names=False))) == 1
        waiting = leader.fetch(1, replica=2, session=(first.session_id, 2), max_wait_ms=LONG_MS)
        leader.fetch(1, replica=3)
        data = data_of(await waiting)
        assert (data.high_watermark, count(data)) == (1, 0)

    walk(steps, by_rack=True)


def test_a_fetch_that_looks_again_is_not_another_fetch() -> None:
    """A follower that waits proves nothing while it waits: it may be dead for long."""

    async def steps(street: Street) -> None:
        await street.create()
        leader = street[1]
        waiting = leader.fetch(0, replica=2, max_wait_ms=LONG_MS)
        at = leader.hosted().state.followers[2].fetched_at  # type: ignore[index]  # a plain number will do
        street.clock.advance(5_000)
        leader.produce()
        await waiting
        assert leader.hosted().state.followers[2].fetched_at == at  # type: ignore[index]

    walk(steps)


def test_acks_below_all_wait_for_nobody() -> None:
    async def steps(street: Street) -> None:
        await street.create()
        assert errors(await street[1].produce(acks=1)) == [0]
        assert high_watermark(street[1]) == 0

    walk(steps)


def test_too_few_in_sync_replicas_refuse_all_acks_before_and_after_the_append() -> None:
    async def steps(street: Street) -> None:
        await street.create(min_insync_replicas="2")
        produced = street[1].produce()
        street.change(isr=[1])
        await street.publish()
        assert errors(await street[1].produce()) == [NOT_ENOUGH_REPLICAS.code]
        assert errors(await street[1].produce(acks=1)) == [0]
        assert not produced.done()
        assert high_watermark(street[1]) == 0, "it stands still below the minimum, whatever the acks"
        street.configure(CONFIG_TOPIC, TOPIC, "min_insync_replicas", "1")
        await street.publish()
        assert errors(await produced) == [0]

    walk(steps)


def test_a_set_that_shrank_below_the_minimum_after_the_commit_is_told() -> None:
    async def steps(street: Street) -> None:
        await street.create(2, min_insync_replicas="2")
        state = street[1].hosted(0).state
        produced = street[1].produce(0)
        in_sync, state.isr = state.isr, frozenset({state.me})
        state.min_isr = 1
        state.time_passed(street.clock.now_ms())
        state.min_isr = 2
        street[1].hosted(0).committed()
        state.isr = in_sync
        assert errors(await produced) == [NOT_ENOUGH_REPLICAS_AFTER_APPEND.code]

    walk(steps)


# -- losing the lead


def test_who_waits_is_told_who_leads_now_and_where() -> None:
    async def steps(street: Street) -> None:
        await street.create()
        produced, fetched = street[1].produce(), street[1].fetch(0, max_wait_ms=LONG_MS, epoch=0)
        street.change(leader=2, isr=[2, 3])
        await street.publish()
        reply = await produced
        (answer,) = reply.responses[0].partition_responses
        assert answer.error_code == NOT_LEADER_OR_FOLLOWER.code
        assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 1)
        assert [(each.node_id, each.host, each.port) for each in reply.node_endpoints] == [(2, "host-2", 9_002)]
        fetch = await fetched
        data = data_of(fetch)
        assert data.error_code == FENCED_LEADER_EPOCH.code
        assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (2, 1)
        assert [(each.node_id, each.host, each.port) for each in fetch.node_endpoints] == [(2, "host-2", 9_002)]
        late = await street[1].produce()
        assert [each.node_id for each in late.node_endpoints] == [2]

    walk(steps)


def test_what_was_lost_with_the_lead_is_not_acknowledged_when_the_lead_comes_back() -> None:
    """The other partition of the request settles only after this one was cut and written anew."""

    async def steps(street: Street) -> None:
        await street.create(2)
        produced = street[1].produce(0, 1)
        street.change(0, leader=2, isr=[2, 3])
        await street.publish()
        hosted = street[1].hosted(0)
        hosted.require_log().truncate(hosted.require_log().log_start)
        hosted.state.followed(hosted.require_log().committed, hosted.require_log().written)
        street.change(0, leader=1, isr=[1])
        await street.publish()
        await street[1].produce(0, acks=1)
        assert high_watermark(street[1], 0) == 1
        for node in (2, 3):
            street[1].fetch(1, partition=1, replica=node)
        assert errors(await produced) == [NOT_LEADER_OR_FOLLOWER.code, 0]

    walk(steps)


def test_a_commit_that_does_not_come_in_time_is_told() -> None:
    async def steps(street: Street) -> None:
        await street.create()
        assert errors(await street[1].produce(timeout_ms=20)) == [REQUEST_TIMED_OUT.code]

    walk(steps)


# -- who may fetch as a follower


def test_followers_are_checked() -> None:
    async def steps(street: Street) -> None:
        await street.create()
        street.change(replicas=[1, 2], isr=[1, 2])
        await street.publish()
        cases: list[tuple[ErrorCode, asyncio.Future[FetchResponse]]] = [
            (UNKNOWN_LEADER_EPOCH, street[1].fetch(0, replica=3, epoch=0)),
            (NOT_LEADER_OR_FOLLOWER, street[1].fetch(0, replica=3)),
            (UNKNOWN_LEADER_EPOCH, street[1].fetch(0, replica=2, epoch=1)),
            (NOT_LEADER_OR_FOLLOWER, street[1].fetch(0, replica=2, replica_epoch=street.epoch_of(2) - 1)),
            (NOT_LEADER_OR_FOLLOWER, street[2].fetch(0, replica=1)),
        ]
        for error, asked in cases:
            assert await error_of(asked) == error.code
        street.change(leader=1, isr=[1, 2])
        street.change(leader=2, isr=[1, 2])
        await street.publish()
        assert await error_of(street[2].fetch(0, replica=1, epoch=0)) == FENCED_LEADER_EPOCH.code

    walk(steps)


# -- the in-sync set


def test_a_late_follower_goes_and_comes_back() -> None:
    async def steps(street: Street) -> None:
        await street.create()
        leader = street[1]
        leader.isr.start()
        produced = leader.produce()
        street.clock.advance(41)
        leader.fetch(1, replica=2)
        assert errors(await produced) == [0]
        own, second, third = (street.epoch_of(node) for node in (1, 2, 3))
        assert street.asked_for() == [[[(1, own), (2, second)]]]
        leader.fetch(1, replica=3)
        await street.until(lambda: len(street.asked) == 2)
        assert street.asked_for()[1] == [[(1, own), (2, second), (3, third)]]
        await street.until(lambda: leader.isr.expands == 1)
        assert (leader.hosted().state.isr, leader.isr.shrinks) == ({1, 2, 3}, 1)

    walk(steps, lag_ms=40)


def test_changes_are_asked_for_together_one_request_at_a_time() -> None:
    async def steps(street: Street) -> None:
        await street.create(4, isr=(1,))
        leader = street[1]
        street.held = asyncio.Event()
        leader.fetch(0, partition=0, replica=2)
        await street.until(lambda: len(street.asked) == 1)
        for partition in (1, 2, 3):
            leader.fetch(0, partition=partition, replica=2)
        leader.fetch(0, partition=0, replica=3)
        await turns()
        assert len(street.asked) == 1
        street.held.set()
        await street.until(lambda: leader.isr.expands == 5)
        # C came up while B's change of partition 0 was under way; nobody has to fetch again for that.
        assert [sorted(map(len, request)) for request in street.asked_for()] == [[2], [2, 2, 2, 3]]

    walk(steps)


def test_a_change_without_an_answer_is_asked_for_again_as_it_was() -> None:
    async def steps(street: Street) -> None:
        await street.create(isr=(1,))
        leader = street[1]
        street.answers = [Refused(REQUEST_TIMED_OUT), NOT_LEADER_OR_FOLLOWER]
        leader.fetch(0, replica=2)
        leader.produce(acks=1)
        await street.until(lambda: leader.isr.expands == 1)
        assert len(street.asked) == 3
        assert street.asked[0] == street.asked[1] == street.asked[2]
        assert leader.hosted().state.isr == {1, 2}

    walk(steps)


def test_a_change_that_the_metadata_has_overtaken_is_not_asked_for_again() -> None:
    async def steps(street: Street) -> None:
        await street.create(isr=(1,))
        leader = street[1]
        street.answers = [Refused(REQUEST_TIMED_OUT)]
        leader.fetch(0, replica=2)
        await street.until(lambda: leader.isr.failures == 1)
        street.change(isr=[1, 3])
        await street.publish()
        assert leader.hosted().state.isr == {1, 3}
        await street.until(lambda: leader.isr._sending is None)
        assert len(street.asked) == 1

    walk(steps)


def test_a_follower_whose_broker_is_fenced_does_not_come_in_and_holds_nobody_up() -> None:
    async def steps(street: Street) -> None:
        await street.create(isr=(1,))
        leader = street[1]
        leader.isr.start()
        leader.fetch(0, replica=2)
        await street.until(lambda: leader.isr.expands == 1)
        street.register(2, fenced=True)
        street.change(isr=[1])
        produced = leader.produce()
        assert not produced.done()
        await street.publish()
        assert errors(await produced) == [0]
        leader.fetch(1, replica=2)
        await turns()
        assert len(street.asked) == 1

    walk(steps)


# -- roles


def test_a_partition_follows_whoever_leads_it() -> None:
    async def steps(street: Street) -> None:
        await street.create()
        calls = street[2].following.calls
        assert calls == [("follow 1@0", "orders-0")]
        street.change(isr=[1, 2])
        await street.publish()
        assert len(calls) == 1, "the leader is the same"
        street.change(leader=3, isr=[2, 3])
        await street.publish()
        street.change(leader=2, isr=[2, 3])
        await street.publish()
        street.change(leader=-1)
        await street.publish()
        assert [what for what, _ in calls] == ["follow 1@0", "follow 3@1", "leave", "leave"]

    walk(steps)


def test_many_roles_change_in_slices_and_a_request_does_not_wait_for_its_turn() -> None:
    async def steps(street: Street) -> None:
        partitions = 2 * ROLES_AT_ONCE
        await street.create(partitions)
        for index in range(partitions):
            street.change(index, leader=2)
        house = street[2]
        taking = asyncio.get_running_loop().create_task(house.take(street.image))
        await asyncio.sleep(0)
        assert errors(await house.produce(partitions - 1, acks=1)) == [0]
        await taking
        assert all(hosted.state.leading and not hosted.behind for hosted in house.partitions)

    walk(steps)


def test_a_replica_that_was_given_to_others_goes_with_its_log() -> None:
    async def steps(street: Street) -> None:
        await street.create()
        street.change(replicas=[1, 2], isr=[1, 2], directories=[bytes(16)] * 2)
        await street.publish()
        assert len(street[3].partitions) == 0
        assert not street[3].store.logs
        assert street[3].following.calls[-1] == ("leave", "orders-0")

    walk(steps)


def test_a_replica_that_comes_by_a_reassignment_starts_as_a_follower() -> None:
    async def steps(street: Street) -> None:
        await street.create()
        street.change(replicas=[1, 2], isr=[1, 2], directories=[bytes(16)] * 2)
        await street.publish()
        street.change(replicas=[1, 2, 3], isr=[1, 2], adding_replicas=[3], directories=[bytes(16)] * 3)
        await street.publish()
        assert street[3].following.calls[-1] == ("follow 1@0", "orders-0")
        street[1].fetch(0, replica=3)
        await street.until(lambda: street[1].isr.expands == 1)
        assert street[1].hosted().state.isr == {1, 2, 3}

    walk(steps)


def test_where_brokers_are_reached_is_in_the_published_image() -> None:
    async def steps(street: Street) -> None:
        await street.publish()
        address = street[1].partitions.address_of(street[2].me)
        assert address == ("host-2", 9_002)
        street.register(2, fenced=True)
        await street.publish()
        assert street[1].partitions.address_of(street[2].me) is None

    walk(steps)


# -- reading near


def test_a_consumer_is_sent_to_the_replica_in_its_rack() -> None:
    async def steps(street: Street) -> None:
        await street.create()
        leader = street[1]
        leader.produce()
        for node in (2, 3):
            leader.fetch(1, replica=node)
        data = data_of(await leader.fetch(0, rack="rack-2", max_wait_ms=LONG_MS))
        assert (data.preferred_read_replica, count(data)) == (2, 0)
        for rack in ("rack-1", "rack-9", ""):
            data = data_of(await leader.fetch(0, rack=rack))
            assert (data.preferred_read_replica, count(data)) == (-1, 1)

    walk(steps, by_rack=True)


def test_a_follower_serves_consumers_up_to_its_own_high_watermark() -> None:
    async def steps(street: Street) -> None:
        await street.create()
        street[1].produce()
        copied = bytes_of(data_of(await street[1].fetch(0, replica=2)))
        hosted = street[2].hosted()
        hosted.require_log().append_exact(copied, now=street.clock.now_ms())
        assert count(data_of(await street[2].fetch(0, rack="rack-2"))) == 0
        assert hosted.state.followed(hosted.require_log().written, hosted.require_log().written)
        hosted.committed()
        assert count(data_of(await street[2].fetch(0, rack="rack-2"))) == 1

    walk(steps, by_rack=True)


# -- throttles and deletions


def test_a_throttled_follower_is_left_without_records_until_its_rate_allows_them() -> None:
    async def steps(street: Street) -> None:
        await street.create(isr=(1,), leader_replication_throttled_replicas="0:1")
        street.configure(CONFIG_BROKER, "1", "leader_replication_throttled_rate", "10")
        await street.publish()
        leader = street[1]
        for _ in range(2):
            leader.produce(acks=1)
        assert count(data_of(await leader.fetch(0, replica=2))) == 2, "nothing was counted before"
        data = data_of(await leader.fetch(0, replica=2))
        assert (data.error_code, count(data)) == (0, 0)
        assert count(data_of(await leader.fetch(0))) == 2, "consumers are not throttled"
        street.clock.advance(60_000)
        assert count(data_of(await leader.fetch(0, replica=2))) == 2

    walk(steps)


def test_records_are_deleted_when_every_live_replica_has_come_along() -> None:
    async def steps(street: Street) -> None:
        await street.create()
        leader = street[1]
        leader.produce()
        for node in (2, 3):
            leader.fetch(1, replica=node)
        deleted = leader.partitions.delete_records(TOPIC, 0, -1, LONG_MS)
        assert isinstance(deleted, asyncio.Future)
        leader.fetch(1, replica=2, log_start=1)
        assert not deleted.done()
        leader.fetch(1, replica=3, log_start=1)
        assert await deleted == 1
        await turns()
        assert leader.partitions.by_id(TOPIC_ID, 0).waiting_deletion == []

    walk(steps)
