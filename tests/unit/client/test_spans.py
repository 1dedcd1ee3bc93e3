"""Spans are read to their very end, once, whatever brokers do meanwhile; what is missing is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from penstock.client.admin import Admin
from penstock.client.errors import ClientError, NotAllowed, NotReachable, TimedOutWaiting, UnknownTopic
from penstock.client.producer import Producer
from penstock.client.spans import CorruptBatch, EndLost, Piece, Span, SpanEnd, SpanReader, TopicReplaced
from penstock.testing import EmbeddedBroker, broker
from tests.patience import within
from tests.unit.client.consumer.made import batch, spoilt, two_transactions
from tests.unit.client.consumer.scene import create, delete, numbers, put, run, trim
from tests.unit.client.consumer.test_trouble import Standing

QUICK: dict[str, Any] = {"retry_backoff_ms": 5, "retry_backoff_max_ms": 20}
BRIEF: dict[str, Any] = {"default_api_timeout_ms": 400, "fetch_max_wait_ms": 50}


@pytest.fixture(scope="module")
def shared_node() -> Iterator[EmbeddedBroker]:
    with broker() as running:
        yield running


@pytest.fixture
def node(shared_node: EmbeddedBroker) -> Iterator[EmbeddedBroker]:
    yield shared_node
    shared_node.clear_faults()


def reader_of(node: EmbeddedBroker, **settings: Any) -> SpanReader:
    return SpanReader(bootstrap_servers=node.bootstrap_servers, **{**QUICK, **settings})


def offsets_of(piece: Piece) -> list[int]:
    return list(memoryview(piece.sink.buffers()["offset"]).cast("q"))


def values_of(piece: Piece) -> list[bytes]:
    buffers = piece.sink.buffers()
    ends, data = memoryview(buffers["value_offsets"]).cast("i"), bytes(memoryview(buffers["value_data"]))
    return [data[start:end] for start, end in pairwise(ends)]


class Got:
    """What a read gave, by partition."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.ends: dict[tuple[str, int, int], SpanEnd] = {}

    @property
    def values(self) -> list[bytes]:
        return [value for piece in self.pieces for value in values_of(piece)]

    @property
    def offsets(self) -> list[int]:
        return [offset for piece in self.pieces for offset in offsets_of(piece)]

    @property
    def end(self) -> SpanEnd:
        (only,) = self.ends.values()
        return only


async def read(reader: SpanReader, *spans: Span, batch_bytes: int = 4 << 20) -> Got:
    got = Got()
    async for item in reader.read(spans, batch_bytes=batch_bytes):
        if isinstance(item, SpanEnd):
            got.ends[(item.span.topic, item.span.partition, item.span.start)] = item
        else:
            assert item.rows == item.sink.rows > 0
            assert (item.span.topic, item.span.partition, item.span.start) not in got.ends, "ends come last"
            got.pieces.append(item)
    return got


def read_once(node: EmbeddedBroker, *spans: Span, batch_bytes: int = 4 << 20, **settings: Any) -> Got:
    async def main() -> Got:
        async with reader_of(node, **settings) as reader:
            return await read(reader, *spans, batch_bytes=batch_bytes)

    return run(main())


# Exactly.


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_record_of_a_span_and_no_other(node: EmbeddedBroker, compression: str) -> None:
    topic = f"exact-{compression}"
    put(node, topic, numbers(0, 3_000), compression=compression)
    got = read_once(node, Span(topic, "", 0, 17, 2_345))
    assert got.values == numbers(17, 2_345)
    assert got.offsets == list(range(17, 2_345))
    assert got.end == SpanEnd(Span(topic, "", 0, 17, 2_345), 2_328, (), 0, 0, 0)


