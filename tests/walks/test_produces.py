"""Produces as clients see them: acknowledgements, sequences, refusals, and what the topic does to a batch."""

from __future__ import annotations

import asyncio

import pytest

from penstock.kernels import read_header
from penstock.model.errors import (
    CORRUPT_MESSAGE,
    INVALID_PRODUCER_EPOCH,
    INVALID_RECORD,
    INVALID_REQUIRED_ACKS,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    NOT_ENOUGH_REPLICAS,
    NOT_LEADER_OR_FOLLOWER,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    RECORD_LIST_TOO_LARGE,
    REQUEST_TIMED_OUT,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode,
)
from penstock.protocol.compression import CODECS
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.messages.produce import ProduceRequest
from penstock.transport.dial import Severed
from tests.walks.data_plane import (
    BY_ID,
    BY_NAME,
    Client,
    Idempotent,
    Machine,
    at,
    batch_of,
    data_of,
    produce_request,
    records_in,
    walk,
)

LATEST = -1


# -- acknowledgements


@pytest.mark.parametrize("acks", [1, -1])
def test_records_get_the_next_offsets(acks: int) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        answers = [await client.produce("orders", *values, acks=acks) for values in ([b"a"], [b"b", b"c"], [b"d"])]
        assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, 0), (0, 1), (0, 3)]
        assert await client.values("orders") == [b"a", b"b", b"c", b"d"]

    walk(steps)


def test_acks_0_gets_no_answer_and_is_written() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        for value in (b"a", b"b"):
            client.link.tell(produce_request("orders", batch_of(value), acks=0), 9)
        assert (await client.produce("orders", b"c")).base_offset == 2, "the next answer is the next one's"
        assert await client.values("orders") == [b"a", b"b", b"c"]

    walk(steps)


def test_acks_0_is_written_also_when_the_topic_packs_anew() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("packed", compression_type="gzip")
        client.link.tell(produce_request("packed", batch_of(b"a"), acks=0), 9)
        assert (await client.produce("packed", b"b")).base_offset == 1
        assert await client.values("packed") == [b"a", b"b"]

    walk(steps)


@pytest.mark.parametrize("topic", ["missing", "packed"])
def test_acks_0_that_fails_costs_the_connection(topic: str) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("packed", compression_type="gzip", max_message_bytes="200")
        other = await machine.dial()
        other.link.tell(produce_request(topic, batch_of(b"%r" % bytes(range(256))), acks=0), 9)
        with pytest.raises(Severed):
            await other.produce("packed", b"x")
        assert (await client.produce("packed", b"x")).base_offset == 0, "nobody else notices"

    walk(steps)


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_other_acks_are_refused(acks: int) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        answer = await client.produce("orders", b"x", acks=acks)
        assert (answer.error_code, answer.base_offset) == (INVALID_REQUIRED_ACKS.code, -1)
        assert await client.values("orders") == []
        missing = await client.ask(produce_request("missing", batch_of(b"x"), acks=acks), BY_NAME)
        assert missing.responses[0].partition_responses[0].error_code == UNKNOWN_TOPIC_OR_PARTITION.code

    walk(steps)


@pytest.mark.parametrize("acks", [1, -1])
def test_a_synced_topic_answers_when_the_disk_has_it(acks: int) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("synced", flush_messages="1")
        await client.produce("synced", b"first")
        machine.offload.hold()
        answer = client.produce("synced", b"second", acks=acks)
        other = await machine.dial()
        assert (await other.offset("synced", LATEST)).offset == 1, "nobody may read what may still be lost"
        assert not answer.done()
        machine.offload.release()
        assert (await answer).base_offset == 1
        assert (await other.offset("synced", LATEST)).offset == 2

    walk(steps)


@pytest.mark.parametrize("acks", [1, -1])
def test_a_sync_that_takes_too_long_is_a_timeout_and_the_record_stays(acks: int) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("synced", flush_messages="1")
        machine.offload.hold()
        answer = await client.produce("synced", b"slow", acks=acks, timeout_ms=30)
        assert (answer.error_code, answer.base_offset) == (REQUEST_TIMED_OUT.code, -1)
        machine.offload.release()
        assert (await client.produce("synced", b"next", acks=acks)).base_offset == 1
        assert await client.values("synced") == [b"slow", b"next"]

    walk(steps)


