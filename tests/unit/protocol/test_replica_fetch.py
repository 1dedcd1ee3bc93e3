"""A follower's fetch and its answer, written and read by hand, against the general codec."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.codec import encode
from penstock.protocol.frame import decode_response, encode_response_parts
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.protocol.replica_fetch import FETCH, VERSION, FetchAnswer, answer_of, encode_fetch, read_answer
from penstock.protocol.wire import Malformed

int16, int32, int64 = (st.integers(-(1 << bits), (1 << bits) - 1) for bits in (15, 31, 63))
topic_ids = st.binary(min_size=16, max_size=16)


@given(
    st.lists(int32, min_size=7, max_size=7),
    int64,
    st.lists(st.tuples(topic_ids, st.lists(st.tuples(int32, int32, int64, int32, int64), max_size=3)), max_size=3),
    st.lists(st.tuples(topic_ids, st.lists(int32, max_size=3)), max_size=3),
)
def test_a_question_is_what_the_codec_writes(
    numbers: list[int],
    replica_epoch: int,
    topics: list[tuple[bytes, list[tuple[int, int, int, int, int]]]],
    forgotten: list[tuple[bytes, list[int]]],
) -> None:
    wait_ms, min_bytes, max_bytes, session_id, session_epoch, partition_bytes_max, replica = numbers
    body = encode_fetch(
        wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=topics,
        partition_bytes_max=partition_bytes_max,
        forgotten=forgotten,
        replica=replica if replica != -1 else 0,  # nobody, the default, is left out by the codec
        replica_epoch=replica_epoch,
    )
    message = FetchRequest(
        replica_state=FetchRequest.ReplicaState(
            replica_id=replica if replica != -1 else 0, replica_epoch=replica_epoch
        ),
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[
            FetchRequest.FetchTopic(
                topic_id=topic_id,
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=partition,
                        current_leader_epoch=leader_epoch,
                        fetch_offset=offset,
                        last_fetched_epoch=last_epoch,
                        log_start_offset=log_start,
                        partition_max_bytes=partition_bytes_max,
                    )
                    for partition, leader_epoch, offset, last_epoch, log_start in asked
                ],
            )
            for topic_id, asked in topics
        ],
        forgotten_topics_data=[
            FetchRequest.ForgottenTopic(topic_id=topic_id, partitions=partitions) for topic_id, partitions in forgotten
        ],
    )
    assert body == encode(message, VERSION)


partitions = st.builds(
    FetchResponse.PartitionData,
    partition_index=int32,
    error_code=int16,
    high_watermark=int64,
    last_stable_offset=int64,
    log_start_offset=int64,
    records=st.one_of(st.none(), st.binary(max_size=300)),
    aborted_transactions=st.one_of(
        st.none(), st.lists(st.builds(FetchResponse.AbortedTransaction, producer_id=int64), max_size=2)
    ),
    diverging_epoch=st.builds(
        FetchResponse.EpochEndOffset, epoch=st.just(3), end_offset=st.sampled_from([-1, -1, -1, 0, 7])
    ),
    current_leader=st.builds(FetchResponse.LeaderIdAndEpoch, leader_id=st.sampled_from([-1, -1, 2])),
)
answers = st.builds(
    FetchResponse,
    throttle_time_ms=int32,
    error_code=int16,
    session_id=int32,
    responses=st.lists(
        st.builds(
            FetchResponse.FetchableTopicResponse, topic_id=topic_ids, partitions=st.lists(partitions, max_size=3)
        ),
        max_size=3,
    ),
    node_endpoints=st.lists(
        st.builds(FetchResponse.NodeEndpoint, node_id=int32, host=st.just("h"), port=int32), max_size=1
    ),
)


def framed(reply: FetchResponse) -> bytearray:
    return bytearray(b"".join(encode_response_parts(5, reply, FETCH, VERSION))[4:])


def by_the_codec(frame: bytearray) -> FetchAnswer | None:
    try:
        return answer_of(decode_response(frame, FETCH, VERSION)[1])
    except Malformed:
        return None


@given(answers)
def test_an_answer_is_what_the_codec_reads(reply: FetchResponse) -> None:
    frame = framed(reply)
    assert read_answer(frame) == by_the_codec(frame)


@given(answers, st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=3), st.integers(0, 3))
def test_a_spoilt_answer_is_refused_as_by_the_codec(
    reply: FetchResponse, changes: list[tuple[int, int]], cut: int
) -> None:
    frame = framed(reply)
    for at, byte in changes:
        frame[at % len(frame)] = byte
    del frame[len(frame) - cut :]
    expected = by_the_codec(frame)
    if expected is None:
        with pytest.raises(Malformed):
            read_answer(frame)
    else:
        assert read_answer(frame) == expected
