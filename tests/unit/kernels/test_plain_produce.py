"""The short way of a produce never sees anything else than the long way does: the codec and `admit` are its judges."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels import Record, crc32c
from penstock.model.config import TopicSettings
from penstock.model.errors import Refused
from penstock.model.ids import Millis, Uuid
from penstock.protocol.batch import build_batch
from penstock.protocol.codec import decode, encode
from penstock.protocol.compression import CODECS
from penstock.protocol.messages.produce import ProduceRequest, ProduceResponse
from penstock.protocol.wire import Malformed
from penstock.replication.admission import admit, takes_as_it_is
from penstock.server.reception.dispatch import Dispatch
from tests.properties import examples

compiled = pytest.importorskip("penstock.kernels._compiled")

HEAD = b"head of the frame"
NOW = Millis(1_700_000_000_000)
VERSIONS = st.integers(3, 13)


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """Mostly what any producer sends; sometimes with a codec, odd timestamps, or bytes that somebody changed."""
    stamps = st.integers(NOW - 5_000, NOW + 5_000) if draw(st.booleans()) else st.sampled_from([-1, 0, NOW, 2**62])
    records = [
        Record(i, draw(stamps), draw(st.none() | st.binary(max_size=3)), draw(st.binary(max_size=20)))
        for i in range(draw(st.integers(1, 4)))
    ]
    idempotent = draw(st.booleans())
    batch = bytearray(
        build_batch(
            records,
            codec=draw(st.sampled_from([0, 0, 0, CODECS["lz4"], CODECS["zstd"]])),
            producer_id=9 if idempotent else -1,
            producer_epoch=0 if idempotent else -1,
            base_sequence=5 if idempotent else -1,
        )
    )
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        batch[draw(st.integers(0, len(batch) - 1))] = draw(st.integers(0, 255))
        if draw(st.booleans()):
            struct.pack_into(">I", batch, 17, crc32c(batch[21:]))
    return bytes(batch + draw(st.sampled_from([b"", b"", b"", b"rest"])))


def request_of(topics: list[list[bytes]], *, acks: int = -1, transactional_id: str | None = None) -> ProduceRequest:
    made = ProduceRequest
    return made(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=1_500,
        topic_data=[
            made.TopicProduceData(
                name=f"tópic-{number}",
                topic_id=Uuid(bytes([number + 1]) * 16),
                partition_data=[made.PartitionProduceData(index=7 * i, records=each) for i, each in enumerate(parts)],
            )
            for number, parts in enumerate(topics)
        ],
    )


def good_batch(count: int = 1) -> bytes:
    return bytes(build_batch([Record(i, NOW + i, None, b"value") for i in range(count)]))


@st.composite
def bodies(draw: st.DrawFn) -> tuple[int, bytes]:
    """A request of some version, whole or with a few bytes changed, cut off or added."""
    version = draw(VERSIONS)
    topics = draw(st.lists(st.lists(batches(), min_size=0, max_size=3), min_size=0, max_size=3))
    request = request_of(
        topics, acks=draw(st.sampled_from([-1, 0, 1, 2])), transactional_id=draw(st.sampled_from([None, None, "tx"]))
    )
    body = bytearray(encode(request, version))
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        body[draw(st.integers(0, len(body) - 1))] = draw(st.integers(0, 255))
    return version, bytes(body[: len(body) - draw(st.sampled_from([0, 0, 0, 1, 9]))]) + draw(
        st.sampled_from([b"", b"!!!"])
    )


@settings(max_examples=examples(150), deadline=None)
@given(bodies())
def test_what_is_read_is_what_the_codec_reads_and_admission_admits(body: tuple[int, bytes]) -> None:
    version, data = body
    frame = bytearray(HEAD + data)
    plain = compiled.read_plain_produce(frame, len(HEAD), version)
    if plain is None:
        return
    request, _ = decode(ProduceRequest, version, frame, len(HEAD))
    assert (plain.acks, plain.timeout_ms, request.transactional_id) == (request.acks, request.timeout_ms, None)
    names = [topic.topic_id if version >= 13 else topic.name for topic in request.topic_data]
    assert [topic for topic, _ in plain.topics] == names
    plain_settings = TopicSettings.of({"message.timestamp.after.max.ms": str(2**63 - 1)}, {})
    for (_, found), topic in zip(plain.topics, request.topic_data, strict=True):
        assert [batch[0] for batch in found] == [each.index for each in topic.partition_data]
        for (_, position, header, _, _), each in zip(found, topic.partition_data, strict=True):
            assert each.records is not None
            admitted = admit(bytes(each.records), settings=plain_settings, now=NOW, api_version=version)
            assert (admitted.header, admitted.needs_rebuild) == (header, False)
            assert bytes(admitted.batch) == bytes(each.records) == frame[position : position + header.size]


OVERRIDES = st.fixed_dictionaries(
    {},
    optional={
        "max.message.bytes": st.sampled_from(["80", "100", "1000"]),
        "message.timestamp.after.max.ms": st.sampled_from(["0", "1000", "3600000"]),
        "message.timestamp.before.max.ms": st.sampled_from(["0", "1000", "3600000"]),
        "message.timestamp.type": st.sampled_from(["CreateTime", "LogAppendTime"]),
        "cleanup.policy": st.sampled_from(["compact", "delete"]),
        "compression.type": st.sampled_from(["producer", "lz4", "uncompressed"]),
    },
)


@settings(max_examples=examples(100), deadline=None)
@given(batches(), OVERRIDES)
def test_what_a_topic_takes_as_it_is_admission_admits_as_it_is(batch: bytes, overrides: dict[str, str]) -> None:
    topic = TopicSettings.of(overrides, {})
    frame = bytearray(encode(request_of([[batch]]), 12))
    plain = compiled.read_plain_produce(frame, 0, 12)
    if plain is None or not takes_as_it_is(topic, plain.topics[0][1][0], NOW):
        return
    try:
        admitted = admit(batch, settings=topic, now=NOW, api_version=12)
    except Refused as refusal:
        pytest.fail(f"admission refuses it: {refusal}")
    assert (bytes(admitted.batch), admitted.needs_rebuild) == (batch, False)


@pytest.mark.parametrize("version", range(3, 14))
def test_a_request_without_anything_unusual_is_plain_and_gets_the_reply_of_the_codec(version: int) -> None:
    request = request_of([[good_batch(), good_batch(3)], [good_batch()] * 130])
    plain = compiled.read_plain_produce(bytearray(HEAD + encode(request, version)), len(HEAD), version)
    assert plain is not None
    bases = [10 * i for i in range(132)]
    made = ProduceResponse
    answers = iter([made.PartitionProduceResponse(base_offset=base, log_start_offset=base // 2) for base in bases])
    reply = made()
    for topic in request.topic_data:
        result = made.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
        for data in topic.partition_data:
            answer = next(answers)
            answer.index = data.index
            result.partition_responses.append(answer)
        reply.responses.append(result)
    route = Dispatch().route(0, version)
    assert route is not None
    assert plain.reply(-5, [number for base in bases for number in (base, base // 2)]) == bytes(
        route.encode(-5, reply)[0]
    )


def test_a_reply_needs_two_numbers_for_each_batch() -> None:
    plain = compiled.read_plain_produce(bytearray(encode(request_of([[good_batch()]]), 9)), 0, 9)
    with pytest.raises(ValueError, match="for each batch"):
        plain.reply(1, [0])


@settings(max_examples=examples(60), deadline=None)
@given(st.binary(max_size=120), VERSIONS)
def test_any_bytes_are_read_or_left_to_the_codec(data: bytes, version: int) -> None:
    if compiled.read_plain_produce(bytearray(data), 0, version) is not None:
        try:
            decode(ProduceRequest, version, data)
        except Malformed as refusal:
            pytest.fail(f"the codec refuses it: {refusal}")
