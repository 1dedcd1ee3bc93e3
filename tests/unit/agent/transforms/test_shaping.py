"""add, drop, rename, keep."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.agent.transforms.chains import apply, fields, parcel, steps

EVENT = {"a": 1, "b": {"c": 2, "d": 3}, "e.f": 4}


def shaped(step: str, event: dict[str, Any] = EVENT) -> dict[str, Any]:
    (found,) = fields(steps('parse = "json"', step), json.dumps(event))
    return found


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (
            'add = { env = "prod", n = 7, on = true, tags = ["x"] }',
            EVENT | {"env": "prod", "n": 7, "on": True, "tags": ["x"]},
        ),
        ('add = { from = "{host}:{input}:{file}" }', EVENT | {"from": "web-1:web:web.log"}),
        ('add = { text = "{a}/{b.c}/{e.f}" }', EVENT | {"text": "1/2/4"}),
        ('add = { copy = "{b}" }', EVENT | {"copy": {"c": 2, "d": 3}}),
        ('add = { gone = "{nothing}", sure = "{nothing|none}" }', EVENT | {"sure": "none"}),
        ('add = { "b.x.y" = 9 }', {**EVENT, "b": {"c": 2, "d": 3, "x": {"y": 9}}}),
        ('add = { a = "new", z = 0 }\noverwrite = false', EVENT | {"z": 0}),
        ('add = { "b.c" = 0 }\noverwrite = false', EVENT),
        ('add = { brace = "{{a}}" }', EVENT | {"brace": "{a}"}),
        ('drop = ["a", "b.c", "nothing", "e.f"]', {"b": {"d": 3}}),
        ('drop = "a"', {"b": {"c": 2, "d": 3}, "e.f": 4}),
        ('rename = { a = "x", "b.c" = "y.z", nothing = "n" }', {"b": {"d": 3}, "e.f": 4, "x": 1, "y": {"z": 2}}),
        ('rename = { a = "b", b = "a" }', {"a": {"c": 2, "d": 3}, "b": 1, "e.f": 4}),
        ('keep = ["a", "nothing"]', {"a": 1}),
        ('keep = ["b.c", "e.f"]', {"b": {"c": 2}, "e": {"f": 4}}),
    ],
)
def test_fields_after_a_step(step: str, expected: dict[str, Any]) -> None:
    assert shaped(step) == expected


def test_a_line_that_nobody_understood_has_the_field_message() -> None:
    assert fields(steps('add = { env = "prod" }'), "hello") == [{"message": "hello", "env": "prod"}]
    assert fields(steps('rename = { message = "log" }'), "hello") == [{"log": "hello"}]


@pytest.mark.parametrize("step", ['drop = ["a"]', 'keep = ["message"]', 'rename = { a = "b" }'])
def test_steps_that_find_nothing_leave_a_line_as_it_is(step: str) -> None:
    assert parcel(steps(step), b"\xffraw").values == [b"\xffraw"]


def test_events_do_not_share_what_is_added() -> None:
    text = steps('parse = "json"', 'add = { "x.y" = 1 }', 'add = { "x.z" = "{n}" }')
    assert fields(text, '{"n":1}', '{"n":2}') == [{"n": 1, "x": {"y": 1, "z": 1}}, {"n": 2, "x": {"y": 1, "z": 2}}]


def test_a_field_of_the_same_name_as_the_origin_is_meant_with_a_dot() -> None:
    text = steps('parse = "json"', 'add = { one = "{host}", other = "{.host}" }', 'keep = ["one", "other"]')
    assert fields(text, '{"host":"db-3"}') == [{"one": "web-1", "other": "db-3"}]


def test_a_portion_that_comes_with_fields_is_written_as_json() -> None:
    assert parcel('topic = "t"', "raw", fields=[{"message": "hi", "n": 1}]).values == [b'{"message":"hi","n":1}']
    assert apply('topic = "t"\nencode = "raw"', "raw", fields=[{"message": "hi"}]).parcels[0].values == [b"raw"]
