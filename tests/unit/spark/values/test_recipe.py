"""A recipe travels to workers and gives the same decoder there."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from penstock.spark.values.decoding import recipe_of
from penstock.spark.values.options import ValueOptions
from penstock.spark.values.schema import columns_of

AVRO = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}'


@pytest.mark.parametrize(
    ("options", "value", "row"),
    [
        (ValueOptions("json", schema="a INT"), b'{"a": 1}', {"a": 1}),
        (ValueOptions("csv", schema="a INT"), b"1", {"a": 1}),
        (ValueOptions("text"), b"1", {"value": "1"}),
        (ValueOptions("raw"), b"1", {"value": b"1"}),
        (ValueOptions("regex", regex_pattern="(?P<a>.)"), b"1", {"a": "1"}),
        (ValueOptions("avro", avro_schema=AVRO), b"\2", {"a": 1}),
    ],
)
def test_a_recipe_pickles(options: ValueOptions, value: bytes, row: dict[str, object]) -> None:
    recipe = recipe_of(options, columns_of(options))
    decoder = pickle.loads(pickle.dumps(recipe)).build()
    assert decoder.schema == recipe.schema
    assert decoder.decode(pa.array([value], pa.binary())).columns.to_pylist() == [row]
