"""Foreign codecs that judge ours: each reads our bytes, shows what it understood, and writes them again."""

from __future__ import annotations

import datetime
import io
import uuid
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from penstock.model.ids import ZERO_UUID
from penstock.protocol.schema import Field, schema_of
from penstock.protocol.source import Shape

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def _plain(value: Any) -> Any:
    """A foreign value in our terms."""
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return (value - EPOCH) // datetime.timedelta(milliseconds=1)
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, set):
        # kafka-python turns the bits of authorized operations into a set.
        return int.from_bytes(sum(1 << bit for bit in value).to_bytes(4, "big"), "big", signed=True)
    return value


def _differing(shape: Shape, field: Field, ours: Any, theirs: Any, where: str) -> str | None:
    if field.kind == "array" and ours is not None and theirs is not None:
        if len(ours) != len(theirs):
            return f"{where}: {len(ours)} elements, they read {len(theirs)}"
        if field.of in shape.structs:
            pairs = zip(ours, theirs, strict=True)
            found = (difference(shape.inner(field.of), *pair, f"{where}[{i}]") for i, pair in enumerate(pairs))
            return next(filter(None, found), None)
        theirs = [_plain(item) if item is not None or field.of != "uuid" else ZERO_UUID for item in theirs]
        return None if ours == theirs else f"{where}: {ours!r}, they read {theirs!r}"
    if field.kind == "struct" and ours is not None and theirs is not None:
        return difference(shape.inner(field.of), ours, theirs, where)
    theirs = _plain(theirs)
    if theirs is None and not shape.nullable(field):
        # kio says None for the zero uuid, kafka-python for operations that were not asked for.
        theirs = ZERO_UUID if field.kind == "uuid" else field.default
    return None if ours == theirs else f"{where}: {ours!r}, they read {theirs!r}"


def _spellings(name: str) -> tuple[str, ...]:
    """kio drops the unit of a duration and underlines builtins; kafka-python shortens the authorized operations."""
    return (
        name,
        name.removesuffix("_ms"),
        f"{name}_",
        name.replace("kraft", "k_raft"),
        name.replace("_2pc", "2_pc"),
        name.removeprefix("topic_").removeprefix("cluster_"),
    )


def difference(shape: Shape, ours: Any, theirs: Any, where: str = "") -> str | None:
    """What a judge understood otherwise than we meant it; None if nothing."""
    for field in (*shape.body, *shape.tagged):
        spelling = next((name for name in _spellings(field.name) if hasattr(theirs, name)), None)
        if spelling is None:
            return f"{where}.{field.name}: they have no such field"
        found = _differing(shape, field, getattr(ours, field.name), getattr(theirs, spelling), f"{where}.{field.name}")
        if found:
            return found
    return None


Reread = Callable[[bytes], tuple[Any, bytes]]
"""Takes our bytes; gives what was understood and the bytes written from it."""


def kio_judge(cls: type[Any], version: int) -> Reread | None:
    from kio.schema.index import schema_name_map
    from kio.serial import entity_reader, entity_writer
    from kio.static.constants import EntityType

    schema = schema_of(cls)
    if schema.kind not in EntityType.__members__:
        return None
    kind = EntityType[schema.kind]
    for versions in schema_name_map.values():
        path = versions.get(version, {}).get(kind)
        if path is not None and path.partition(":")[2] == cls.__name__:
            break
    else:
        return None
    module, _, name = path.partition(":")
    entity = getattr(import_module(module), name)
    read, write = entity_reader(entity), entity_writer(entity)

    def reread(data: bytes) -> tuple[Any, bytes]:
        understood, end = read(data, 0)
        assert end == len(data)
        out = io.BytesIO()
        write(out, understood)
        return understood, out.getvalue()

    return reread


KAFKA_PYTHON_MODULES = ("admin", "api_header", "consumer", "consumer.metadata", "metadata", "producer", "sasl")


@cache
def _kafka_python() -> dict[str, type[Any]]:
    with warnings.catch_warnings():
        # It reads its schemas with a function of importlib that is deprecated in 3.11.
        warnings.simplefilter("ignore", DeprecationWarning)
        modules = [import_module(f"kafka.protocol.{name}") for name in KAFKA_PYTHON_MODULES]
    return {name: value for module in modules for name, value in vars(module).items() if hasattr(value, "_struct")}


def kafka_python_judge(cls: type[Any], version: int) -> Reread | None:
    found = _kafka_python().get(cls.__name__)
    if found is None:
        return None
    from kafka.protocol.api_header import ApiHeader
    from kafka.protocol.api_message import ApiMessage

    if version > found._valid_versions[1]:
        return None

    def reread(data: bytes) -> tuple[Any, bytes]:
        if issubclass(found, ApiHeader):
            flexible = schema_of(cls).flexible.has(version)
            header = found.decode(io.BytesIO(data), flexible=flexible)
            return header, bytes(header.encode(flexible=flexible))
        understood = found.decode(data, version=version, header=False)
        if issubclass(found, ApiMessage):
            understood._header = None  # decoding leaves it out, encoding looks for it
        return understood, bytes(understood.encode(version=version, header=False))

    return reread


JUDGES: dict[str, Callable[[type[Any], int], Reread | None]] = {"kio": kio_judge, "kafka-python": kafka_python_judge}