def test_one_sync_serves_everybody_who_waits() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("synced", flush_messages="1")
        await client.produce("synced", b"warm")
        before = machine.node.broker.flushes.rounds
        machine.offload.hold()
        answers = [client.produce("synced", b"%d" % number) for number in range(5)]
        while not any(hosted.log is not None and hosted.log.written == 6 for hosted in machine.node.partitions):
            await asyncio.sleep(0)
        machine.offload.release()
        assert [(await answer).base_offset for answer in answers] == [1, 2, 3, 4, 5]
        assert machine.node.broker.flushes.rounds - before <= 2

    walk(steps)


def test_five_in_flight_stay_in_order() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("plain")
        await client.create("synced", flush_messages="1")
        await client.create("packed", compression_type="zstd")
        producers = {topic: Idempotent() for topic in ("plain", "synced", "packed")}
        for _ in range(10):
            sent = [
                client.produce(topic, batch=producer.batch(b"%d" % producer.sequence))
                for topic, producer in producers.items()
                for _ in range(5)
            ]
            assert {answer.error_code for answer in await asyncio.gather(*sent)} == {0}
        for topic in producers:
            assert await client.values(topic) == [b"%d" % number for number in range(50)]

    walk(steps)


def test_a_retry_is_known_however_old_its_records_are() -> None:
    """Whoever replays the past sends timestamps of years ago; that does not make its producer a stranger."""

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("history")
        named = {"producer_id": 7, "producer_epoch": 0}
        first, second = (batch_of(b"%d" % n, timestamp=1_000, base_sequence=n, **named) for n in range(2))
        gap = batch_of(b"gap", timestamp=1_000, base_sequence=9, **named)
        answers = [await client.produce("history", batch=batch) for batch in (first, second, first, second, gap)]
        assert [answer.base_offset for answer in answers] == [0, 1, 0, 1, -1]
        assert answers[-1].error_code == OUT_OF_ORDER_SEQUENCE_NUMBER.code

    walk(steps)


def test_every_partition_of_a_request_has_an_answer_of_its_own() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", 2)
        made = ProduceRequest
        good, bad = bytearray(batch_of(b"good")), bytearray(batch_of(b"bad"))
        bad[-1] ^= 1
        data = [
            made.PartitionProduceData(index=index, records=batch) for index, batch in ((1, bad), (0, good), (7, good))
        ]
        request = made(
            acks=-1, timeout_ms=1_000, topic_data=[made.TopicProduceData(name="orders", partition_data=data)]
        )
        reply = await client.ask(request, 9)
        answers = [(each.index, each.error_code) for each in reply.responses[0].partition_responses]
        assert answers == [(1, CORRUPT_MESSAGE.code), (0, 0), (7, UNKNOWN_TOPIC_OR_PARTITION.code)]
        assert (await client.values("orders", 0), await client.values("orders", 1)) == ([b"good"], [])

    walk(steps)


@pytest.mark.parametrize("synced", [False, True])
def test_a_batch_that_its_log_refuses_keeps_none_of_its_neighbours_back(synced: bool) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", partitions=3, **({"flush_messages": "1"} if synced else {}))
        ahead = Idempotent()
        await client.produce("orders", batch=ahead.batch(b"first"), partition=1)
        batches = [batch_of(b"a"), ahead.batch(b"gap", sequence=9), batch_of(b"c")]
        request = produce_request("orders", None)
        request.topic_data[0].partition_data = [
            ProduceRequest.PartitionProduceData(index=index, records=batch) for index, batch in enumerate(batches)
        ]
        reply = await client.ask(request, BY_NAME)
        answers = reply.responses[0].partition_responses
        refused = OUT_OF_ORDER_SEQUENCE_NUMBER.code
        assert [(each.index, each.error_code, each.base_offset) for each in answers] == [
            (0, 0, 0),
            (1, refused, -1),
            (2, 0, 0),
        ]
        assert [await client.values("orders", index) for index in range(3)] == [[b"a"], [b"first"], [b"c"]]

    walk(steps)


def test_a_topic_deleted_while_its_producer_waits_ends_the_wait() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("doomed", flush_messages="1")
        await client.produce("doomed", b"first")
        hosted = next(iter(machine.node.partitions))
        log = hosted.require_log()
        machine.offload.hold()
        answer = client.produce("doomed", b"x")
        while log.written < 2:
            await asyncio.sleep(0)
        machine.node.partitions._drop(hosted)
        assert (await answer).error_code in (NOT_LEADER_OR_FOLLOWER.code, UNKNOWN_TOPIC_OR_PARTITION.code)
        machine.offload.release()

    walk(steps)


