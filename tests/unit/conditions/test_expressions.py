"""Conditions: their grammar, what they mean, and where their mistakes are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.conditions.grammar import WORDS, ConditionBroken, parse
from penstock.conditions.meaning import compile_condition
from penstock.conditions.nodes import (
    And,
    Compare,
    Condition,
    Contains,
    Exists,
    Field,
    In,
    Literal,
    Matches,
    Not,
    Or,
)
from tests.properties import examples

few = settings(max_examples=examples(40))

EVENT: dict[str, Any] = {
    "status": 503,
    "size": "1200",
    "level": "error",
    "ratio": 0.5,
    "ok": True,
    "none": None,
    "user": {"id": 7, "name": "ann"},
    "tags": ["a", "b"],
    "flat.key": "x",
    "@type": "t",
    "odd name": 1,
}


def meets(text: str, event: dict[str, Any] = EVENT) -> bool:
    return compile_condition(parse(text))(event)


@pytest.mark.parametrize(
    "text",
    [
        "status == 503",
        "status >= 500 and status < 600",
        "status != 200",
        "size > 999",
        "size == 1200",
        "ratio <= 0.5",
        "ratio > -1e3",
        'level == "error"',
        "level == 'error'",
        "level >= 'e'",
        "user.id == 7",
        "flat.key == 'x'",
        "`odd name` == 1",
        "@type == 't'",
        "ok == true",
        "ok != 1",
        "none == null",
        "nothing == null",
        "nothing != 'x'",
        "not nothing < 5",
        "exists user.name",
        "not exists none",
        "level in ['warn', 'error']",
        "status in [500, 503]",
        "size in [1200]",
        "status in ['503']",
        "level not in ['info']",
        'level matches "^err"',
        "level not matches '^rr'",
        "status matches '^5'",
        "level contains 'rro'",
        r'level matches "\berror\b"',
        r'level matches "\\berror$"',
        "tags contains 'a'",
        "tags not contains 'c'",
        "not (status == 1 or level == 'x') and ok == true",
        "status == 1 or status == 2 or status == 503",
        "status == 1 and status == 2 or status == 503",
        "500 < status",
        "user.id < status",
    ],
)
def test_these_are_true_of_the_event(text: str) -> None:
    assert meets(text)


@pytest.mark.parametrize(
    "text",
    [
        "nothing == 1",
        "nothing < 1",
        "nothing in [1]",
        "nothing matches '.*'",
        "nothing contains ''",
        "level > 5",
        "ok == 1",
        "ok > 0",
        "status in [true]",
        "user == 1",
        "user < 1",
        "status.deeper == 503",
        "level == 'ERROR'",
        "status == 503 and not ok == true",
    ],
)
def test_these_are_not(text: str) -> None:
    assert not meets(text)


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("status = 5", 7, "'=' is not known; did you mean '=='?"),
        ("status == 5 && ok == true", 12, "'&&' is not known; did you mean 'and'?"),
        ("status == 5 ok", 12, "'ok' is too much here: join conditions by `and` or `or`"),
        ("status ==", 9, "there must be a value, such as 500 or 'error' here"),
        ("", 0, "there must be a field, such as status here"),
        ("status", 6, "behind status there must be one of == != < <= > >= in matches contains"),
        ("(status == 5", 12, "there must be a ) here"),
        ("level in 'x'", 9, "behind `in` there must be a list, such as [500, 503]"),
        ("level in ['a' 'b']", 14, "there must be a , or a ] here"),
        ("level in [info]", 10, "a list holds values: put info in quotes"),
        ("level matches err", 14, "there must be a pattern in quotes here"),
        ('level == "err', 9, 'this " has no end'),
        ("level == #", 9, "'#' means nothing here"),
        ("status == 5 AND ok == true", 12, "'AND' is written 'and'"),
        ("level not == 5", 10, "behind `not` there must be in, matches or contains"),
        ("exists 5", 7, "behind `exists` there must be a field, such as user.id"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, at: int, words: str) -> None:
    with pytest.raises(ConditionBroken) as caught:
        parse(text)
    assert (caught.value.at, caught.value.words) == (at, words)


def test_conditions_inside_each_other_have_a_bound() -> None:
    with pytest.raises(ConditionBroken):
        parse("(" * 10_000)


PATHS = st.from_regex(r"[a-z_][a-z0-9_]{0,5}(\.[a-z0-9_]{1,4}){0,2}", fullmatch=True).filter(lambda p: p not in WORDS)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(blacklist_categories=["Cs"])),
)
OPERANDS = st.one_of(PATHS.map(Field), SCALARS.map(Literal))
TESTS: st.SearchStrategy[Condition] = st.one_of(
    st.builds(Compare, OPERANDS, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), OPERANDS),
    st.builds(In, OPERANDS, st.lists(SCALARS, max_size=3).map(tuple)),
    st.builds(Matches, OPERANDS, st.sampled_from(["^a", "b+", r"\d{3}"])),
    st.builds(Contains, OPERANDS, st.text(st.characters(blacklist_categories=["Cs"]))),
    st.builds(Exists, PATHS),
)
CONDITIONS = st.recursive(
    TESTS,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
)


@few
@given(CONDITIONS)
def test_a_condition_reads_as_it_is_written(condition: Condition) -> None:
    assert parse(str(condition)) == condition


@few
@given(CONDITIONS, st.dictionaries(st.sampled_from(["a", "b", "a.b", "status"]), VALUES))
def test_a_condition_is_true_or_false_of_any_event(condition: Condition, event: dict[str, Any]) -> None:
    test = compile_condition(condition)
    assert test(event) is not compile_condition(Not(condition))(event)
    assert isinstance(test(event), bool)


def place_of_mistake(text: str) -> int:
    try:
        parse(text)
    except ConditionBroken as broken:
        return broken.at
    return 0


@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from(["a", "==", "'x'", "and", "(", ")", "not", "in", "[", "]", "5"])).map(" ".join)
)
def test_any_text_is_a_condition_or_a_mistake_inside_it(text: str) -> None:
    assert 0 <= place_of_mistake(text) <= len(text)