def test_pieces_are_about_as_large_as_asked_for(node: EmbeddedBroker) -> None:
    put(node, "pieces", [b"x" * 1_000] * 1_000)
    got = read_once(node, Span("pieces", "", 0, 0, 1_000), batch_bytes=100_000)
    assert got.offsets == list(range(1_000))
    assert 10 <= len(got.pieces) <= 20
    assert max(piece.sink.data_bytes for piece in got.pieces) <= 100_000


def test_many_spans_of_many_partitions_in_one_read(node: EmbeddedBroker) -> None:
    run(create(node, "many", 5))
    spans = []
    for partition in range(5):
        put(node, "many", numbers(0, 100 * partition), partition=partition)
        spans += [Span("many", "", partition, 0, 40 * partition), Span("many", "", partition, 40 * partition, 90)]
    spans = [span for span in spans if span.end <= 100 * span.partition and span.count >= 0]
    got = read_once(node, *spans)
    assert len(got.ends) == len(spans)
    for span in spans:
        mine = [value for piece in got.pieces if piece.span == span for value in values_of(piece)]
        assert mine == numbers(span.start, span.end)


def test_an_empty_span_is_only_an_end(node: EmbeddedBroker) -> None:
    assert read_once(node, Span("whatever", "", 0, 5, 5)).end == SpanEnd(Span("whatever", "", 0, 5, 5), 0, (), 0, -1, 0)


def test_records_larger_than_a_fetch_come_through() -> None:
    with broker({"message.max.bytes": 8 << 20}) as node:

        async def main() -> None:
            async with Producer(node.bootstrap_servers, max_request_size=8 << 20) as producer:
                for number in range(3):
                    await producer.send("large", bytes([number]) * (5 << 20))
            async with reader_of(node, max_partition_fetch_bytes=1 << 20, fetch_max_bytes=1 << 20) as reader:
                got = await read(reader, Span("large", "", 0, 0, 3), batch_bytes=1 << 20)
                assert [(len(value), value[0]) for value in got.values] == [(5 << 20, n) for n in range(3)]

        run(main())


def test_keys_headers_nulls_and_both_kinds_of_time(node: EmbeddedBroker) -> None:
    async def main() -> None:
        async with (
            Admin(bootstrap_servers=node.bootstrap_servers) as admin,
            Producer(node.bootstrap_servers) as producer,
        ):
            await admin.create_topic("kinds", partitions=1)
            await producer.send("kinds", None, key=b"k", headers=[("h", b"1"), ("n", None)], timestamp=1_000)
            await admin.configure_topic("kinds", {"message.timestamp.type": "LogAppendTime"})
            await producer.send("kinds", b"v", timestamp=2_000)
        async with reader_of(node) as reader:
            got = await read(reader, Span("kinds", "", 0, 0, 2))
            assert [piece.timestamp_type for piece in got.pieces] == [0, 1]
            first, second = (memoryview(piece.sink.buffers()["timestamp"]).cast("q")[0] for piece in got.pieces)
            assert first == 1_000
            assert second > 2_000

    run(main())


def test_a_reader_reads_again_and_again_over_the_same_connections(node: EmbeddedBroker) -> None:
    put(node, "again", numbers(0, 100))

    async def main() -> None:
        async with reader_of(node) as reader:
            for start in range(0, 100, 20):
                assert (await read(reader, Span("again", "", 0, start, start + 20))).values == numbers(
                    start, start + 20
                )
            assert len(reader._caller._links) == 1

    run(main())


def test_leaving_early_leaves_nothing_behind(node: EmbeddedBroker) -> None:
    put(node, "early", [b"x" * 1_000] * 1_000)

    async def main() -> None:
        async with reader_of(node, max_partition_fetch_bytes=20_000) as reader:
            items = reader.read([Span("early", "", 0, 0, 1_000)], batch_bytes=10_000)
            assert isinstance(await anext(items), Piece)
            await items.aclose()  # type: ignore[attr-defined]
            assert (await read(reader, Span("early", "", 0, 0, 10))).offsets == list(range(10))

    run(main())


# What is missing.


