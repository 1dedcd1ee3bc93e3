"""Transactions as producers, coordinators and readers see them on one node."""

from __future__ import annotations

import asyncio

import pytest

from penstock.kernels import read_header, scan_batches
from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_TXN_STATE,
    NETWORK_EXCEPTION,
    NONE,
    NOT_COORDINATOR,
    NOT_ENOUGH_REPLICAS,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    PRODUCER_FENCED,
    TRANSACTION_ABORTABLE,
    TRANSACTION_COORDINATOR_FENCED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
    ErrorCode,
)
from penstock.model.ids import Epoch
from penstock.protocol.messages.describe_producers import DescribeProducersRequest
from penstock.protocol.messages.list_offsets import ListOffsetsRequest
from penstock.protocol.messages.produce import ProduceRequest
from penstock.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from penstock.replication.verifying import VerifyMode
from penstock.storage.log import Log
from tests.patience import until
from tests.walks.data_plane import Client, Machine, at, batch_of, data_of, produce_request, walk
from tests.walks.transacting import (
    ID,
    READ_COMMITTED,
    Transactional,
    answers,
    mark,
    read_committed,
    serve_transactions,
)

LATEST = -1
ORDERS = ("orders", 0)
OK = NONE.code


def log_of(machine: Machine, topic: str = "orders", partition: int = 0) -> Log:
    return machine.node.partitions.named(topic, partition).require_log()


# -- producing


def test_batches_of_a_transaction_that_no_coordinator_knows_of_are_not_written() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        assert await Transactional(client).send("orders", b"x") == [(NOT_ENOUGH_REPLICAS.code, -1)], "nobody to ask"
        assert await client.values("orders") == []

    walk(steps)


@pytest.mark.parametrize(
    ("version", "mode"),
    [
        (9, VerifyMode.VERIFY),
        (10, VerifyMode.VERIFY),
        (11, VerifyMode.VERIFY_ABORTABLE),
        (12, VerifyMode.ADD),
        (13, VerifyMode.ADD),
    ],
)
def test_the_coordinator_is_asked_about_the_first_batch_of_a_transaction_only(version: int, mode: VerifyMode) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        said = serve_transactions(machine)
        await client.create("orders", 3)
        producer = Transactional(client, version=version)
        assert await producer.send("orders", b"a", partitions=(0, 2)) == [(OK, 0), (OK, 0)]
        assert await producer.send("orders", b"b", partitions=(0, 1)) == [(OK, 1), (OK, 0)]
        assert said.asked == [
            (ID, producer.id, 0, [("orders", 0), ("orders", 2)], mode),
            (ID, producer.id, 0, [("orders", 1)], mode),
        ]

    walk(steps)


ADDING, ABORTABLE, OLD = 12, 11, 10
REFUSALS = [
    (PRODUCER_FENCED, dict.fromkeys((OLD, ABORTABLE, ADDING), INVALID_PRODUCER_EPOCH)),
    (INVALID_PRODUCER_ID_MAPPING, dict.fromkeys((OLD, ABORTABLE, ADDING), INVALID_PRODUCER_ID_MAPPING)),
    (TRANSACTION_ABORTABLE, {OLD: INVALID_TXN_STATE, ABORTABLE: TRANSACTION_ABORTABLE, ADDING: TRANSACTION_ABORTABLE}),
    (CONCURRENT_TRANSACTIONS, {OLD: NOT_ENOUGH_REPLICAS, ABORTABLE: NOT_ENOUGH_REPLICAS}),
    (COORDINATOR_LOAD_IN_PROGRESS, dict.fromkeys((OLD, ABORTABLE, ADDING), NOT_ENOUGH_REPLICAS)),
    (COORDINATOR_NOT_AVAILABLE, dict.fromkeys((OLD, ABORTABLE, ADDING), NOT_ENOUGH_REPLICAS)),
    (NOT_COORDINATOR, dict.fromkeys((OLD, ABORTABLE, ADDING), NOT_ENOUGH_REPLICAS)),
    (NETWORK_EXCEPTION, dict.fromkeys((OLD, ABORTABLE, ADDING), NOT_ENOUGH_REPLICAS)),
    (None, dict.fromkeys((OLD, ABORTABLE, ADDING), NOT_ENOUGH_REPLICAS)),
    (CLUSTER_AUTHORIZATION_FAILED, dict.fromkeys((OLD, ABORTABLE, ADDING), INVALID_TXN_STATE)),
    (UNSUPPORTED_VERSION, dict.fromkeys((OLD, ABORTABLE, ADDING), NOT_ENOUGH_REPLICAS)),
]