def test_too_few_replicas_refuse_only_those_who_ask_for_all() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", min_insync_replicas="2")
        hosted = next(iter(machine.node.partitions))
        assert (await client.produce("orders", b"x")).error_code == 0, "one replica cannot be asked for two"
        hosted.state.isr = frozenset()
        assert (await client.produce("orders", b"y")).error_code == NOT_ENOUGH_REPLICAS.code
        assert (await client.produce("orders", b"z", acks=1)).error_code == 0

    walk(steps)


# -- sequences


def test_a_duplicate_is_answered_as_the_original_was() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        producer = Idempotent()
        batches = [producer.batch(b"%d" % number) for number in range(5)]
        for batch in batches:
            await client.produce("orders", batch=batch)
        await client.produce("orders", b"somebody else's")
        again = [(await client.produce("orders", batch=batch)).base_offset for batch in batches]
        assert again == [0, 1, 2, 3, 4]
        assert len(await client.values("orders")) == 6

    walk(steps)


def test_a_duplicate_is_known_after_a_restart() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        producer = Idempotent()
        batch = producer.batch(b"x")
        await client.produce("orders", batch=batch)
        await machine.stop()
        await machine.start()
        client = await machine.dial()
        assert (await client.produce("orders", batch=batch)).base_offset == 0
        assert (await client.produce("orders", batch=producer.batch(b"y"))).base_offset == 1

    walk(steps)


def test_the_duplicate_of_a_batch_with_append_time_has_the_first_ones_time() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", message_timestamp_type="LogAppendTime")
        batch = Idempotent().batch(b"x")
        first = await client.produce("orders", batch=batch)
        await asyncio.sleep(0.005)
        again = await client.produce("orders", batch=batch)
        assert (again.base_offset, again.log_append_time_ms) == (first.base_offset, first.log_append_time_ms)
        assert first.log_append_time_ms > 0

    walk(steps)


def test_a_gap_in_the_sequence_is_refused() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        producer = Idempotent()
        await client.produce("orders", batch=producer.batch(b"0", b"1"))
        answer = await client.produce("orders", batch=producer.batch(b"5", sequence=5))
        assert (answer.error_code, answer.base_offset) == (OUT_OF_ORDER_SEQUENCE_NUMBER.code, -1)
        assert (await client.produce("orders", batch=producer.batch(b"2"))).base_offset == 2

    walk(steps)


def test_an_older_epoch_of_a_producer_is_fenced_and_a_newer_one_starts_at_0() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        old, new = Idempotent(), Idempotent()
        new.id, new.epoch = old.id, 1
        await client.produce("orders", batch=old.batch(b"a"))
        late = await client.produce("orders", batch=new.batch(b"x", sequence=3))
        assert late.error_code == OUT_OF_ORDER_SEQUENCE_NUMBER.code
        assert (await client.produce("orders", batch=new.batch(b"b"))).error_code == 0
        assert (await client.produce("orders", batch=old.batch(b"c"))).error_code == INVALID_PRODUCER_EPOCH.code

    walk(steps)


def test_producer_ids_are_given_out_once_also_across_restarts() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        found = []
        for _ in range(2):
            found += [
                (
                    await client.ask(InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1))
                ).producer_id
                for _ in range(3)
            ]
            await machine.stop()
            await machine.start()
            client = await machine.dial()
        assert len(set(found)) == 6

    walk(steps)


# -- refusals


def test_unknown_topics_and_partitions_are_refused_by_their_kind_of_name() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        assert (await client.produce("missing", b"x")).error_code == UNKNOWN_TOPIC_OR_PARTITION.code
        for partition in (1, -1):
            answer = await client.produce("orders", b"x", partition=partition)
            assert answer.error_code == UNKNOWN_TOPIC_OR_PARTITION.code
        assert (await client.produce("missing", b"x", version=BY_ID)).error_code == UNKNOWN_TOPIC_ID.code
        by_id = await client.produce("orders", b"x", version=BY_ID)
        assert (by_id.error_code, by_id.base_offset) == (0, 0)

    walk(steps)


def test_a_producer_of_a_deleted_topic_never_reaches_the_one_created_since() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        other = await machine.dial()
        await other.delete("orders")
        await other.create("orders")
        assert (await client.produce("orders", b"x", version=BY_ID)).error_code == UNKNOWN_TOPIC_ID.code
        assert (await client.produce("orders", b"x")).error_code == 0

    walk(steps)


def test_batches_and_segments_have_a_largest_size() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", max_message_bytes="1000")
        await client.create("segments", max_message_bytes="3000000", segment_bytes="1048576")
        assert (await client.produce("orders", bytes(1_000))).error_code == MESSAGE_TOO_LARGE.code
        assert (await client.produce("orders", bytes(800))).error_code == 0
        assert (await client.produce("segments", bytes(1_500_000))).error_code == RECORD_LIST_TOO_LARGE.code

    walk(steps)


