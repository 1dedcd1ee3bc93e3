"""Mapping rules: the vectors of Kafka's own mapper, and what is refused because it may mean something else there."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.security.java_patterns import DiffersFromJava, compile_java
from penstock.security.name_rules import BadRules, NameRules, NoRuleApplies

BOB = "CN=Bob,OU=x,O=y"


@pytest.mark.parametrize(
    ("rules", "name", "user"),
    [
        (None, BOB, BOB),
        ("DEFAULT", BOB, BOB),
        ("RULE:^CN=([^,]+),OU=.*$/$1/L,DEFAULT", BOB, "bob"),
        ("RULE:^CN=(.*?)$/$1/", "CN=x,O=y", "x,O=y"),
        ("RULE:^CN=([^,]+),OU=.*$/$1/U, DEFAULT", "CN=x,O=y", "CN=x,O=y"),
        ("RULE:^CN=([^,]+),OU=.*$/$1@$4/L", BOB, "bob@$4"),
        ("RULE:^CN=([^,]+),OU=.*$/$12/", BOB, "Bob2"),
        ("RULE:^CN=([^,]+).*$/\\$1\\/$1/", BOB, "$1/Bob"),
        ("RULE:.*/all/", BOB, "allall"),
        ("RULE:.*?/x/", "ab", "xaxbx"),
        ("RULE:|[a-z]*/-/", "ab", "-a-b-"),
        ("RULE:a\\/b/x/", "a/b", "x"),
        (" , RULE:^cn=x$/1/ ,\n DEFAULT", BOB, BOB),
    ],
)
def test_rules_give_the_names_that_kafka_gives(rules: str | None, name: str, user: str) -> None:
    assert NameRules(rules).user_of(name) == user


def test_without_a_rule_that_applies_nobody_gets_in() -> None:
    for rules in ("RULE:^CN=(.*)x$/$1/", "", "RULE:CN/x/"):
        with pytest.raises(NoRuleApplies):
            NameRules(rules).user_of(BOB)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ("BAD", "unmatched substring: `BAD`"),
        ("DEFAULT,RULE:a", "unmatched substring: `RULE:a`"),
        ("RULE:a/b\\/", "unmatched substring"),
        ("RULE:[a&&b]/x/", "class of characters"),
        ("RULE:\\p{L}/x/", "the escape"),
        ("RULE:a{,3}/x/", "repetition"),
        ("RULE:(?i)a/x/", "kind of group"),
        ("RULE:(a/x/", "is no pattern"),
        ("RULE:(a)/$/", "without the number"),
        ("RULE:(a)/${n}/", "without the number"),
        ("RULE:a/$1/", "does not have"),
        ("RULE:(a)/$2$3/", "does not have"),
        ("RULE:^{3}/x/", "repetition of nothing"),
    ],
)
def test_what_is_no_rule_or_may_mean_something_else_is_refused_at_start(rules: str, words: str) -> None:
    with pytest.raises(BadRules, match=words):
        NameRules(rules)


@pytest.mark.parametrize(
    "pattern",
    [
        "a**",
        "a*{2}",
        "[",
        "[]",
        "[]a]",
        "[^]",
        "(?<1>a)",
        "\\",
        "\\1",
        "(?#c)a",
        "a{2,1}",
        "\\b",
        "[a--]",
        "[\\d-x]",
        "[a-c-e]",
    ],
)
def test_patterns_that_are_none_or_differ_are_refused(pattern: str) -> None:
    with pytest.raises(DiffersFromJava):
        compile_java(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (".", "\u2028", False),
        (".", "\r", False),
        ("a$", "a\n", False),
        ("a$.", "a\n", False),
        ("a$\\s", "a\r", True),
        ("a$\\s\\s", "a\r\n", True),
        ("a\\r$\\n", "a\r\n", False),
        ("\\d", "٣", False),
        ("\\w", "é", False),
        ("[\\w\\-]+", "a-b", True),
        ("a++b", "aab", True),
        ("(?<n>a)b", "ab", True),
        ("[a-c]+", "abc", True),
        ("[-a]+", "-a", True),
        ("[a|^~&]+", "a|^~&", True),
        ("#x y", "#x y", True),
    ],
)
def test_patterns_match_as_in_java(pattern: str, text: str, matches: bool) -> None:
    assert (compile_java(pattern).fullmatch(text) is not None) == matches


@given(st.text(alphabet="RULE:DEFAULT/,$\\()[]{}*+?.^|ab1 -&", max_size=40))
def test_any_text_is_rules_or_refused(text: str) -> None:
    try:
        rules = NameRules(text)
    except BadRules:
        return
    for name in (BOB, "ab", ""):
        with contextlib.suppress(NoRuleApplies):
            rules.user_of(name)