def test_what_was_trimmed_is_a_gap_and_counted(node: EmbeddedBroker) -> None:
    put(node, "trimmed", numbers(0, 100))
    run(trim(node, "trimmed", 37))
    assert read_once(node, Span("trimmed", "", 0, 10, 60)).end == SpanEnd(
        Span("trimmed", "", 0, 10, 60), 23, ((10, 37),), 27, 37, 27
    )
    gone = read_once(node, Span("trimmed", "", 0, 10, 30))
    assert gone.pieces == []
    assert gone.end == SpanEnd(Span("trimmed", "", 0, 10, 30), 0, ((10, 30),), 20, 37, 20)


def test_gaps_of_compaction_are_found_at_the_start_inside_and_at_the_end() -> None:
    # Batches as compaction leaves them: records taken out, the range of offsets kept.
    from penstock.kernels import Record
    from penstock.protocol.batch import build_batch

    def sparse(base: int, end: int, *kept: int) -> bytes:
        made = bytearray(build_batch([Record(o, 1_000, b"k", b"%d" % o) for o in kept], base_offset=base))
        # The last offset delta lies behind the CRC and the attributes.
        made[23:27] = (end - base - 1).to_bytes(4, "big")
        return resealed(made)

    log = sparse(0, 10, 3, 4, 7) + batch(10, 5) + sparse(20, 30, 20, 22, 29) + sparse(30, 40, 31, 38)
    with broker() as node:
        put(node, "t", numbers(0, 40))
        Standing(node, lambda data: setattr(data, "records", log))
        got = read_once(node, Span("t", "", 0, 1, 36))
    assert got.offsets == [3, 4, 7, 10, 11, 12, 13, 14, 20, 22, 29, 31]
    assert got.end.gaps == ((1, 3), (5, 7), (8, 10), (15, 20), (21, 22), (23, 29), (30, 31), (32, 36))
    assert got.end.missing == 35 - 12
    assert got.end.trimmed == 0


def test_a_span_that_lies_wholly_in_a_hole_ends_at_once() -> None:
    log = batch(0, 5) + batch(20, 5)
    with broker() as node:
        put(node, "t", numbers(0, 25))
        Standing(node, lambda data: setattr(data, "records", log))
        got = read_once(node, Span("t", "", 0, 8, 15))
    assert got.offsets == []
    assert got.end == SpanEnd(Span("t", "", 0, 8, 15), 0, ((8, 15),), 7, 0, 0)


def resealed(made: bytearray) -> bytes:
    from penstock.kernels import crc32c

    made[17:21] = crc32c(memoryview(made)[21:]).to_bytes(4, "big")
    return bytes(made)


def test_a_topic_that_was_really_compacted_gives_what_it_holds() -> None:
    with broker({"log.cleaner.backoff.ms": 100}) as node:

        async def main() -> None:
            configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.bytes": "1048576"}
            async with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
                await admin.create_topic("compacted", partitions=1, configs=configs)
            async with Producer(node.bootstrap_servers) as producer:
                values = [b"%06d" % number + bytes(900) for number in range(4_000)]
                keys = [b"key %d" % (number % 50) for number in range(4_000)]
                await producer.send_batch("compacted", values, keys=keys)
            async with reader_of(node) as reader, asyncio.timeout(within(30)):
                while (got := await read(reader, Span("compacted", "", 0, 0, 4_000))).end.rows > 2_500:
                    await asyncio.sleep(0.05)
            assert got.end.rows == len(got.offsets) == 4_000 - got.end.missing
            assert [value[:6] for value in got.values] == [b"%06d" % offset for offset in got.offsets]
            assert got.offsets == sorted(set(got.offsets))
            assert got.offsets[-1] == 3_999
            assert got.end.trimmed == 0
            for start, end in got.end.gaps:
                assert not set(range(start, end)) & set(got.offsets)
            assert sum(end - start for start, end in got.end.gaps) == got.end.missing or len(got.end.gaps) == 100

        run(main())