@pytest.mark.parametrize(
    ("answer", "version", "told"),
    [(answer, version, told) for answer, by_version in REFUSALS for version, told in by_version.items()],
)
def test_what_a_producer_is_told_of_the_coordinators_answer(
    answer: ErrorCode | None, version: int, told: ErrorCode
) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        said = serve_transactions(machine)
        await client.create("orders", 2)
        said.answers["orders", 0] = [answer]
        producer = Transactional(client, version=version)
        (first, _), second = await producer.send("orders", b"x", partitions=(0, 1))
        assert (first, second) == (told.code, (OK, 0)), "the other partition is written"
        assert log_of(machine).next == (1 if told is NONE else 0)

    walk(steps)


def test_a_transaction_that_still_ends_is_asked_about_again_within_the_produce() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        said = serve_transactions(machine)
        await client.create("orders", 2)
        said.answers[ORDERS] = [CONCURRENT_TRANSACTIONS] * 3
        assert await Transactional(client).send("orders", b"x", partitions=(0, 1)) == [(OK, 0), (OK, 0)]
        assert [places for _, _, _, places, _ in said.asked] == [[ORDERS, ("orders", 1)], [ORDERS], [ORDERS], [ORDERS]]

    walk(steps, add_partitions_to_txn_retry_backoff_ms="1", add_partitions_to_txn_retry_backoff_max_ms="60000")


def test_a_transaction_that_does_not_come_to_its_end_is_told_to_the_producer() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        said = serve_transactions(machine)
        await client.create("orders")
        said.answers[ORDERS] = [CONCURRENT_TRANSACTIONS] * 1_000
        assert await Transactional(client).send("orders", b"x") == [(CONCURRENT_TRANSACTIONS.code, -1)]
        assert 2 <= len(said.asked) <= 10, "pauses of 1, 2, 4 ms and so on, up to 20, for 100 ms"
        assert log_of(machine).next == 0

    walk(steps)


def test_verification_may_be_switched_off_but_adding_may_not() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        said = serve_transactions(machine)
        await client.create("orders")
        assert await Transactional(client, version=ABORTABLE).send("orders", b"x") == [(OK, 0)]
        assert said.asked == []
        assert await Transactional(client).send("orders", b"y") == [(OK, 1)]
        assert [mode for *_, mode in said.asked] == [VerifyMode.ADD]

    walk(steps, transaction_partition_verification_enable="false")


def test_two_producers_in_one_request_are_refused_whole() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        said = serve_transactions(machine)
        await client.create("orders", 2)
        one, other = Transactional(client), Transactional(client)
        request = one.request("orders", b"x")
        request.topic_data[0].partition_data += (
            other.request("orders", b"y", partitions=(1,)).topic_data[0].partition_data
        )
        refused = (INVALID_PRODUCER_ID_MAPPING.code, -1)
        assert answers(await client.ask(request, 12)) == [refused, refused]
        assert said.asked == []

    walk(steps)


def test_a_batch_of_a_transaction_without_its_name_refuses_the_whole_request() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await client.create("orders", 2)
        request = Transactional(client).request("orders", b"x")
        request.transactional_id = None
        request.topic_data[0].partition_data.append(
            ProduceRequest.PartitionProduceData(index=1, records=batch_of(b"plain"))
        )
        refused = (TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code, -1)
        assert answers(await client.ask(request, 12)) == [refused, refused]

    walk(steps)


