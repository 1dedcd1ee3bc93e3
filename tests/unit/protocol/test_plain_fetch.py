"""Fetches read and answered by hand, against the general codec."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.ids import Uuid
from penstock.protocol.codec import decode, encode, encode_parts
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.protocol.plain_fetch import NEWEST, OLDEST, Plain, read_plain_fetch, write_plain_answer
from penstock.protocol.wire import Malformed, Spans

HEAD = b"header"

versions = st.integers(OLDEST, NEWEST)
int32, int64 = (st.integers(-(1 << bits), (1 << bits) - 1) for bits in (31, 63))
names = st.text(max_size=5)
topic_ids = st.binary(min_size=16, max_size=16).map(Uuid)


@st.composite
def requests(draw: st.DrawFn) -> tuple[int, FetchRequest]:
    version = draw(versions)
    partition = st.builds(
        FetchRequest.FetchPartition,
        partition=int32,
        current_leader_epoch=int32,
        fetch_offset=int64,
        log_start_offset=int64,
        partition_max_bytes=int32,
        **({"last_fetched_epoch": int32} if version >= 12 else {}),
    )
    name: dict[str, Any] = {"topic_id": topic_ids} if version >= 13 else {"topic": names}
    topic = st.builds(FetchRequest.FetchTopic, partitions=st.lists(partition, max_size=3), **name)
    state = st.builds(FetchRequest.ReplicaState, replica_id=int32, replica_epoch=int64)
    replica: dict[str, Any] = {"replica_state": state} if version >= 15 else {"replica_id": int32}
    request = st.builds(
        FetchRequest,
        max_wait_ms=int32,
        min_bytes=int32,
        max_bytes=int32,
        isolation_level=st.integers(0, 1),
        session_id=int32,
        session_epoch=int32,
        topics=st.lists(topic, max_size=3),
        **replica,
    )
    return version, draw(request)


def seen(request: Any) -> list[Any]:
    """Everything that the broker asks of a request, of a message or of what was read by hand."""
    state = request.replica_state
    return [
        request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level, request.session_id,
        request.session_epoch, request.replica_id, state.replica_id, state.replica_epoch, request.rack_id,
        list(request.forgotten_topics_data),
        [
            (
                topic.topic, topic.topic_id,
                [
                    (
                        each.partition, each.current_leader_epoch, each.fetch_offset, each.last_fetched_epoch,
                        each.log_start_offset, each.partition_max_bytes,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    ]  # fmt: skip


@given(requests())
def test_a_request_is_what_the_codec_reads(given: tuple[int, FetchRequest]) -> None:
    version, request = given
    plain = read_plain_fetch(bytearray(HEAD + encode(request, version)), len(HEAD), version)
    assert plain is not None
    assert seen(plain) == seen(request)


@given(requests(), st.data())
def test_a_damaged_request_is_read_as_the_codec_reads_it_or_not_at_all(
    given: tuple[int, FetchRequest], data: st.DataObject
) -> None:
    version, request = given
    frame = bytearray(encode(request, version))
    for at in data.draw(st.lists(st.integers(0, len(frame) - 1), max_size=2)):
        frame[at] = data.draw(st.integers(0, 255))
    del frame[data.draw(st.integers(0, len(frame))) :]
    plain = read_plain_fetch(frame, 0, version)
    if plain is not None:
        assert seen(plain) == seen(decode(FetchRequest, version, frame, 0)[0])


@pytest.mark.parametrize(
    ("version", "request_"),
    [
        (8, FetchRequest()),
        (11, FetchRequest(rack_id="b")),
        (17, FetchRequest(rack_id="b")),
        (17, FetchRequest(cluster_id="c")),
        (17, FetchRequest(forgotten_topics_data=[FetchRequest.ForgottenTopic(topic_id=Uuid(bytes(16)))])),
        (11, FetchRequest(forgotten_topics_data=[FetchRequest.ForgottenTopic(topic="a")])),
        (
            18,
            FetchRequest(
                topics=[FetchRequest.FetchTopic(partitions=[FetchRequest.FetchPartition(high_watermark=7)])],
            ),
        ),
    ],
)
def test_what_is_unusual_is_left_to_the_codec(version: int, request_: FetchRequest) -> None:
    assert read_plain_fetch(bytearray(encode(request_, version)), 0, version) is None


told = st.builds(
    lambda numbers, aborted, records: Plain(
        *numbers, aborted, [memoryview(r) for r in records], sum(map(len, records))
    ),
    st.tuples(int32, int64, int64, int64),
    st.booleans(),
    st.lists(st.binary(min_size=1, max_size=200), max_size=2),
)


@given(versions, int32, st.data())
def test_an_answer_is_what_the_codec_writes(version: int, session_id: int, data: st.DataObject) -> None:
    topics = data.draw(st.dictionaries(topic_ids if version >= 13 else names, st.lists(told, max_size=3), max_size=3))
    parts = write_plain_answer(version, session_id, topics.items())
    message = FetchResponse(
        session_id=session_id,
        responses=[
            FetchResponse.FetchableTopicResponse(
                **({"topic_id": name} if version >= 13 else {"topic": name}),
                partitions=[_data(plain) for plain in partitions],
            )
            for name, partitions in topics.items()
        ],
    )
    assert b"".join(parts) == b"".join(encode_parts(message, version))


def _data(plain: Plain) -> FetchResponse.PartitionData:
    return FetchResponse.PartitionData(
        partition_index=plain.partition,
        high_watermark=plain.high_watermark,
        last_stable_offset=plain.last_stable,
        log_start_offset=plain.log_start,
        aborted_transactions=[] if plain.aborted else None,
        records=Spans(list(plain.spans)) if plain.spans else b"",
    )


def test_an_answer_keeps_spans_unread() -> None:
    span = memoryview(b"batch")
    parts = write_plain_answer(17, 1, [(bytes(16), [Plain(0, 1, 1, 0, False, [span], len(span))])])
    assert parts[1] is span


def test_bytes_that_are_cut_short_are_no_fetch() -> None:
    frame = encode(FetchRequest(), 17)
    with pytest.raises(Malformed):
        decode(FetchRequest, 17, frame[:-1], 0)
    assert read_plain_fetch(frame[:-1], 0, 17) is None