def test_committed_readers_count_what_was_aborted_as_missing() -> None:
    with broker() as node:
        put(node, "t", numbers(0, 6))
        Standing(node, two_transactions)
        got = read_once(node, Span("t", "", 0, 0, 6), isolation_level="read_committed")
        assert got.values == [b"committed", b"plain"]
        assert (got.end.gaps, got.end.missing) == (((0, 2), (3, 5)), 4)
        assert read_once(node, Span("t", "", 0, 0, 6)).values == [b"aborted", b"aborted", b"committed", b"plain"]


def test_every_span_of_a_log_with_transactions_ends_whatever_lies_at_its_ends(node: EmbeddedBroker) -> None:
    async def main() -> None:
        topic, shown = "transacted", {}
        transactional = [
            Producer(node.bootstrap_servers, transactional_id=f"spans-{each}", **QUICK) for each in range(2)
        ]
        async with transactional[0] as one, transactional[1] as other, Producer(node.bootstrap_servers) as plain:

            async def send(producer: Producer, value: bytes, *, seen: bool) -> None:
                report = await producer.send(topic, value, partition=0)
                shown[report.offset] = value if seen else None

            async def send_batch(producer: Producer, values: list[bytes], *, seen: bool) -> None:
                first = (await producer.send_batch(topic, values, partition=0)).spans[0].base_offset
                shown.update({first + number: value if seen else None for number, value in enumerate(values)})

            # Aborted from the first offset on; two that overlap and end apart; one that ends the log with its marker.
            await one.begin()
            await send_batch(one, numbers(0, 3), seen=False)
            await one.abort()
            await one.begin()
            await other.begin()
            await send(other, b"a", seen=False)
            await send_batch(one, numbers(10, 14), seen=True)
            await send(plain, b"b", seen=True)
            await send_batch(other, numbers(20, 22), seen=False)
            await one.commit()
            await send(plain, b"c", seen=True)
            await other.abort()
            await one.begin()
            await send(one, b"d", seen=False)
            await one.abort()
        end = max(shown) + 2
        ranges = [(start, stop) for start in range(end) for stop in range(start + 1, end + 1)]
        async with reader_of(node, isolation_level="read_committed") as reader:
            for start, stop in ranges:
                got = await read(reader, Span(topic, "", 0, start, stop))
                wanted = {at: value for at, value in shown.items() if start <= at < stop and value is not None}
                assert dict(zip(got.offsets, got.values, strict=True)) == wanted
                assert (got.end.rows, got.end.missing, got.end.trimmed) == (len(wanted), stop - start - len(wanted), 0)
                absent = {offset for first, last in got.end.gaps for offset in range(first, last)}
                assert absent == set(range(start, stop)) - wanted.keys()

    run(main())


def test_a_span_into_an_open_transaction_is_waited_for_and_told(node: EmbeddedBroker) -> None:
    async def main() -> None:
        async with Producer(node.bootstrap_servers, transactional_id="held") as producer:
            await producer.begin()
            await producer.send("held", b"later", partition=0)
            span = Span("held", "", 0, 0, 1)
            async with reader_of(node, isolation_level="read_committed", **BRIEF) as impatient:
                with pytest.raises(
                    TimedOutWaiting, match="from offset 0 on belong to transactions that have not ended"
                ):
                    await read(impatient, span)
            async with reader_of(node, isolation_level="read_committed") as patient:
                waiting = asyncio.ensure_future(read(patient, span))
                await producer.commit()
                assert (await waiting).values == [b"later"]

    run(main())


# What cannot be read.


