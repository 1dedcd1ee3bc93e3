"""Valid requests of every served API, odd ones that no client would send, and ways to break both."""

from __future__ import annotations

import random
import struct
from typing import Any

from penstock.kernels import Record
from penstock.model.ids import Uuid
from penstock.protocol.batch import build_batch
from penstock.protocol.frame import encode_request
from penstock.protocol.schema import Field, schema_of
from penstock.protocol.source import Shape
from tests.walks.every_api import Target, request_of, served

TOPIC = "fuzzed"
# Nothing is created by chance, and what the others use is not deleted.
_TARGET = Target(TOPIC, Uuid(bytes(range(16))), "refused/name")
_LEFT_ALONE = {"DeleteTopics": "missing"}
_HUGE = (b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\xff\xff\xff\xff\x0f", b"\xff" * 10)
_WORDS = ("", TOPIC, "missing", "refused/name", "retention.ms", "1", "-1", "é" * 70, "x" * 300)
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_SMALL = (0, 1, 2, 3, 4, -1, -2)


def batches() -> list[bytes]:
    records = [Record(i, 1_700_000_000_000 + i, b"key %d" % i, b"value %d" % i, (("h", b"x"),)) for i in range(5)]
    return [build_batch(records, codec=codec) for codec in range(5)]


def seeds(chance: random.Random) -> list[bytes]:
    """Frames without their size, in every version that is served: one that makes sense, three that are well formed."""
    found = []
    for api in served():
        target = _TARGET._replace(topic=_LEFT_ALONE.get(api.name, TOPIC))
        for version in range(api.min, api.max + 1):
            messages = [request_of(api, version, target)]
            messages += [odd(api.request(), version, chance) for _ in range(3)]
            found += [encode_request(chance.randrange(1 << 31), "fuzz", each, version)[4:] for each in messages]
    return found


def odd(made: type[Any], version: int, chance: random.Random) -> Any:
    """A message that `version` can carry, with values from the edges of what they may be."""
    return _odd_struct(Shape.of(schema_of(made), version), chance)


def _odd_struct(shape: Shape, chance: random.Random) -> Any:
    fields = (*shape.body, *shape.tagged)
    return shape.schema.cls(**{field.name: _odd_value(shape, field, chance) for field in fields})


def _odd_value(shape: Shape, field: Field, chance: random.Random) -> Any:
    if shape.nullable(field) and chance.random() < 0.2:
        return None
    if field.kind == "array":
        return [_odd_element(shape, field.of, chance) for _ in range(chance.choice((0, 1, 1, 2, 3)))]
    if field.kind == "struct":
        return _odd_struct(shape.inner(field.of), chance)
    return _odd_plain(field.kind, chance)


def _odd_element(shape: Shape, kind: str, chance: random.Random) -> Any:
    return _odd_plain(kind, chance) if kind in _PLAIN else _odd_struct(shape.inner(kind), chance)


def _odd_plain(kind: str, chance: random.Random) -> Any:
    if kind in _BITS:
        edge = 1 << _BITS[kind] - 1
        return chance.choice((*_SMALL, edge - 1, -edge))
    match kind:
        case "boolean":
            return chance.random() < 0.5
        case "string":
            return chance.choice(_WORDS)
        case "uuid":
            return chance.choice((bytes(16), bytes(15) + b"\1", bytes(range(16))))
        case "records":
            return chance.choice((b"", bytes(61), *batches()))
        case "bytes":
            return chance.choice((b"", bytes(100)))
        case "float64":
            return chance.choice((0.0, -1.0, float("inf")))
        case _:
            return 0


_PLAIN = frozenset((*_BITS, "boolean", "string", "uuid", "records", "bytes", "float64", "uint16", "uint32"))


def mutate(frame: bytes, chance: random.Random) -> bytes:
    """The frame with its size, broken in up to three ways. The size may lie too."""
    body = bytearray(frame)
    size: int | None = None
    for _ in range(chance.randint(0, 3)):
        match chance.randrange(8):
            case 0 if body:
                body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
            case 1 if body:
                body[chance.randrange(len(body))] = chance.randrange(256)
            case 2:
                del body[chance.randrange(len(body) + 1) :]
            case 3:
                at = chance.randrange(len(body) + 1)
                body[at:at] = chance.choice(_HUGE)
            case 4:
                at = chance.randrange(len(body) + 1)
                body[at : at + 4] = chance.choice(_HUGE)
            case 5:
                body[2:4] = struct.pack(">h", chance.choice([-1, 0, 1, 12, 13, 14, 99, 32_767, -32_768]))
            case 6:
                body[0:2] = struct.pack(">h", chance.choice([-1, *range(95), 32_767]))
            case _:
                size = chance.choice([0, -1, 3, len(body) + 1, len(body) * 2, 104_857_601, 2**31 - 1, -(2**31)])
    return struct.pack(">i", len(body) if size is None else size) + bytes(body)
