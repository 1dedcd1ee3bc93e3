"""Whatever the bytes, decoding raises `Malformed` or gives a message, and never makes more than the bytes can hold."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.protocol.codec import decode, encode
from penstock.protocol.frame import decode_response, read_request_header
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.metadata import MetadataRequest, MetadataResponse
from penstock.protocol.messages.produce import ProduceRequest
from penstock.protocol.primitives import uvarint
from penstock.protocol.registry import APIS
from penstock.protocol.wire import Malformed
from tests.properties import examples
from tests.unit.protocol.declared import MESSAGES, versions_of
from tests.unit.protocol.strategies import EXAMPLES, messages, quick

# Bytes that mean something where a length, a count or a tag is expected.
NASTY = [
    b"\x00",
    b"\x01",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x7f\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x80\x80",
]


def mutate(draw: st.DataObject, data: bytes) -> bytes:
    """Cut the end off, or overwrite or insert something at a place."""
    at = draw.draw(st.integers(0, len(data)))
    way = draw.draw(st.sampled_from(["cut", "overwrite", "insert"]))
    if way == "cut":
        return data[:at]
    piece = draw.draw(st.sampled_from(NASTY))
    return data[:at] + piece + data[at + (len(piece) if way == "overwrite" else 0) :]


def decode_or_refuse(cls: type[Any], version: int, data: bytes) -> None:
    for buf in (data, memoryview(data)):
        try:
            message, end = decode(cls, version, buf)
        except Malformed:
            continue
        assert isinstance(message, cls)
        assert end <= len(data)


@pytest.mark.hypothesis
@pytest.mark.parametrize("cls", MESSAGES.values(), ids=MESSAGES)
def test_mutated_bytes_are_refused_or_understood(cls: type[Any]) -> None:
    @settings(quick, max_examples=examples(max(1, EXAMPLES // 3)))
    @given(st.data())
    def check(draw: st.DataObject) -> None:
        version = draw.draw(st.sampled_from(versions_of(cls)))
        data = encode(draw.draw(messages(cls, version)), version)
        for _ in range(4):
            data = mutate(draw, data)
            decode_or_refuse(cls, version, data)

    check()


@pytest.mark.parametrize("cls", MESSAGES.values(), ids=MESSAGES)
def test_a_message_cut_short_is_always_refused(cls: type[Any]) -> None:
    for version in versions_of(cls):
        data = encode(cls(), version)
        for size in range(len(data)):
            with pytest.raises(Malformed):
                decode(cls, version, data[:size])


@settings(quick, max_examples=examples(EXAMPLES * 40))
@given(st.sampled_from(sorted(APIS)), st.binary(max_size=200), st.data())
def test_random_frames_are_refused_or_understood(key: int, noise: bytes, draw: st.DataObject) -> None:
    version = draw.draw(st.integers(APIS[key].min, APIS[key].max))
    frame = key.to_bytes(2, "big") + version.to_bytes(2, "big") + noise
    with suppress(Malformed):
        _, body = read_request_header(frame)
        decode(APIS[key].request(), version, frame, body)
    with suppress(Malformed):
        decode_response(noise, key, version)


@pytest.mark.parametrize("version", [8, 12])
@pytest.mark.parametrize("count", [1000, 1 << 16, (1 << 31) - 1])
def test_a_count_that_the_bytes_cannot_hold_is_refused_before_anything_is_made(version: int, count: int) -> None:
    prefix = uvarint(count + 1) if version >= 9 else count.to_bytes(4, "big")
    throttle = bytes(4)
    tracemalloc.start()
    with pytest.raises(Malformed, match=f"brokers claims {count} elements in 40 bytes"):
        decode(MetadataResponse, version, throttle + prefix + bytes(40))
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("cls", "version", "data", "why"),
    [
        (HeartbeatRequest, 0, b"\xff\xff" + bytes(10), "group_id is null"),
        (HeartbeatRequest, 0, b"\x80\x00" + bytes(10), "group_id is null"),
        (HeartbeatRequest, 4, b"\x00" + bytes(10), "group_id is null"),
        (HeartbeatRequest, 0, b"\x00\x01\xff" + bytes(6), "utf-8"),
        (HeartbeatRequest, 0, b"\x00\x05ab", "unpack_from"),
        (HeartbeatRequest, 4, b"\xff\xff\xff\xff\x7f", "over 32 bits"),
        (HeartbeatRequest, 4, b"\x82\x80\x02" + b"x" * 40_000, "a string of 32769 bytes"),
        (HeartbeatRequest, 4, b"\x01" + bytes(4) + b"\x01" + b"\x00" + b"\x01\x00\x05ab", "tagged field 0 claims 5"),
        (HeartbeatRequest, 4, b"\x01" + bytes(4) + b"\x01" + b"\x00" + b"\x7f\x00", "127 tagged fields"),
        (MetadataRequest, 0, b"\xff\xff\xff\xff", "topics is null"),
        (MetadataRequest, 9, b"\x05", "topics claims 4 elements"),
        (ProduceRequest, 3, b"\xff\xff\x00\x01" + bytes(4) + b"\x00\x00\x00\x01\x00\x01t\x7f\xff\xff\xff", "claims"),
    ],
)
def test_the_refusal_says_what_is_wrong(cls: type[Any], version: int, data: bytes, why: str) -> None:
    with pytest.raises(Malformed, match=why):
        decode(cls, version, data)


def test_records_that_claim_more_than_the_frame_are_refused() -> None:
    partition = ProduceRequest.PartitionProduceData(records=b"r" * 50)
    request = ProduceRequest(topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=[partition])])
    data = encode(request, 3)
    at = data.index(b"\0\0\0\x32r")
    with pytest.raises(Malformed):
        decode(ProduceRequest, 3, data[:at] + b"\0\0\0\x33" + data[at + 4 :])