def test_a_topic_made_anew_is_not_taken_for_the_old_one(node: EmbeddedBroker) -> None:
    async def main() -> None:
        async with Admin(bootstrap_servers=node.bootstrap_servers) as admin, reader_of(node, **BRIEF) as reader:
            old = await admin.create_topic("anew", partitions=1)
            await asyncio.to_thread(put, node, "anew", numbers(0, 5))
            assert (await read(reader, Span("anew", old, 0, 0, 5))).values == numbers(0, 5)
            await delete(node, "anew")
            new = await admin.create_topic("anew", partitions=1)
            await asyncio.to_thread(put, node, "anew", numbers(5, 10))
            # The reader knows the topic by its old id, and finds out by itself.
            assert (await read(reader, Span("anew", new, 0, 0, 5))).values == numbers(5, 10)
            with pytest.raises(TopicReplaced, match=f"topic 'anew': .*{old}.*{new}"):
                await read(reader, Span("anew", old, 0, 0, 5))

    run(main())


def test_a_topic_that_is_gone_is_told_within_seconds(node: EmbeddedBroker) -> None:
    with pytest.raises(UnknownTopic, match="topic 'nowhere': it does not exist"):
        read_once(node, Span("nowhere", "", 0, 0, 5), **BRIEF)
    put(node, "somewhere", numbers(0, 1))
    with pytest.raises(UnknownTopic, match="somewhere-7"):
        read_once(node, Span("somewhere", "", 7, 0, 5), **BRIEF)


@pytest.mark.parametrize("start", [5, 10, 50])
def test_an_end_that_the_log_does_not_reach_is_told(node: EmbeddedBroker, start: int) -> None:
    topic = f"short-{start}"
    put(node, topic, numbers(0, 10))
    with pytest.raises(EndLost, match=f"{topic}-0: offsets up to 100 were asked for, but its log ends at"):
        read_once(node, Span(topic, "", 0, start, 100), **BRIEF)


def test_records_that_come_while_one_waits_are_read(node: EmbeddedBroker) -> None:
    put(node, "coming", numbers(0, 10))

    async def main() -> None:
        async with reader_of(node) as reader:
            reading = asyncio.ensure_future(read(reader, Span("coming", "", 0, 0, 20)))
            await asyncio.to_thread(put, node, "coming", numbers(10, 20))
            assert (await reading).values == numbers(0, 20)

    run(main())


def test_a_broken_batch_is_named_after_what_came_before_it() -> None:
    log = batch(0, 2) + spoilt(batch(2, 3)) + batch(5, 1)
    with broker() as node:
        put(node, "t", numbers(0, 6))

        async def main() -> None:
            Standing(node, lambda data: setattr(data, "records", log))
            async with reader_of(node) as reader:
                items = reader.read([Span("t", "", 0, 0, 6)])
                first = await anext(items)
                assert isinstance(first, Piece)
                assert offsets_of(first) == [0, 1]
                with pytest.raises(CorruptBatch, match=r"t-0: the records at offset 2 cannot be read") as told:
                    await anext(items)
                assert not told.value.retriable

        run(main())


def test_checksums_are_looked_at_only_when_wanted() -> None:
    wrong = bytearray(batch(0, 2))
    wrong[17] ^= 1
    with broker() as node:
        put(node, "t", numbers(0, 2))
        Standing(node, lambda data: setattr(data, "records", bytes(wrong)))
        assert read_once(node, Span("t", "", 0, 0, 2), check_crcs=False).offsets == [0, 1]
        with pytest.raises(CorruptBatch, match="t-0: the records at offset 0"):
            read_once(node, Span("t", "", 0, 0, 2))


# Trouble that passes, and trouble that does not.


@pytest.mark.parametrize(
    "code",
    [
        "NOT_LEADER_OR_FOLLOWER",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_ID",
        "KAFKA_STORAGE_ERROR",
        "OFFSET_NOT_AVAILABLE",
        "UNKNOWN_SERVER_ERROR",
    ],
)
def test_a_refused_fetch_is_tried_again(node: EmbeddedBroker, code: str) -> None:
    topic = f"refused-{code}"
    put(node, topic, numbers(0, 10))
    node.fail(api="Fetch", code=code, times=3)
    assert read_once(node, Span(topic, "", 0, 0, 10)).values == numbers(0, 10)
    assert node.faults_left("Fetch") == 0


