"""Messages to bytes and back. The code for a (message, version) is written and compiled when first used.

    data = encode(HeartbeatRequest(group_id="g"), 4)
    request, end = decode(HeartbeatRequest, 4, data)

Decoding trusts nothing and raises only `Malformed`; encoding raises only `Unencodable`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import error as struct_error
from typing import Any, TypeVar, cast

from penstock.protocol.decoder import compile_decoder, holds_records
from penstock.protocol.encoder import compile_encoder
from penstock.protocol.schema import schema_of
from penstock.protocol.wire import Malformed, Sized, Unencodable

T = TypeVar("T")

# (class, version) -> (decoder, whether it wants a memoryview)
_decoders: dict[tuple[type, int], tuple[Callable[..., Any], bool]] = {}
_encoders: dict[tuple[type, int], Callable[[Any, bytearray], None]] = {}
_part_encoders: dict[tuple[type, int], Callable[[Any, list[Any]], None]] = {}

# What compiled code can raise on bytes that end too early or are no text.
_BAD_BYTES = (IndexError, struct_error, UnicodeDecodeError)
# What it can raise on a value of the wrong type or size.
_BAD_VALUES = (struct_error, AttributeError, TypeError, UnicodeEncodeError, OverflowError, ValueError)


def decode(cls: type[T], version: int, buf: bytes | bytearray | memoryview, position: int = 0) -> tuple[T, int]:
    """The message at `position` and the position after it.

    Record data is a memoryview of `buf`, so `buf` must stay unchanged as long as the message is used; everything else
    is copied out.
    """
    found = _decoders.get((cls, version))
    if found is None:
        found = _compile_decoder(cls, version)
    decoder, wants_view = found
    try:
        if wants_view:
            if buf.__class__ is not memoryview:
                buf = memoryview(buf)
            return cast("tuple[T, int]", decoder(buf, position))
        if buf.__class__ is bytes:
            return cast("tuple[T, int]", decoder(buf, position))
        # Bytes are cheaper to index than a view, and messages without record data are small.
        message, end = decoder(bytes(buf[position:]), 0)
        return message, end + position
    except _BAD_BYTES as broken:
        raise Malformed(f"{cls.__qualname__} v{version}: {broken}") from None


def encode(message: object, version: int) -> bytes:
    """The bytes of `message` in `version`."""
    out = bytearray()
    encode_into(message, version, out)
    return bytes(out)


def encode_into(message: object, version: int, out: bytearray) -> None:
    """Append the bytes of `message` to `out`. After `Unencodable`, `out` holds a part of them."""
    cls = message.__class__
    encoder = _encoders.get((cls, version))
    if encoder is None:
        encoder = _compile_encoder(cls, version)
    try:
        encoder(message, out)
    except _BAD_VALUES as broken:
        raise Unencodable(f"{cls.__qualname__} v{version}: {broken}") from broken


def encode_parts(message: object, version: int) -> list[bytes | Any]:
    """The bytes of `message` as a list of pieces. Record data that is `Sized` is in the list itself, unread."""
    cls = message.__class__
    encoder = _part_encoders.get((cls, version))
    if encoder is None:
        encoder = _compile_part_encoder(cls, version)
    parts: list[Any] = []
    try:
        encoder(message, parts)
    except _BAD_VALUES as broken:
        raise Unencodable(f"{cls.__qualname__} v{version}: {broken}") from broken
    return parts


def parts_size(parts: list[Any]) -> int:
    """The number of bytes that `parts` stand for."""
    return sum(
        len(part) if isinstance(part, (bytes, bytearray, memoryview)) else cast(Sized, part).size for part in parts
    )


def fragment(item: T, version: int) -> T:
    """Encode a struct ahead of its message: the result stands for `item` in an array of structs.

    It is bytes and only good for the same version. Replies that repeat (Metadata) are joined from such pieces.
    """
    return cast(T, encode(item, version))


def _compile_decoder(cls: type, version: int) -> tuple[Callable[..., Any], bool]:
    schema = schema_of(cls)
    if not schema.versions.has(version):
        raise Malformed(f"{cls.__qualname__} has versions {schema.versions}, not {version}")
    found = _decoders[cls, version] = compile_decoder(schema, version), holds_records(schema)
    return found


def _compile_encoder(cls: type, version: int) -> Callable[[Any, bytearray], None]:
    found = _encoders[cls, version] = compile_encoder(_encodable(cls, version), version, parts=False)
    return found


def _compile_part_encoder(cls: type, version: int) -> Callable[[Any, list[Any]], None]:
    found = _part_encoders[cls, version] = compile_encoder(_encodable(cls, version), version, parts=True)
    return found


def _encodable(cls: type, version: int) -> Any:
    schema = schema_of(cls)
    if not schema.versions.has(version):
        raise Unencodable(f"{cls.__qualname__} has versions {schema.versions}, not {version}")
    return schema