def test_a_plain_batch_under_a_transactional_id_is_plain() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        said = serve_transactions(machine)
        await client.create("orders")
        request = produce_request("orders", batch_of(b"x"))
        request.transactional_id = ID
        assert answers(await client.ask(request, 12)) == [(OK, 0)]
        assert (said.asked, log_of(machine).last_stable) == ([], 1)

    walk(steps)


def test_batches_behind_one_that_was_not_let_in_are_not_written() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        said = serve_transactions(machine)
        await client.create("orders")
        said.answers[ORDERS] = [COORDINATOR_LOAD_IN_PROGRESS]
        producer = Transactional(client)
        first, second = await asyncio.gather(producer.send("orders", b"a"), producer.send("orders", b"b"))
        assert (first, second) == ([(NOT_ENOUGH_REPLICAS.code, -1)], [(OUT_OF_ORDER_SEQUENCE_NUMBER.code, -1)])
        assert await producer.send("orders", b"a", sequence=0) == [(OK, 0)]
        assert await producer.send("orders", b"b", sequence=1) == [(OK, 1)]

    walk(steps)


def test_a_batch_that_has_to_be_packed_anew_waits_for_both() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        said = serve_transactions(machine)
        await client.create("packed", compression_type="gzip")
        producer = Transactional(client)
        assert await producer.send("packed", b"a") == [(OK, 0)]
        assert await producer.send("packed", b"b") == [(OK, 1)]
        assert len(said.asked) == 1
        assert await mark(client, producer, ("packed", 0)) == [OK]
        assert await read_committed(client, "packed") == [b"a", b"b"]

    walk(steps)


# -- scripts 3 and 4 of the facts


def test_script_3_an_answer_about_a_transaction_that_is_over_lets_nothing_in() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        said, other = serve_transactions(machine), await machine.dial()
        await client.create("orders")
        producer = Transactional(client, version=ABORTABLE)
        said.hold()
        late = asyncio.ensure_future(producer.send("orders", b"late"))
        await until(lambda: bool(said.asked))
        assert await mark(other, producer, ORDERS, commit=False) == [OK]
        said.release()
        assert await late == [(INVALID_TXN_STATE.code, -1)]
        assert (log_of(machine).next, log_of(machine).last_stable) == (1, 1), "only the marker is there"

    walk(steps)


def test_script_4_the_next_transaction_overtakes_the_marker_of_the_last() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        said, other = serve_transactions(machine), await machine.dial()
        await client.create("orders")
        producer = Transactional(client, epoch=4)
        assert await producer.send("orders", b"first") == [(OK, 0)]
        producer.next_epoch()
        said.answers[ORDERS] = [CONCURRENT_TRANSACTIONS, NONE]
        said.hold()
        overtaking = asyncio.ensure_future(producer.send("orders", b"second"))
        await until(lambda: len(said.asked) == 2)
        assert await mark(other, producer, ORDERS, epoch=5, transaction_version=2) == [OK]
        said.release()
        assert await overtaking == [(OK, 2)]
        assert log_of(machine).last_stable == 2, "the second is not part of the first transaction"
        assert await read_committed(client, "orders") == [b"first"]
        assert await mark(other, producer, ORDERS, commit=False, epoch=6, transaction_version=2) == [OK]
        assert await read_committed(client, "orders") == [b"first"]

    walk(steps, add_partitions_to_txn_retry_backoff_max_ms="60000")


# -- markers


def test_a_marker_has_the_bytes_that_kafka_writes() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        hosted = machine.node.partitions.named("orders", 0)
        hosted.write_marker(1_000, 1, commits=True, coordinator_epoch=5, transaction_version=2, now=1_700_000_000_000)
        read = hosted.require_log().read(0, max_bytes=1_000, limit=1, at_least_one=True)
        assert b"".join(span.read() for span in read.spans).hex() == (
            "0000000000000000000000420000000002d12a343b0030000000000000018bcfe568000000018bcfe5680000000000000003e8"
            "0001ffffffff000000012000000008000000010c00000000000500"
        )

    walk(steps)