@pytest.mark.parametrize("api", ["Fetch", "Metadata", "ApiVersions"])
def test_a_connection_that_breaks_is_made_again(node: EmbeddedBroker, api: str) -> None:
    topic = f"broken-{api}"
    put(node, topic, numbers(0, 10))
    node.disconnect(api=api, times=2)
    assert read_once(node, Span(topic, "", 0, 0, 10)).values == numbers(0, 10)
    assert node.faults_left(api) == 0


def test_what_access_rules_forbid_is_told_at_once(node: EmbeddedBroker) -> None:
    put(node, "secret", numbers(0, 1))
    node.fail(api="Fetch", code="TOPIC_AUTHORIZATION_FAILED")
    with pytest.raises(NotAllowed, match="secret-0"):
        read_once(node, Span("secret", "", 0, 0, 1))


def test_a_broker_that_comes_back_is_read_on() -> None:
    with broker() as node:
        put(node, "t", [b"x" * 1_000] * 500)

        async def main() -> None:
            async with reader_of(node, max_partition_fetch_bytes=50_000) as reader:
                items = reader.read([Span("t", "", 0, 0, 500)], batch_bytes=20_000)
                first = await anext(items)
                assert isinstance(first, Piece)
                await asyncio.to_thread(node.restart)
                rest = [item async for item in items]
                offsets = [offset for item in (first, *rest) if isinstance(item, Piece) for offset in offsets_of(item)]
                assert offsets == list(range(500))
                assert isinstance(rest[-1], SpanEnd)

        run(main())


def test_a_broker_that_nobody_reaches_is_named_in_the_end() -> None:
    async def main() -> None:
        async with SpanReader(bootstrap_servers="127.0.0.1:1", default_api_timeout_ms=300, **QUICK) as reader:
            with pytest.raises(NotReachable, match=r"127\.0\.0\.1:1"):
                await read(reader, Span("t", "", 0, 0, 1))

    run(main())


def test_a_broker_that_went_away_is_named_in_the_end() -> None:
    with broker() as node:
        put(node, "t", numbers(0, 10))

        async def main() -> None:
            async with reader_of(node, default_api_timeout_ms=300) as reader:
                await read(reader, Span("t", "", 0, 0, 5))
                await asyncio.to_thread(node.stop)
                with pytest.raises(ClientError, match=node.bootstrap_servers):
                    await read(reader, Span("t", "", 0, 5, 10))

        run(main())


def test_a_broker_that_answers_no_more_is_given_up() -> None:
    with broker() as node:
        put(node, "t", numbers(0, 10))

        async def main() -> None:
            settings = {"request_timeout_ms": 100, "fetch_max_wait_ms": 10, "default_api_timeout_ms": 400}
            async with reader_of(node, **settings) as reader:
                await read(reader, Span("t", "", 0, 0, 5))
                with node.paused(), pytest.raises(TimedOutWaiting, match=f"{node.bootstrap_servers}|broker 1"):
                    await read(reader, Span("t", "", 0, 5, 10))
                assert (await read(reader, Span("t", "", 0, 5, 10))).values == numbers(5, 10)

        run(main())


def test_time_that_the_caller_takes_does_not_count() -> None:
    with broker() as node:
        put(node, "t", [b"x" * 1_000] * 200)

        async def main() -> None:
            settings = {"request_timeout_ms": 50, "fetch_max_wait_ms": 10, "default_api_timeout_ms": 100}
            async with reader_of(node, max_partition_fetch_bytes=30_000, **settings) as reader:
                got = []
                async for item in reader.read([Span("t", "", 0, 0, 200)], batch_bytes=20_000):
                    if isinstance(item, Piece):
                        got += offsets_of(item)
                        await asyncio.sleep(0.08)
                assert got == list(range(200))

        run(main())
