"""Strategies that are derived from the declarations: messages that a version can carry."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from penstock.protocol.schema import Field, schema_of
from penstock.protocol.source import Shape
from tests.properties import examples

EXAMPLES = 15

quick = settings(
    max_examples=examples(EXAMPLES),
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


def _whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


TEXT = st.one_of(
    st.text(max_size=12),
    # 126 to 128 bytes lie where the compact length grows a byte.
    st.sampled_from(["", "é" * 63, "x" * 126, "x" * 127, "x" * 128, "x" * 300]),
)
DATA = st.one_of(st.binary(max_size=12), st.sampled_from([b"", b"d" * 127, b"d" * 200]))
UUIDS = st.binary(min_size=16, max_size=16)
PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "int8": _whole(8),
    "int16": _whole(16),
    "int32": _whole(32),
    "int64": _whole(64),
    "uint16": st.integers(0, (1 << 16) - 1),
    "uint32": st.integers(0, (1 << 32) - 1),
    "float64": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "uuid": UUIDS,
    "string": TEXT,
    "bytes": DATA,
    "records": DATA,
}


# kio turns error codes into an enum and times into time types, so it can only judge values that those can hold.
ERROR_CODES = st.integers(-1, 130)
SOME_MILLIS = st.integers(0, (1 << 31) - 1)


def _tamed(field: Field) -> st.SearchStrategy[Any]:
    if field.kind == "int16" and field.name.endswith("error_code"):
        return ERROR_CODES
    if field.kind in ("int32", "int64") and (field.name.endswith("_ms") or "time" in field.name):
        return SOME_MILLIS
    return PRIMITIVES[field.kind]


def _value(shape: Shape, field: Field, tame: bool) -> st.SearchStrategy[Any]:
    if field.kind == "array":
        element = PRIMITIVES[field.of] if field.of in PRIMITIVES else _struct(shape.inner(field.of), tame)
        found: st.SearchStrategy[Any] = st.lists(element, max_size=3)
    elif field.kind == "struct":
        found = _struct(shape.inner(field.of), tame)
    else:
        found = _tamed(field) if tame else PRIMITIVES[field.kind]
    return st.none() | found if shape.nullable(field) else found


def _struct(shape: Shape, tame: bool) -> st.SearchStrategy[Any]:
    present = {field.name: _value(shape, field, tame) for field in (*shape.body, *shape.tagged)}
    return st.builds(shape.schema.cls, **present)


@cache
def messages(cls: type[Any], version: int, *, tame: bool = False) -> st.SearchStrategy[Any]:
    """Messages of `cls` with any values that `version` can say; `tame` ones can also be held by every judge."""
    return _struct(Shape.of(schema_of(cls), version), tame)