def test_markers_of_one_transaction_bear_the_leader_epoch_of_each_partition() -> None:
    """They are made of one batch, and an abort of something open is told to the log as if it had been read there."""

    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await client.create("orders", 2)
        producer = Transactional(client, epoch=4)
        assert await producer.send("orders", b"x", partitions=(0, 1)) == [(OK, 0), (OK, 0)]
        found = []
        for index in (0, 1):
            hosted = machine.node.partitions.named("orders", index)
            hosted.state.epoch = Epoch(hosted.state.epoch + index)
            hosted.write_marker(
                producer.id, 5, commits=False, coordinator_epoch=3, transaction_version=2, now=1_700_000_000_000
            )
            log = hosted.require_log()
            read = log.read(1, max_bytes=1_000, limit=2, at_least_one=True)
            header = read_header(b"".join(span.read() for span in read.spans))
            found.append((header.leader_epoch, header.base_offset, header.producer_epoch))
            assert log.last_stable == 2
            assert log.aborted(0, 2) == [(producer.id, 0)]
        assert found == [(0, 1, 5), (1, 1, 5)]

    walk(steps)


def test_markers_are_answered_by_producer_and_partition() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await client.create("orders", 2)
        one, other = Transactional(client), Transactional(client, epoch=3)
        await one.send("orders", b"x", partitions=(0, 1))
        await other.send("orders", b"y")
        made = WriteTxnMarkersRequest

        def marker(producer: Transactional, epoch: int, *indexes: int) -> WriteTxnMarkersRequest.WritableTxnMarker:
            topics = [
                made.WritableTxnMarkerTopic(name="orders", partition_indexes=list(indexes)),
                made.WritableTxnMarkerTopic(name="missing", partition_indexes=[0]),
            ]
            return made.WritableTxnMarker(
                producer_id=producer.id, producer_epoch=epoch, transaction_result=True, topics=topics
            )

        reply = await client.ask(made(markers=[marker(one, 0, 0, 1, 7), marker(other, 2, 0), marker(one, 0, 0)]), 1)
        told = [
            (
                result.producer_id,
                [(topic.name, [each.error_code for each in topic.partitions]) for topic in result.topics],
            )
            for result in reply.markers
        ]
        unknown, fenced = UNKNOWN_TOPIC_OR_PARTITION.code, INVALID_PRODUCER_EPOCH.code
        assert told == [
            (one.id, [("orders", [OK, OK, unknown, OK]), ("missing", [unknown, unknown])]),
            (other.id, [("orders", [fenced]), ("missing", [unknown])]),
        ]

    walk(steps)


def test_a_marker_of_no_producer_or_epoch_is_not_written() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await client.create("orders")
        producer = Transactional(client)
        assert await mark(client, producer, ORDERS, epoch=-1) == [UNKNOWN_SERVER_ERROR.code]
        producer.id = -1
        assert await mark(client, producer, ORDERS, epoch=0) == [UNKNOWN_SERVER_ERROR.code]
        assert log_of(machine).next == 0

    walk(steps)


def test_a_marker_of_a_coordinator_that_was_replaced_is_refused() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await client.create("orders")
        producer = Transactional(client)
        await producer.send("orders", b"x")
        assert await mark(client, producer, ORDERS, coordinator_epoch=8) == [OK]
        assert await mark(client, producer, ORDERS, coordinator_epoch=7) == [TRANSACTION_COORDINATOR_FENCED.code]

    walk(steps)


def test_a_marker_is_answered_when_it_is_committed() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await client.create("synced", flush_messages="1")
        producer = Transactional(client)
        await producer.send("synced", b"x")
        machine.offload.hold()
        ending = asyncio.ensure_future(mark(client, producer, ("synced", 0)))
        await until(lambda: log_of(machine, "synced").next == 2)
        other = await machine.dial()
        assert await read_committed(other, "synced") == []
        assert not ending.done()
        machine.offload.release()
        assert await ending == [OK]
        assert await read_committed(other, "synced") == [b"x"]

    walk(steps)