def test_zstd_needs_version_7() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        batch = batch_of(b"x" * 100, codec=CODECS["zstd"])
        assert (await client.produce("orders", batch=batch, version=6)).error_code == UNSUPPORTED_COMPRESSION_TYPE.code
        assert (await client.produce("orders", batch=batch, version=7)).error_code == 0

    walk(steps)


BROKEN: list[tuple[str, bytes, ErrorCode]] = [
    ("nothing", b"", INVALID_RECORD),
    ("a flipped bit", batch_of(b"x" * 50)[:-3] + b"???", CORRUPT_MESSAGE),
    ("two batches", batch_of(b"x") * 2, INVALID_RECORD),
    ("a control batch", batch_of(b"x", control=True), INVALID_RECORD),
    ("a base offset", b"\0" * 7 + b"\5" + batch_of(b"x")[8:], INVALID_RECORD),
    ("append time", batch_of(b"x", timestamp_type=1), INVALID_TIMESTAMP),
    ("a day too early", batch_of(b"x", timestamp=4_000_000_000_000), INVALID_TIMESTAMP),
    ("half a batch", batch_of(b"x" * 50)[:70], INVALID_RECORD),
]


@pytest.mark.parametrize(("batch", "error"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_what_clients_may_not_write_is_refused_and_leaves_no_trace(batch: bytes, error: ErrorCode) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        answer = await client.ask(produce_request("orders", batch), 9)
        (found,) = answer.responses[0].partition_responses
        assert (found.error_code, found.base_offset) == (error.code, -1)
        assert (await client.offset("orders", LATEST)).offset == 0

    walk(steps)


def test_a_compacted_topic_names_the_records_without_a_key() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("keyed", cleanup_policy="compact")
        answer = await client.produce("keyed", b"x", b"y")
        assert answer.error_code == INVALID_RECORD.code
        assert [error.batch_index for error in answer.record_errors] == [0, 1]
        assert (await client.produce("keyed", batch=batch_of(b"x", key=b"k"))).error_code == 0

    walk(steps)


# -- what the topic does to a batch


def test_append_time_is_the_brokers() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", message_timestamp_type="LogAppendTime")
        answer = await client.produce("orders", batch=batch_of(b"x", b"y", timestamp=5))
        data = data_of(await client.fetch(at("orders", 0)))
        assert {record.timestamp for record in records_in(data)} == {answer.log_append_time_ms}
        assert answer.log_append_time_ms > 1_700_000_000_000

    walk(steps)


def test_create_time_is_the_producers() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        answer = await client.produce("orders", batch=batch_of(b"x", timestamp=1_234_567))
        data = data_of(await client.fetch(at("orders", 0)))
        assert [record.timestamp for record in records_in(data)] == [1_234_567]
        assert answer.log_append_time_ms == -1

    walk(steps)


@pytest.mark.parametrize("wanted", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
@pytest.mark.parametrize("sent", ["none", "gzip", "zstd"])
def test_a_topic_with_a_codec_packs_every_batch_with_it(wanted: str, sent: str) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("packed", compression_type=wanted)
        values = [b"value %d" % number * 20 for number in range(10)]
        assert (await client.produce("packed", batch=batch_of(*values, codec=CODECS[sent]))).base_offset == 0
        assert (await client.produce("packed", b"next")).base_offset == 10
        raw = bytes(data_of(await client.fetch(at("packed", 0))).records or b"")
        assert read_header(raw).attributes & 7 == CODECS.get(wanted, 0)
        assert await client.values("packed") == [*values, b"next"]

    walk(steps)


def test_a_topic_that_keeps_the_producers_codec_keeps_its_bytes() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        batch = batch_of(b"x" * 500, codec=CODECS["lz4"])
        await client.produce("orders", batch=batch)
        raw = bytes(data_of(await client.fetch(at("orders", 0))).records or b"")
        assert raw[17:] == batch[17:], "only offset and epoch are the broker's"

    walk(steps)


def test_a_changed_topic_config_counts_for_the_next_batch() -> None:
    from penstock.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest as Request

    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        assert (await client.produce("orders", bytes(2_000))).error_code == 0
        change = Request.AlterableConfig(name="max.message.bytes", config_operation=0, value="1000")
        await client.ask(
            Request(resources=[Request.AlterConfigsResource(resource_type=2, resource_name="orders", configs=[change])])
        )
        assert (await client.produce("orders", bytes(2_000))).error_code == MESSAGE_TOO_LARGE.code

    walk(steps)
