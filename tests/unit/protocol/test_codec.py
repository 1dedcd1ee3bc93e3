"""Encoding and decoding beyond the round trip: unknown tags, record data, fragments."""

from __future__ import annotations

import pytest

from penstock.model.ids import Uuid
from penstock.protocol.codec import decode, encode, encode_into, encode_parts, fragment, parts_size
from penstock.protocol.disk.consumer_group_records import ConsumerGroupMemberMetadataValue
from penstock.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.metadata import MetadataResponse
from penstock.protocol.messages.produce import ProduceRequest
from penstock.protocol.wire import Spans, Unencodable, set_unknown_tags, unknown_tags


class Span:
    """Stands for a piece of a file."""

    def __init__(self, size: int) -> None:
        self.size = size


def fetched(*records: object) -> FetchResponse:
    partitions = [
        FetchResponse.PartitionData(partition_index=index, records=data)  # type: ignore[arg-type]
        for index, data in enumerate(records)
    ]
    return FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic="t", partitions=partitions)])


def test_a_known_message_has_known_bytes() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=5, member_id="m", group_instance_id=None)
    assert encode(request, 0) == b"\0\1g" + b"\0\0\0\5" + b"\0\1m"
    assert encode(request, 3) == b"\0\1g" + b"\0\0\0\5" + b"\0\1m" + b"\xff\xff"
    assert encode(request, 4) == b"\2g" + b"\0\0\0\5" + b"\2m" + b"\0" + b"\0"


def test_encode_into_appends() -> None:
    out = bytearray(b"before")
    encode_into(HeartbeatRequest(group_id="g"), 0, out)
    assert out == b"before" + encode(HeartbeatRequest(group_id="g"), 0)


def test_unknown_tags_survive_reading_and_writing() -> None:
    data = encode(HeartbeatRequest(group_id="g"), 4)[:-1] + b"\x02" + b"\x05\x03abc" + b"\xff\x01\x00"
    request, end = decode(HeartbeatRequest, 4, data)
    assert end == len(data)
    assert unknown_tags(request) == ((5, b"abc"), (255, b""))
    assert encode(request, 4) == data


def test_unknown_tags_mix_with_known_ones_in_order() -> None:
    request = FetchRequest(cluster_id="c", replica_state=FetchRequest.ReplicaState(replica_id=1))
    set_unknown_tags(request, ((9, b"x"),))
    data = encode(request, 15)
    assert data.endswith(b"\x03" + b"\x00\x02\x02c" + b"\x01\x0d\0\0\0\1" + b"\xff" * 8 + b"\0" + b"\x09\x01x")
    assert decode(FetchRequest, 15, data)[0] == request


def test_unknown_tags_in_any_order_are_read() -> None:
    data = encode(HeartbeatRequest(), 4)[:-1] + b"\x02" + b"\x07\x00" + b"\x05\x00"
    assert unknown_tags(decode(HeartbeatRequest, 4, data)[0]) == ((7, b""), (5, b""))


def test_record_data_is_a_view_of_the_frame() -> None:
    request = ProduceRequest(
        topic_data=[
            ProduceRequest.TopicProduceData(
                name="t", partition_data=[ProduceRequest.PartitionProduceData(records=b"batch")]
            )
        ]
    )
    frame = bytearray(encode(request, 9))
    records = decode(ProduceRequest, 9, frame)[0].topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records == b"batch"
    frame[frame.index(b"batch")] = ord("c")
    assert records == b"catch"


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_record_data_that_lives_elsewhere_is_passed_on_unread(version: int) -> None:
    first, second = Span(5000), Span(1)
    parts = encode_parts(fetched(first, second), version)
    assert [part for part in parts if isinstance(part, Span)] == [first, second]
    filled = b"".join(bytes(part.size) if isinstance(part, Span) else part for part in parts)
    assert filled == encode(fetched(bytes(5000), b"\0"), version)
    assert parts_size(parts) == len(filled)


def test_spans_are_passed_on_one_by_one() -> None:
    span = Span(10)
    parts = encode_parts(fetched(Spans([b"head", span])), 12)
    assert parts[1:3] == [b"head", span]


def test_large_buffers_are_passed_on_and_small_ones_copied() -> None:
    large = bytes(1 << 20)
    parts = encode_parts(fetched(b"small", large), 12)
    assert len(parts) == 3
    assert parts[1] is large
    assert b"".join(parts) == encode(fetched(b"small", large), 12)


def test_record_data_that_lives_elsewhere_cannot_be_made_one_piece() -> None:
    with pytest.raises(Unencodable):
        encode(fetched(Span(10)), 12)


@pytest.mark.parametrize("version", [0, 8, 12])
def test_a_fragment_stands_for_the_struct_it_was_made_of(version: int) -> None:
    topics = [
        MetadataResponse.MetadataResponseTopic(
            name=name, partitions=[MetadataResponse.MetadataResponsePartition(replica_nodes=[1, 2, 3])]
        )
        for name in "ab"
    ]
    whole = encode(MetadataResponse(topics=topics), version)
    joined = MetadataResponse(topics=[fragment(topics[0], version), topics[1]])
    assert encode(joined, version) == whole
    assert b"".join(encode_parts(joined, version)) == whole


@pytest.mark.parametrize("count", [0, 1, 126, 127, 128, 300, 20_000])
@pytest.mark.parametrize("version", [8, 9])
def test_arrays_of_any_length_survive(count: int, version: int) -> None:
    partition = MetadataResponse.MetadataResponsePartition(
        error_code=3, replica_nodes=list(range(count)), isr_nodes=[1], offline_replicas=list(range(count))
    )
    message = MetadataResponse(
        topics=[MetadataResponse.MetadataResponseTopic(partitions=[partition] * (count or 1))] if count < 1000 else [],
        brokers=[MetadataResponse.MetadataResponseBroker(node_id=node) for node in range(count)],
    )
    assert decode(MetadataResponse, version, encode(message, version))[0] == message


def test_a_null_struct_is_minus_one_in_the_body_and_zero_in_a_tag() -> None:
    assert encode(DescribeTopicPartitionsRequest(cursor=None), 0).endswith(b"\xff\0")
    member = ConsumerGroupMemberMetadataValue(classic_member_metadata=None)
    assert encode(member, 0).endswith(b"\x01\x00\x01\x00")
    assert decode(ConsumerGroupMemberMetadataValue, 0, encode(member, 0))[0].classic_member_metadata is None


def test_uuids_are_sixteen_raw_bytes() -> None:
    topic_id = Uuid(bytes(range(16)))
    request = FetchRequest(topics=[FetchRequest.FetchTopic(topic_id=topic_id)])
    assert topic_id in encode(request, 13)
    assert decode(FetchRequest, 13, encode(request, 13))[0].topics[0].topic_id == topic_id