# -- reading


def test_readers_of_committed_records_see_whole_transactions_and_no_aborted_ones() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await client.create("orders")
        one, other = Transactional(client), Transactional(client)
        await one.send("orders", b"one")
        await other.send("orders", b"other")
        await client.produce("orders", b"plain")
        assert await read_committed(client, "orders") == []
        await mark(client, other, ORDERS, commit=False)
        assert await read_committed(client, "orders") == []
        await mark(client, one, ORDERS)
        assert await read_committed(client, "orders") == [b"one", b"plain"]
        data = data_of(await client.fetch(at("orders", 0), isolation_level=READ_COMMITTED))
        assert [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()] == [(other.id, 1)]
        plain = data_of(await client.fetch(at("orders", 0)))
        assert plain.aborted_transactions is None, "whoever reads everything is not told what to leave out"

    walk(steps)


def test_a_waiting_reader_of_committed_records_is_woken_by_the_marker() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await client.create("orders")
        producer, other = Transactional(client), await machine.dial()
        await producer.send("orders", b"x")
        waiting = other.fetch(at("orders", 0), isolation_level=READ_COMMITTED, max_wait_ms=60_000)
        await until(lambda: machine.node.broker.fetches.waiting == 1)
        await producer.send("orders", b"y")
        assert not waiting.done()
        await mark(client, producer, ORDERS)
        data = data_of(await waiting)
        assert (data.high_watermark, data.last_stable_offset) == (3, 3)
        assert len(scan_batches(bytes(data.records or b""))) == 3

    walk(steps)


def test_the_end_for_readers_of_committed_records_is_the_last_stable_offset() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await client.create("orders")
        await client.produce("orders", batch=batch_of(b"old", timestamp=1_000))
        producer = Transactional(client)
        await producer.send("orders", b"x")

        async def end(timestamp: int, isolation: int) -> int:
            made = ListOffsetsRequest
            wanted = made.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
            request = made(
                replica_id=-1,
                isolation_level=isolation,
                topics=[made.ListOffsetsTopic(name="orders", partitions=[wanted])],
            )
            return int((await client.ask(request)).topics[0].partitions[0].offset)

        assert [await end(LATEST, level) for level in (0, READ_COMMITTED)] == [2, 1]
        assert [await end(2_000, level) for level in (0, READ_COMMITTED)] == [1, -1]
        await mark(client, producer, ORDERS)
        assert [await end(LATEST, level) for level in (0, READ_COMMITTED)] == [3, 3]
        assert [await end(2_000, level) for level in (0, READ_COMMITTED)] == [1, 1]

    walk(steps)


def test_producers_are_described_with_their_open_transactions() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await client.create("orders")
        producer = Transactional(client, epoch=2)
        await producer.send("orders", b"a", b"b")
        made = DescribeProducersRequest

        async def described() -> tuple[int, ...]:
            reply = await client.ask(made(topics=[made.TopicRequest(name="orders", partition_indexes=[0])]))
            (state,) = reply.topics[0].partitions[0].active_producers
            return (
                state.producer_id, state.producer_epoch, state.last_sequence,
                state.coordinator_epoch, state.current_txn_start_offset,
            )  # fmt: skip

        assert await described() == (producer.id, 2, 1, -1, 0)
        await mark(client, producer, ORDERS, epoch=3, coordinator_epoch=6, transaction_version=2)
        assert await described() == (producer.id, 3, -1, 6, -1)

    walk(steps)


def test_deleting_records_of_an_open_transaction_leaves_its_end_to_the_marker() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await client.create("orders")
        producer = Transactional(client)
        await producer.send("orders", b"a", b"b", b"c")
        assert machine.node.partitions.delete_records("orders", 0, 2) == 2
        log = log_of(machine)
        assert (log.log_start, log.last_stable) == (2, 2)
        await mark(client, producer, ORDERS)
        assert log.last_stable == log.next == 4

    walk(steps)
