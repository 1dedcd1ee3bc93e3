"""Texts with holes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.agent.portion import Origin
from penstock.agent.routing.templates import ORIGIN_NAMES, Template, TemplateBroken
from tests.properties import examples

few = settings(max_examples=examples(40))

ORIGIN = Origin("web", "web-1", "/var/log/a.log")


def filled(text: str, fields: dict[str, Any]) -> str | None:
    bound = Template.parse(text).bind(ORIGIN)
    return bound(fields) if callable(bound) else bound


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("{input}.{host}.{file}", "web.web-1.a.log"),
        ("{path}", "/var/log/a.log"),
        ("{a}-{b.c}", "1-x"),
        ("{flag}{list}", 'true["y"]'),
        ("{nothing}", None),
        ("{nothing|none} {a|0}", "none 1"),
        ("{nothing|}", ""),
        ("{peer|local}", "local"),
        ("{peer}", None),
        ("{.input}", "field"),
        ("{{a}} {{", "{a} {"),
    ],
)
def test_holes_are_filled(text: str, expected: str | None) -> None:
    assert filled(text, {"a": 1, "b": {"c": "x"}, "flag": True, "list": ["y"], "input": "field"}) == expected


@pytest.mark.parametrize(("text", "at"), [("a{b", 1), ("a}b", 1), ("{}", 1), ("x{ a }", 2), ("{a..b}", 1)])
def test_a_broken_template_says_where(text: str, at: int) -> None:
    with pytest.raises(TemplateBroken) as caught:
        Template.parse(text)
    assert caught.value.at == at


NAMES = st.from_regex(r"[a-z]{1,5}(\.[a-z]{1,5})?", fullmatch=True).filter(lambda name: name not in ORIGIN_NAMES)


@few
@given(st.lists(st.tuples(st.text(), NAMES)), st.dictionaries(NAMES, st.text()))
def test_what_stands_between_holes_stays_as_it_is(pieces: list[tuple[str, str]], values: dict[str, str]) -> None:
    text = "".join(f"{words.replace('{', '{{').replace('}', '}}')}{{{name}|?}}" for words, name in pieces)
    fields: dict[str, Any] = dict(values)
    assert filled(text, fields) == "".join(words + values.get(name, "?") for words, name in pieces)


def place_of_mistake(text: str) -> int:
    try:
        Template.parse(text)
    except TemplateBroken as broken:
        return broken.at
    return 0


@given(st.text(st.sampled_from("{}|.ab ")))
def test_any_text_is_a_template_or_a_mistake_inside_it(text: str) -> None:
    assert 0 <= place_of_mistake(text) <= len(text)
