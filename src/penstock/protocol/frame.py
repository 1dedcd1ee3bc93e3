"""Whole requests and responses: size, header, body.

A frame on the wire is an int32 size and that many bytes. Functions that read take the bytes after the size; functions
that write put the size in front.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import Any, NamedTuple

from penstock.protocol.codec import decode, encode_into, encode_parts, parts_size
from penstock.protocol.headers import RequestHeader
from penstock.protocol.primitives import skim_tags
from penstock.protocol.registry import APIS, Api
from penstock.protocol.schema import schema_of
from penstock.protocol.wire import Malformed, set_unknown_tags

_SIZE = Struct(">i")
_REQUEST_HEAD = Struct(">hhih")
_SIZED_CORRELATION = Struct(">ii")


class Request(NamedTuple):
    """A request as it came: its header and where its body begins."""

    header: RequestHeader
    body: int


def read_request_header(buf: bytes | bytearray | memoryview) -> Request:
    """The header of the request in `buf` (a frame without its size) and the position of the body.

    `Malformed` when the key is unknown, because the header's own layout hangs on it. A version out of range is the
    caller's to judge: ApiVersions must answer it.
    """
    try:
        key, version, correlation_id, size = _REQUEST_HEAD.unpack_from(buf)
        position = 10
        client_id = None
        if size >= 0:
            position += size
            client_id = str(buf[10:position], "utf-8")
        found = APIS.get(key)
        if found is None:
            raise Malformed(f"there is no API with key {key}")
        header = RequestHeader(
            request_api_key=key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
        )
        if version >= found.flexible_from:
            count = buf[position]
            position += 1
            if count:
                tags, position = skim_tags(memoryview(buf), position, count, len(buf))
                set_unknown_tags(header, tags)
    except (struct_error, IndexError, UnicodeDecodeError) as broken:
        raise Malformed(f"request header: {broken}") from None
    if position > len(buf):
        raise Malformed("the frame ends inside the request header")
    return Request(header, position)


def encode_request(correlation_id: int, client_id: str | None, message: object, version: int) -> bytes:
    """A whole frame, size included."""
    out = _request_head(correlation_id, client_id, schema_of(message.__class__).key, version)
    encode_into(message, version, out)
    _SIZE.pack_into(out, 0, len(out) - 4)
    return bytes(out)


def encode_request_parts(correlation_id: int, client_id: str | None, message: object, version: int) -> list[Any]:
    """A whole frame as pieces, size included; large record data is among them as it is, not copied."""
    head = _request_head(correlation_id, client_id, schema_of(message.__class__).key, version)
    body = encode_parts(message, version)
    _SIZE.pack_into(head, 0, len(head) - 4 + parts_size(body))
    if body and body[0].__class__ is bytes:
        head += body[0]
        return [head, *body[1:]]
    return [head, *body]


def frame_request(
    correlation_id: int, client_id: str | None, key: int, version: int, body: bytes | bytearray
) -> bytearray:
    """A whole frame, size included, around a body that is already encoded."""
    out = _request_head(correlation_id, client_id, key, version)
    out += body
    _SIZE.pack_into(out, 0, len(out) - 4)
    return out


def _request_head(correlation_id: int, client_id: str | None, key: int, version: int) -> bytearray:
    """Room for the size, then the header."""
    name = b"" if client_id is None else client_id.encode()
    out = bytearray(4)
    out += _REQUEST_HEAD.pack(key, version, correlation_id, -1 if client_id is None else len(name))
    out += name
    if version >= APIS[key].flexible_from:
        out.append(0)
    return out


def encode_response_parts(correlation_id: int, message: object, key: int, version: int) -> list[Any]:
    """A whole frame as pieces: bytes, and record data that is `Sized`, unread. The size comes first."""
    return frame_response(correlation_id, encode_parts(message, version), APIS[key], version)


def frame_response(correlation_id: int, body: list[Any], api: Api, version: int) -> list[Any]:
    """Put size and header before the pieces of a body that is already encoded."""
    tagged = version >= api.tags_from
    size = parts_size(body) + (5 if tagged else 4)
    head = _SIZED_CORRELATION.pack(size, correlation_id) + (b"\0" if tagged else b"")
    if body and body[0].__class__ is bytes:
        return [head + body[0], *body[1:]]
    return [head, *body]


def decode_response(buf: bytes | bytearray | memoryview, key: int, version: int) -> tuple[int, Any]:
    """(correlation id, message) of a frame without its size."""
    found = APIS[key]
    try:
        (correlation_id,) = _SIZE.unpack_from(buf)
        position = 4
        if version >= found.tags_from:
            count = buf[4]
            position = 5
            if count:
                _, position = skim_tags(memoryview(buf), position, count, len(buf))
    except (struct_error, IndexError) as broken:
        raise Malformed(f"response header: {broken}") from None
    message, end = decode(found.response(), version, buf, position)
    if end != len(buf):
        raise Malformed(f"{len(buf) - end} bytes follow the {found.name} response")
    return correlation_id, message
