"""Headers, sizes and whole frames."""

from __future__ import annotations

import pytest

from penstock.protocol import frame
from penstock.protocol.codec import decode, encode
from penstock.protocol.headers import RequestHeader
from penstock.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.protocol.messages.fetch import FetchResponse
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.protocol.wire import Malformed, Spans, unknown_tags


@pytest.mark.parametrize("client_id", ["me", "", None])
@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_request_is_read_as_it_was_written(client_id: str | None, version: int) -> None:
    request = HeartbeatRequest(group_id="g", generation_id=3)
    data = frame.encode_request(77, client_id, request, version)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    header, body = frame.read_request_header(memoryview(data)[4:])
    assert header == RequestHeader(
        request_api_key=12, request_api_version=version, correlation_id=77, client_id=client_id
    )
    assert decode(HeartbeatRequest, version, data[4:], body)[0] == request


@pytest.mark.parametrize("version", [0, 4])
def test_the_header_read_by_hand_is_the_declared_one(version: int) -> None:
    data = frame.encode_request(77, "me", HeartbeatRequest(), version)[4:]
    header, body = frame.read_request_header(data)
    assert decode(RequestHeader, 2 if version == 4 else 1, data) == (header, body)


def test_tags_in_the_header_are_kept() -> None:
    data = b"\0\x0c\0\x04\0\0\0\x01\0\x02me" + b"\x01\x05\x01x" + encode(HeartbeatRequest(), 4)
    header, body = frame.read_request_header(data)
    assert unknown_tags(header) == ((5, b"x"),)
    assert decode(HeartbeatRequest, 4, data, body)[0] == HeartbeatRequest()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\x0c\0",
        b"\0\x04\0\0\0\0\0\x01\xff\xff",
        b"\x7f\xff\0\0\0\0\0\x01\xff\xff",
        b"\0\x0c\0\0\0\0\0\x01\0\x05me",
        b"\0\x0c\0\x04\0\0\0\x01\xff\xff",
        b"\0\x0c\0\x04\0\0\0\x01\xff\xff\x7f\0\0",
        b"\0\x0c\0\0\0\0\0\x01\0\x01\xff",
    ],
)
def test_a_broken_header_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        frame.read_request_header(data)


def test_the_header_of_a_version_that_we_do_not_serve_is_read() -> None:
    """ApiVersions must be answered in any version, so the header must not depend on serving it."""
    header, _ = frame.read_request_header(b"\0\x12\0\x63\0\0\0\x01\xff\xff\x00")
    assert (header.request_api_key, header.request_api_version) == (18, 99)


@pytest.mark.parametrize("version", [0, 4])
def test_a_response_is_read_as_it_was_written(version: int) -> None:
    response = HeartbeatResponse(error_code=27)
    (data,) = frame.encode_response_parts(5, response, 12, version)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    assert frame.decode_response(data[4:], 12, version) == (5, response)


def test_an_api_versions_response_has_no_tags_in_its_header() -> None:
    (data,) = frame.encode_response_parts(5, ApiVersionsResponse(error_code=35), 18, 3)
    assert data[4:10] == b"\0\0\0\x05" + b"\0\x23"
    assert frame.decode_response(data[4:], 18, 3) == (5, ApiVersionsResponse(error_code=35))


def test_the_size_counts_record_data_that_lives_elsewhere() -> None:
    class Span:
        size = 1 << 20

    spans = Spans([Span(), Span()])
    topic = FetchResponse.FetchableTopicResponse(partitions=[FetchResponse.PartitionData(records=spans)])
    parts = frame.encode_response_parts(5, FetchResponse(responses=[topic]), 1, 13)
    written = sum(len(part) for part in parts if isinstance(part, bytes))
    assert int.from_bytes(parts[0][:4], "big") == written - 4 + (2 << 20)


def test_a_message_without_bytes_still_has_a_frame() -> None:
    data = frame.encode_request(1, None, ApiVersionsRequest(), 0)
    assert data == b"\0\0\0\x0a" + b"\0\x12\0\0\0\0\0\x01\xff\xff"
    assert frame.decode_response(b"\0\0\0\x01" + encode(ApiVersionsResponse(), 0), 18, 0) == (1, ApiVersionsResponse())


@pytest.mark.parametrize("data", [b"", b"\0\0\0", b"\0\0\0\x01", b"\0\0\0\x01\x05"])
def test_a_broken_response_header_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        frame.decode_response(data, 12, 4)
