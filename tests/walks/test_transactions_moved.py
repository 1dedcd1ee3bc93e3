"""Open transactions when leaders change: what a new leader and a follower know before anybody asks them."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock.model.errors import INVALID_TXN_STATE, NONE, NOT_LEADER_OR_FOLLOWER
from penstock.model.ids import Offset
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.protocol.messages.produce import ProduceRequest, ProduceResponse
from penstock.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from penstock.server.doors import Later
from penstock.server.partitions.producing.transactions import Transactions
from penstock.storage.log import Log
from tests.walks.data_plane import batch_of
from tests.walks.houses import FETCH_VERSION, LISTENER, TOPIC, TOPIC_ID, House, Street, _future, _later, bytes_of, walk
from tests.walks.transacting import ID, READ_COMMITTED, Said, answers

PRODUCER = 70
OK = NONE.code


def log_of(house: House) -> Log:
    return house.hosted().require_log()


def send(
    house: House, sequence: int, *values: bytes, epoch: int = 0, acks: int = 1, version: int = 13
) -> asyncio.Future[ProduceResponse]:
    """A batch of a transaction."""
    batch = batch_of(
        *values, producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence, transactional=True,
        timestamp=house.clock.now_ms(),
    )  # fmt: skip
    made = ProduceRequest
    request = made(
        transactional_id=ID,
        acks=acks,
        timeout_ms=9_000,
        topic_data=[
            made.TopicProduceData(
                name=TOPIC, topic_id=TOPIC_ID, partition_data=[made.PartitionProduceData(index=0, records=batch)]
            )
        ],
    )

    async def sent() -> ProduceResponse:
        outcome: Any = house.produces.produce(request, version, lambda _topic: True, listener=LISTENER)
        if asyncio.iscoroutine(outcome):
            outcome = await outcome
        return await (_later(outcome) if isinstance(outcome, Later) else _future(outcome))

    return asyncio.ensure_future(sent())


def end(house: House, *, commit: bool, epoch: int = 1) -> asyncio.Future[list[int]]:
    made = WriteTxnMarkersRequest
    marker = made.WritableTxnMarker(
        producer_id=PRODUCER,
        producer_epoch=epoch,
        transaction_result=commit,
        topics=[made.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])],
        transaction_version=2,
    )

    async def ended() -> list[int]:
        outcome: Any = house.produces.markers.write(made(markers=[marker]), 9_000)
        reply = await outcome if isinstance(outcome, asyncio.Future) else outcome
        return [each.error_code for each in reply.markers[0].topics[0].partitions]

    return asyncio.ensure_future(ended())


def copy(leader: House, follower: House, *, to: int | None = None) -> None:
    """Brings a follower's log level with its leader's up to offset `to`, and tells the leader so."""
    source, target = log_of(leader), log_of(follower)
    limit = source.written if to is None else to
    while target.next < limit:
        read = source.read(target.next, max_bytes=1 << 20, limit=limit, at_least_one=True)
        target.append_exact(b"".join(span.read() for span in read.spans), now=follower.clock.now_ms())
    follower.hosted().state.followed(source.committed, target.written)
    follower.hosted().committed()
    leader.fetch(target.next, replica=int(follower.me))


async def read(house: House, offset: int, *, max_bytes: int = 1 << 20, wait_ms: int = 0) -> FetchResponse.PartitionData:
    """As a reader of committed records."""
    made = FetchRequest
    wanted = made.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = made(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        session_epoch=-1,
        isolation_level=READ_COMMITTED,
        topics=[made.FetchTopic(topic_id=TOPIC_ID, partitions=[wanted])],
    )
    reply = await _future(house.fetches.fetch(request, FETCH_VERSION, lambda _topic: True, LISTENER))
    return reply.responses[0].partitions[0]


def serve(house: House) -> Said:
    said = Said()
    house.produces.transactions = Transactions(house.settings, house.clock, said)
    return said


async def lead(street: Street, node: int) -> None:
    epoch = street.image.topics[TOPIC_ID].partitions[0].leader_epoch
    street.change(leader=node)
    assert street.image.topics[TOPIC_ID].partitions[0].leader_epoch == epoch + 1
    await street.publish()


def test_script_11_a_leader_moves_while_a_transaction_is_open() -> None:
    async def steps(street: Street) -> None:
        await street.create(min_insync_replicas="1")
        first, second = street[1], street[2]
        said = [serve(house) for house in (first, second)]
        for _ in range(5):
            await first.produce(acks=1)
        await send(first, 0, b"open", b"open")  # 5, 6
        copy(first, second)
        copy(first, street[3])
        copy(first, second)
        assert (log_of(first).committed, log_of(first).last_stable) == (7, 5)
        assert (log_of(second).committed, log_of(second).last_stable) == (7, 5), "a follower keeps its own"
        assert answers(await send(first, 2, b"only here")) == [(OK, 7)]

        await lead(street, 2)
        assert log_of(second).last_stable == 5, "before the first fetch"
        assert (await read(second, 5)).last_stable_offset == 5
        assert bytes_of(await read(second, 5)) == b""
        assert answers(await send(first, 3, b"too late"))[0][0] == NOT_LEADER_OR_FOLLOWER.code

        # What only the first had is cut there, and repeated here: it is no duplicate, and nobody is asked.
        assert answers(await send(second, 2, b"only here")) == [(OK, 7)]
        assert said[1].asked == []
        log_of(first).truncate(Offset(7), now=street.clock.now_ms())
        copy(second, first)
        assert log_of(first).producers.records() == log_of(second).producers.records()

        log_of(second).roll(street.clock.now_ms())
        for _ in range(3):
            await second.produce(acks=1)  # 8 to 10
        ending = end(second, commit=False)
        await street.until(lambda: log_of(second).next == 12)
        assert log_of(second).last_stable == 5, "the marker is not committed"
        copy(second, first)
        copy(second, street[3])
        assert await ending == [OK]
        assert log_of(second).last_stable == 12
        data = await read(second, 5, max_bytes=1)
        assert [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()] == [(PRODUCER, 5)]
        copy(second, first)
        on_follower = await read(first, 5, max_bytes=1)
        assert on_follower.aborted_transactions == data.aborted_transactions
        assert on_follower.last_stable_offset == 12

    walk(steps)


def test_a_reader_at_a_follower_waits_for_the_marker_to_be_committed() -> None:
    async def steps(street: Street) -> None:
        await street.create(min_insync_replicas="1")
        leader, follower = street[1], street[2]
        serve(leader)
        await send(leader, 0, b"x")
        for node in (2, 3, 2):
            copy(leader, street[node])
        waiting = asyncio.ensure_future(read(follower, 0, wait_ms=9_000))
        await street.until(lambda: follower.fetches.waiting == 1)
        ending = end(leader, commit=True)
        await street.until(lambda: log_of(leader).next == 2)
        copy(leader, follower)
        assert (log_of(follower).next, log_of(follower).last_stable) == (2, 0), "it has the marker, and others have not"
        copy(leader, street[3])
        assert await ending == [OK]
        assert not waiting.done()
        copy(leader, follower)
        assert (await waiting).last_stable_offset == 2

    walk(steps)


def test_a_guard_does_not_outlast_what_another_leader_has_written() -> None:
    async def steps(street: Street) -> None:
        await street.create(min_insync_replicas="1")
        first, second = street[1], street[2]
        said = serve(first)
        said.hold()
        waiting = send(first, 0, b"late", version=11)
        await street.until(lambda: bool(said.asked))
        await lead(street, 2)
        ending = end(second, commit=False, epoch=0)
        await street.until(lambda: log_of(second).next == 1)
        copy(second, first)
        copy(second, street[3])
        assert await ending == [OK]
        await lead(street, 1)
        said.release()
        assert answers(await waiting) == [(INVALID_TXN_STATE.code, -1)]

    walk(steps)
