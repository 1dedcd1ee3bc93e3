"""Fetches as clients see them: waiting, limits, sessions, and topics that come and go meanwhile."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from penstock import Admin
from penstock.client.cluster_view import ClusterView
from penstock.model.errors import (
    FENCED_LEADER_EPOCH,
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_COMPRESSION_TYPE,
    UNSUPPORTED_VERSION,
)
from penstock.model.ids import uuid_parse
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.server.partitions.fetching.reading import Ask
from penstock.testing import EmbeddedBroker, broker
from tests.walks.data_plane import BY_ID, Client, Machine, at, data_of, errors, records_in, sizes, told, walk, without

LONG_MS = 9_000
"""Longer than any test waits: what is answered before was answered for another reason."""

FULL, FINAL = 0, -1


async def turns(count: int = 20) -> None:
    """Lets everything that is on its way arrive, as far as no timer is needed."""
    for _ in range(count):
        await asyncio.sleep(0.001)


# -- waiting


def test_a_fetch_waits_until_there_is_something_to_read() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        other = await machine.dial()
        fetch = client.fetch(at("orders", 0), max_wait_ms=LONG_MS)
        await turns()
        assert not fetch.done()
        await other.produce("orders", b"first")
        assert [record.value for record in records_in(data_of(await fetch))] == [b"first"]

    walk(steps)


def test_a_fetch_waits_for_min_bytes() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        other = await machine.dial()
        fetch = client.fetch(at("orders", 0), max_wait_ms=LONG_MS, min_bytes=2_500)
        for _ in range(2):
            await other.produce("orders", bytes(1_000))
            await turns()
            assert not fetch.done()
        await other.produce("orders", bytes(1_000))
        assert len(records_in(data_of(await fetch))) == 3

    walk(steps)


def test_a_fetch_that_waited_long_enough_gets_what_there_is() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await client.produce("orders", b"small")
        reply = await client.fetch(at("orders", 0), max_wait_ms=50, min_bytes=1 << 20)
        assert [record.value for record in records_in(data_of(reply))] == [b"small"]
        empty = data_of(await client.fetch(at("orders", 1), max_wait_ms=50))
        assert (empty.error_code, empty.high_watermark, bytes(empty.records or b"")) == (0, 1, b"")

    walk(steps)


def test_min_bytes_of_0_waits_for_nothing() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        reply = await client.fetch(at("orders", 0), max_wait_ms=LONG_MS, min_bytes=0)
        assert told(reply) == [("orders", 0)]

    walk(steps)


def test_an_error_is_told_at_once() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", 2)
        await client.produce("orders", b"x")
        reply = await client.fetch(at("orders", 0, 1), at("orders", 99), max_wait_ms=LONG_MS)
        assert sorted(errors(reply)) == [0, OFFSET_OUT_OF_RANGE.code]

    walk(steps)


def test_an_error_tells_no_ends() -> None:
    """Who is told that an offset is out of range asks ListOffsets; what has no log to look at has no records either."""

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", 4)
        for partition in range(4):
            await client.produce("orders", b"x", partition=partition)
        asked = [
            at("orders", 99, 0), at("orders", -5, 1), at("orders", 0, 2, current_leader_epoch=9), at("orders", 0, 77),
            at("missing", 0),
        ]  # fmt: skip
        reply = await client.fetch(*asked)
        found = {(topic.topic, data.partition_index): data for topic in reply.responses for data in topic.partitions}
        data, nothing = FetchResponse.PartitionData, memoryview(b"")
        read = {0: OFFSET_OUT_OF_RANGE, 1: OFFSET_OUT_OF_RANGE, 2: UNKNOWN_LEADER_EPOCH}
        assert found == {
            **{
                ("orders", index): data(
                    partition_index=index,
                    error_code=error.code,
                    high_watermark=-1,
                    aborted_transactions=None,
                    records=nothing,
                )
                for index, error in read.items()
            },
            **{
                (topic, index): data(
                    partition_index=index,
                    error_code=UNKNOWN_TOPIC_OR_PARTITION.code,
                    high_watermark=-1,
                    records=None,
                )
                for topic, index in (("orders", 77), ("missing", 0))
            },
        }
        assert {(each.last_stable_offset, each.log_start_offset) for each in found.values()} == {(-1, -1)}

    walk(steps)


def test_an_unknown_topic_does_not_hurry_a_fetch_that_has_others() -> None:
    """Otherwise a consumer of a deleted topic would ask again and again without a pause."""

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        other = await machine.dial()
        fetch = client.fetch(at("orders", 0), at("missing", 0), max_wait_ms=LONG_MS)
        await turns()
        assert not fetch.done()
        await other.produce("orders", b"x")
        assert sorted(errors(await fetch)) == [0, UNKNOWN_TOPIC_OR_PARTITION.code]
        alone = await client.fetch(at("missing", 0), max_wait_ms=LONG_MS)
        assert errors(alone) == [UNKNOWN_TOPIC_OR_PARTITION.code]

    walk(steps)


def test_a_topic_deleted_under_a_waiting_fetch_ends_the_wait() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        topic_id = await client.create("doomed")
        by_id, admin = await machine.dial(), await machine.dial()
        fetches = [
            client.fetch(at("doomed", 0), max_wait_ms=LONG_MS),
            by_id.fetch(at(topic_id, 0), max_wait_ms=LONG_MS, version=BY_ID),
        ]
        await turns()
        await admin.delete("doomed")
        named, identified = await asyncio.gather(*fetches)
        assert errors(named) == [UNKNOWN_TOPIC_OR_PARTITION.code]
        assert errors(identified) == [UNKNOWN_TOPIC_ID.code]

    walk(steps)


def test_a_waiting_fetch_ends_with_its_connection() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        for session in ((0, FINAL), (0, FULL)):
            guest = await machine.dial()
            fetch = guest.fetch(at("orders", 0), max_wait_ms=2**31 - 1, session=session)
            await turns()
            assert machine.node.broker.fetches.waiting == 1
            guest.reset()
            await asyncio.gather(fetch, return_exceptions=True)
            await turns()
            assert machine.node.broker.fetches.waiting == 0
        await client.produce("orders", b"x")

    walk(steps)


# -- limits


def test_a_batch_larger_than_every_limit_comes_whole() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await client.produce("orders", bytes(50_000))
        await client.produce("orders", b"next")
        reply = await client.fetch(at("orders", 0, partition_max_bytes=10), max_bytes=1)
        assert [len(record.value or b"") for record in records_in(data_of(reply))] == [50_000]

    walk(steps)


def test_only_the_first_partition_with_data_may_go_over_the_limit() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", 3)
        for partition in (1, 2):
            await client.produce("orders", bytes(5_000), partition=partition)
        wanted = [at("orders", 0, partition) for partition in range(3)]
        reply = await client.fetch(*wanted, max_bytes=10)
        assert list(sizes(reply)) == [("orders", 1)], "an empty partition does not use up the exception"
        assert len(told(reply)) == 3

    walk(steps)


def test_limits_cut_between_batches() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        for number in range(10):
            await client.produce("orders", b"%04d" % number + bytes(1_000))
        reply = await client.fetch(at("orders", 2, partition_max_bytes=3_500))
        assert [record.offset for record in records_in(data_of(reply))] == [2, 3, 4]

    walk(steps)


def test_the_broker_has_a_limit_of_its_own() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", 2)
        for partition in range(2):
            await client.produce("orders", bytes(1_500), partition=partition)
        reply = await client.fetch(at("orders", 0, 0), at("orders", 0, 1))
        assert list(sizes(reply)) == [("orders", 0)]

    walk(steps, fetch_max_bytes="1024")


# -- leader epochs


def test_a_stale_or_future_leader_epoch_is_refused() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await machine.stop()
        await machine.start()
        client = await machine.dial()
        (current,) = [hosted.state.epoch for hosted in machine.node.partitions]
        assert current > 0, "a restart begins a new epoch"
        for claimed, error in (
            (current - 1, FENCED_LEADER_EPOCH),
            (current + 1, UNKNOWN_LEADER_EPOCH),
            (current, NONE),
        ):
            reply = await client.fetch(at("orders", 0, current_leader_epoch=claimed))
            assert errors(reply) == [error.code]

    walk(steps)


@pytest.mark.parametrize("epoch", [-1, 0])
def test_a_broker_that_is_no_replica_is_told_who_leads_and_knows_where_that_is(epoch: int) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        wanted = at(await client.create("orders"), 0)
        wanted.partitions[0].current_leader_epoch = epoch
        request = FetchRequest(max_wait_ms=0, topics=[wanted])
        request.replica_state = FetchRequest.ReplicaState(replica_id=9, replica_epoch=1)
        reply = await client.ask(request, 16)
        told = (UNKNOWN_LEADER_EPOCH.code, -1) if epoch == 0 else (NOT_LEADER_OR_FOLLOWER.code, 1)
        assert (data_of(reply).error_code, data_of(reply).current_leader.leader_id) == told
        assert reply.node_endpoints == []

    walk(steps)


def test_a_client_whose_log_went_another_way_is_told_where() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await client.produce("orders", b"x", b"y")
        (epoch,) = [hosted.state.epoch for hosted in machine.node.partitions]
        reply = await client.fetch(at("orders", 5, last_fetched_epoch=epoch), max_wait_ms=LONG_MS)
        assert data_of(reply).diverging_epoch == FetchResponse.EpochEndOffset(epoch=epoch, end_offset=2)

    walk(steps)


def test_a_session_is_told_of_a_divergence_in_a_version_that_has_no_word_for_it() -> None:
    """It named its last epoch in a newer version; the answer could not be written, and was UNKNOWN_SERVER_ERROR."""

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await client.produce("orders", b"x", b"y")
        (epoch,) = [hosted.state.epoch for hosted in machine.node.partitions]
        begun = await client.fetch(at("orders", 5, last_fetched_epoch=epoch), session=(0, 0))
        await client.produce("orders", b"z")
        later = await client.fetch(session=(begun.session_id, 1), version=10)
        assert (later.error_code, errors(later)) == (0, [UNSUPPORTED_VERSION.code])

    walk(steps)


def test_clients_that_cannot_read_zstd_are_told_so() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("packed", compression_type="zstd")
        await client.produce("packed", b"x")
        assert errors(await client.fetch(at("packed", 0), version=9)) == [UNSUPPORTED_COMPRESSION_TYPE.code]
        assert errors(await client.fetch(at("packed", 0), version=10)) == [0]

    walk(steps)


# -- sessions


async def opened(client: Client, *wanted: tuple[str, int]) -> int:
    """A new session on these partitions from offset 0 on; its id."""
    reply = await client.fetch(*(at(topic, 0, partition) for topic, partition in wanted), session=(0, FULL))
    assert reply.session_id > 0
    assert told(reply) == list(wanted), "a full fetch tells about everything"
    return reply.session_id


def test_a_session_tells_only_what_changed() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", 3)
        session = await opened(client, ("orders", 0), ("orders", 1), ("orders", 2))
        assert told(await client.fetch(session=(session, 1))) == []
        await client.produce("orders", b"x", partition=1)
        reply = await client.fetch(session=(session, 2))
        assert (reply.session_id, told(reply)) == (session, [("orders", 1)])
        assert [record.value for record in records_in(data_of(reply))] == [b"x"]
        moved_on = await client.fetch(at("orders", 1, 1), session=(session, 3))
        assert told(moved_on) == []

    walk(steps)


def test_a_session_tells_a_high_watermark_that_moved_without_data_for_this_fetch() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        session = await opened(client, ("orders", 0))
        await client.produce("orders", b"x", b"y")
        reply = await client.fetch(at("orders", 2), session=(session, 1))
        assert (data_of(reply).high_watermark, bytes(data_of(reply).records or b"")) == (2, b"")
        assert told(await client.fetch(session=(session, 2))) == []

    walk(steps)


def test_what_was_not_asked_for_again_is_sent_again() -> None:
    """A client that did not take what it was sent asks at the same offset: the session must not think it did."""

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        session = await opened(client, ("orders", 0))
        await client.produce("orders", b"x")
        for epoch in (1, 2):
            reply = await client.fetch(session=(session, epoch))
            assert [record.value for record in records_in(data_of(reply))] == [b"x"]

    walk(steps)


def test_a_session_waits_and_wakes() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", 2)
        session = await opened(client, ("orders", 0), ("orders", 1))
        other = await machine.dial()
        fetch = client.fetch(session=(session, 1), max_wait_ms=LONG_MS)
        await turns()
        assert not fetch.done()
        await other.produce("orders", b"x", partition=1)
        assert told(await fetch) == [("orders", 1)]

    walk(steps)


def test_forgotten_partitions_are_told_no_more() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", 2)
        session = await opened(client, ("orders", 0), ("orders", 1))
        for partition in range(2):
            await client.produce("orders", b"x", partition=partition)
        reply = await client.fetch(session=(session, 1), forgotten=[without("orders", 0)])
        assert told(reply) == [("orders", 1)]
        back = await client.fetch(at("orders", 0, 0), session=(session, 2))
        assert sorted(told(back)) == [("orders", 0), ("orders", 1)]

    walk(steps)


@pytest.mark.parametrize("session", [(0, -1), (0, 0)])
def test_a_fetch_that_names_all_it_wants_forgets_nothing(session: tuple[int, int]) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await client.produce("orders", b"x")
        reply = await client.fetch(at("orders", 0), session=session, forgotten=[without("orders", 0)])
        assert told(reply) == [("orders", 0)]

    walk(steps)


def test_a_session_with_everything_forgotten_is_over() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        session = await opened(client, ("orders", 0))
        reply = await client.fetch(session=(session, 1), forgotten=[without("orders", 0)], max_wait_ms=LONG_MS)
        assert (reply.error_code, reply.session_id, reply.responses) == (0, 0, [])
        gone = await client.fetch(session=(session, 2))
        assert gone.error_code == FETCH_SESSION_ID_NOT_FOUND.code

    walk(steps)


def test_sessions_are_fenced_by_id_epoch_and_kind_of_name() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        session = await opened(client, ("orders", 0))
        for asked, version, error in (
            ((session + 1, 1), 12, FETCH_SESSION_ID_NOT_FOUND),
            ((session, 2), 12, INVALID_FETCH_SESSION_EPOCH),
            ((session, 1), BY_ID, FETCH_SESSION_TOPIC_ID_ERROR),
            ((session, 1), 12, NONE),
            ((session, 1), 12, INVALID_FETCH_SESSION_EPOCH),
        ):
            reply = await client.fetch(session=asked, version=version)
            assert (reply.error_code, reply.responses) == (error.code, [])

    walk(steps)


def test_the_final_epoch_closes_a_session_and_answers_in_full() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        session = await opened(client, ("orders", 0))
        reply = await client.fetch(at("orders", 0), session=(session, FINAL))
        assert (reply.session_id, told(reply)) == (0, [("orders", 0)])
        assert (await client.fetch(session=(session, 1))).error_code == FETCH_SESSION_ID_NOT_FOUND.code

    walk(steps)


def test_a_session_that_was_left_behind_ends_when_another_begins() -> None:
    """A follower that was killed, or whose leader moved, never says goodbye."""

    async def steps(node: EmbeddedBroker) -> list[int]:
        async with (
            Admin(bootstrap_servers=node.bootstrap_servers) as admin,
            ClusterView(node.bootstrap_servers) as view,
        ):
            orders = uuid_parse(await admin.create_topic("orders"))
            wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)
            topic = FetchRequest.FetchTopic(topic_id=orders, partitions=[wanted])
            left = await view.ask(1, FetchRequest(session_epoch=FULL, topics=[topic]))
            errors = []
            for advance_ms in (60_000, 121_000):
                node.advance(ms=advance_ms)
                await view.ask(1, FetchRequest(session_epoch=FULL, topics=[topic]))
                gone = await view.ask(1, FetchRequest(session_id=left.session_id, session_epoch=len(errors) + 1))
                errors.append(gone.error_code)
            return errors

    with broker() as node:
        assert asyncio.run(steps(node)) == [NONE.code, FETCH_SESSION_ID_NOT_FOUND.code]


def test_a_new_full_fetch_replaces_the_old_session() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        session = await opened(client, ("orders", 0))
        reply = await client.fetch(at("orders", 0), session=(session, FULL))
        assert reply.session_id not in (0, session)
        assert machine.node.broker.fetches.session_count == 1

    walk(steps)


def test_when_all_slots_are_taken_fetches_go_on_without_a_session() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        session = await opened(client, ("orders", 0))
        guest = await machine.dial()
        reply = await guest.fetch(at("orders", 0), session=(0, FULL))
        assert (reply.session_id, told(reply)) == (0, [("orders", 0)])
        assert (await client.fetch(session=(session, 1))).error_code == 0, "who has a session keeps it"

    walk(steps, max_incremental_fetch_session_cache_slots="1")


def test_small_limits_starve_no_partition() -> None:
    """Each reply has room for one partition; all get their turn, although the client only asks for what it got."""

    async def steps(machine: Machine, client: Client) -> None:
        partitions = 5
        await client.create("orders", partitions)
        session = await opened(client, *(("orders", partition) for partition in range(partitions)))
        for partition in range(partitions):
            for _ in range(6):
                await client.produce("orders", bytes(1_000), partition=partition)
        positions = dict.fromkeys(range(partitions), 0)
        moved: list[int] = []
        for epoch in range(1, 4 * partitions + 1):
            asked = [at("orders", positions[partition], partition) for partition in moved[-1:]]
            reply = await client.fetch(*asked, session=(session, epoch), max_bytes=1_100)
            ((_, partition),) = sizes(reply)
            moved.append(partition)
            positions[partition] += 1
        assert all(positions[partition] == 4 for partition in positions), positions
        assert all(before != after for before, after in pairwise(moved))

    walk(steps)


# -- topics that come and go


def test_a_topic_created_again_is_another_one() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        old = await client.create("orders")
        await client.produce("orders", b"old")
        await client.delete("orders")
        new = await client.create("orders")
        await client.produce("orders", b"new")
        assert errors(await client.fetch(at(old, 0), version=BY_ID)) == [UNKNOWN_TOPIC_ID.code]
        for wanted, version in ((at("orders", 0), 12), (at(new, 0), BY_ID)):
            reply = await client.fetch(wanted, version=version)
            assert [record.value for record in records_in(data_of(reply))] == [b"new"]

    walk(steps)


def test_a_session_by_name_goes_on_with_the_topic_that_was_created_again() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        session = await opened(client, ("orders", 0))
        other = await machine.dial()
        await other.delete("orders")
        assert errors(await client.fetch(session=(session, 1))) == [UNKNOWN_TOPIC_OR_PARTITION.code]
        await other.create("orders")
        assert errors(await client.fetch(session=(session, 2))) == [0]
        fetch = client.fetch(session=(session, 3), max_wait_ms=LONG_MS)
        await turns()
        await other.produce("orders", b"new")
        assert [record.value for record in records_in(data_of(await fetch))] == [b"new"]

    walk(steps)


def test_a_session_by_id_never_sees_the_topic_that_was_created_again() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        old = await client.create("orders")
        reply = await client.fetch(at(old, 0), session=(0, FULL), version=BY_ID)
        other = await machine.dial()
        await other.delete("orders")
        await other.create("orders")
        await other.produce("orders", b"new")
        for epoch in (1, 2):
            again = await client.fetch(session=(reply.session_id, epoch), version=BY_ID)
            assert errors(again) == [UNKNOWN_TOPIC_ID.code], "an error is told until the client forgets the partition"

    walk(steps)


def test_a_partition_that_was_unknown_is_read_once_it_is_there() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        reply = await client.fetch(at("orders", 0), session=(0, FULL))
        assert errors(reply) == [UNKNOWN_TOPIC_OR_PARTITION.code]
        other = await machine.dial()
        await other.create("orders")
        assert errors(await client.fetch(session=(reply.session_id, 1))) == [0]
        fetch = client.fetch(session=(reply.session_id, 2), max_wait_ms=LONG_MS)
        await turns()
        await other.produce("orders", b"x")
        assert [record.value for record in records_in(data_of(await fetch))] == [b"x"]

    walk(steps)


def test_uncommitted_readers_are_told_no_aborted_transactions_and_committed_ones_a_list() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        await client.produce("orders", b"x")
        assert data_of(await client.fetch(at("orders", 0))).aborted_transactions is None
        assert data_of(await client.fetch(at("orders", 0), isolation_level=1)).aborted_transactions == []

    walk(steps)


# -- what breaks


def test_a_waiting_fetch_that_breaks_costs_its_own_connection_and_the_others_are_answered() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        other = await machine.dial()
        fetches = machine.node.broker.fetches
        finish, broken = fetches._finish, []

        def once(ask: Ask, reply: FetchResponse) -> FetchResponse:
            if not broken:
                broken.append(ask)
                raise RuntimeError("planted")
            return finish(ask, reply)

        first = client.fetch(at("orders", 0), max_wait_ms=500)
        second = other.fetch(at("orders", 0), max_wait_ms=500)
        await turns()
        assert fetches.waiting == 2
        fetches._finish = once  # type: ignore[method-assign]
        ended = await asyncio.gather(first, second, return_exceptions=True)
        assert [isinstance(each, FetchResponse) and each.error_code == NONE.code for each in ended].count(True) == 1
        assert fetches.waiting == 0

    walk(steps)
