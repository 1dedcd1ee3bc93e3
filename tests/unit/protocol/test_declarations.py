"""The declarations are consistent with their annotations, so that what a type checker believes is true."""

from __future__ import annotations

import sys
import types
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from penstock.protocol.disk.group_records import GROUP_RECORDS, group_record
from penstock.protocol.disk.metadata_records import METADATA_RECORDS
from penstock.protocol.schema import STRUCT_DEFAULT, Field, schema_of
from penstock.protocol.versions import NO_VERSIONS
from penstock.protocol.wire import PRIMITIVES
from tests.unit.protocol.declared import MESSAGES

PYTHON_TYPES = {
    "int8": int,
    "int16": int,
    "int32": int,
    "int64": int,
    "uint16": int,
    "uint32": int,
    "float64": float,
    "boolean": bool,
    "string": str,
    "bytes": bytes,
}


def classes() -> list[Any]:
    return [
        pytest.param(inner, MESSAGES[name], id=inner.__qualname__)
        for name in MESSAGES
        for inner in (MESSAGES[name], *schema_of(MESSAGES[name]).structs.values())
    ]


def hints_of(cls: type[Any], message: type[Any]) -> dict[str, Any]:
    module = vars(sys.modules[cls.__module__])
    return get_type_hints(cls, globalns=module, localns=dict(schema_of(message).structs))


def without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint):
        left = [member for member in get_args(hint) if member is not type(None)]
        return (left[0] if len(left) == 1 else Union[tuple(left)]), True  # noqa: UP007 (built from a list)
    return hint, False


def expected(field: Field, message: type[Any]) -> Any:
    if field.kind == "struct":
        return schema_of(message).structs[field.of]
    return PYTHON_TYPES.get(field.kind)


@pytest.mark.parametrize(("cls", "message"), classes())
def test_annotations_say_what_the_wire_says(cls: type[Any], message: type[Any]) -> None:
    hints = hints_of(cls, message)
    for field in schema_of(cls).fields:
        hint, may_be_none = without_none(hints[field.name])
        assert may_be_none == (field.nullable != NO_VERSIONS), field.name
        if field.kind == "array":
            assert get_origin(hint) is list, field.name
            (element,) = get_args(hint)
            if field.of in PRIMITIVES:
                assert PYTHON_TYPES.get(field.of, element) is element, field.name
            else:
                assert element is schema_of(message).structs[field.of], field.name
        else:
            assert expected(field, message) in (None, hint), field.name


@pytest.mark.parametrize(("cls", "message"), classes())
def test_a_null_default_needs_a_nullable_field(cls: type[Any], message: type[Any]) -> None:
    for field in schema_of(cls).fields:
        if field.default is None:
            assert field.nullable != NO_VERSIONS, field.name
        if field.kind == "struct" and field.default is not None:
            assert field.default is STRUCT_DEFAULT


@pytest.mark.parametrize(("cls", "message"), classes())
def test_tags_of_a_struct_are_distinct(cls: type[Any], message: type[Any]) -> None:
    tags = [field.tag for field in schema_of(cls).fields if field.tag >= 0]
    assert len(tags) == len(set(tags))


def test_metadata_records_are_found_by_key() -> None:
    records = {
        schema_of(cls).key: cls for cls in MESSAGES.values() if cls.__module__.rpartition(".")[2][:9] == "metadata_"
    }
    assert records == METADATA_RECORDS
    assert len(METADATA_RECORDS) == 26


@pytest.mark.parametrize("key", GROUP_RECORDS)
def test_group_records_are_found_by_key(key: int) -> None:
    key_class, value_class = group_record(key)
    assert (schema_of(key_class).key, schema_of(key_class).kind) == (key, "coordinator-key")
    assert (schema_of(value_class).key, schema_of(value_class).kind) == (key, "coordinator-value")
