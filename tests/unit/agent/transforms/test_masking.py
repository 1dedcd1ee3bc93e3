"""mask: what is found, what is left, and that nothing gets around it."""

from __future__ import annotations

import ipaddress
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.agent.transforms.masking.finders import FINDERS, passes_luhn
from tests.properties import examples
from tests.unit.agent.transforms.chains import apply, fields, header, parcel, steps

few = settings(max_examples=examples(40))

WORDS = st.text("abc xyz", max_size=10)


def stars(kind: str, text: str) -> str:
    return FINDERS[kind](lambda found: "*", text)


@pytest.mark.parametrize(
    ("kind", "text", "masked"),
    [
        ("email", "to ann.b+c@mail.example.org, <x@y.de>.", "to *, <*>."),
        ("email", "no@address user@localhost @home", "no@address user@localhost @home"),
        ("ipv4", "203.0.113.7 10.0.0.1:80 (192.168.1.1).", "* *:80 (*)."),
        ("ipv4", "300.1.1.1 1.2.3 1.2.3.4.5 version 1.2.3.4444", "300.1.1.1 1.2.3 1.2.3.4.5 version 1.2.3.4444"),
        ("ipv6", "2001:db8::1 [::1]:80 ::ffff:1.2.3.4 fe80::1%eth0", "* [*]:80 * *%eth0"),
        ("ipv6", "12:30:45 std::vector 00:1a:2b:3c:4d:5e ::", "12:30:45 std::vector 00:1a:2b:3c:4d:5e ::"),
        ("credit_card", "4111 1111 1111 1111, 5500-0000-0000-0004 378282246310005", "*, * *"),
        ("credit_card", "id 12 4111111111111111 7", "id 12 * 7"),
        (
            "credit_card",
            "1794823200000 4111111111111112 41111111111111111111",
            "1794823200000 4111111111111112 41111111111111111111",
        ),
        ("token", "Authorization: Bearer abc.def-ghi==", "Authorization: Bearer *"),
        ("token", 'password="hunter2" x?api_key=k1&b=2 {"token": "tt"}', 'password="*" x?api_key=*&b=2 {"token": "*"}'),
        ("token", "eyJhbGciOi.eyJzdWIiOi.c2ln key words", "* key words"),
    ],
)
def test_what_is_found_and_what_is_not(kind: str, text: str, masked: str) -> None:
    assert stars(kind, text) == masked


@few
@given(WORDS, st.ip_addresses(v=4), WORDS)
def test_every_ipv4_address_is_found(before: str, address: ipaddress.IPv4Address, after: str) -> None:
    assert str(address) not in stars("ipv4", f"{before} {address} {after}")


@few
@given(WORDS, st.ip_addresses(v=6).filter(lambda a: int(a) > 0), WORDS, st.booleans())
def test_every_ipv6_address_is_found(before: str, address: ipaddress.IPv6Address, after: str, long: bool) -> None:
    written = address.exploded if long else str(address)
    assert written not in stars("ipv6", f"{before} {written} {after}")


@few
@given(st.from_regex(r"[23456]\d{14}", fullmatch=True), st.sampled_from(["", " ", "-"]))
def test_every_number_of_sixteen_digits_with_a_good_check_digit_is_found(digits: str, between: str) -> None:
    number = next(digits + last for last in "0123456789" if passes_luhn(digits + last))
    written = between.join(number[at : at + 4] for at in range(0, 16, 4))
    assert stars("credit_card", f"paid with {written}.") == "paid with *."


@few
@given(st.from_regex(r"[a-z][a-z0-9._+-]{0,20}@([a-z0-9]{1,9}\.){1,3}[a-z]{2,5}", fullmatch=True), WORDS)
def test_every_email_is_found(address: str, around: str) -> None:
    assert stars("email", f"{around} <{address}> {around}") == f"{around} <*> {around}"


@few
@given(st.sampled_from(sorted(FINDERS)), st.text(st.sampled_from("a1.:@-= eyJ\"'/"), max_size=80))
def test_finders_leave_alone_what_they_masked(kind: str, text: str) -> None:
    masked = stars(kind, text)
    assert len(masked) <= len(text)
    assert stars(kind, masked).count("*") >= masked.count("*") - text.count("*")


def test_lines_keep_all_their_other_bytes() -> None:
    assert parcel(steps('mask = "email"'), b"\xff\x00 a@b.de \xe9").values == [b"\xff\x00 *** \xe9"]
    assert parcel(steps("mask = '/a+/'\nwith = 'X'"), b"\xffaaa\xe9").values == [b"\xffX\xe9"]


def test_all_texts_of_an_event_are_looked_through() -> None:
    event = {"to": "a@b.de", "in": {"list": ["c@d.de", 5], "card": 4111111111111111}, "n": 1}
    masked = {"to": "***", "in": {"list": ["***", 5], "card": "***"}, "n": 1}
    assert fields(steps('parse = "json"', 'mask = ["email", "credit_card"]'), json.dumps(event)) == [masked]


def test_named_fields_only() -> None:
    text = steps('parse = "json"', 'mask = "email"\nin = ["a", "b.c"]')
    assert fields(text, '{"a":"x@y.de","b":{"c":"x@y.de","d":"x@y.de"}}') == [
        {"a": "***", "b": {"c": "***", "d": "x@y.de"}}
    ]


def test_whole_fields_of_any_kind() -> None:
    text = steps('parse = "json"', 'mask = "whole"\nin = ["pin", "who"]\nwith = "hidden"')
    assert fields(text, '{"pin":1234,"who":{"name":"ann"}}', '{"pin":null}') == [
        {"pin": "hidden", "who": "hidden"},
        {"pin": None},
    ]


def hashed(key: str, line: str) -> bytes:
    return parcel(steps(f'mask = "email"\nhash_key = "{key}"'), line).values[0]


def test_equal_values_have_equal_hashes_under_one_key_and_others_under_another() -> None:
    one = hashed("correct horse", "a@b.de")
    assert len(one) == 24
    assert hashed("correct horse", "x a@b.de") == b"x " + one
    assert hashed("correct horse", "c@b.de") != one
    assert hashed("battery staple", "a@b.de") != one
    assert hashed("k" * 100, "a@b.de") != hashed("k" * 101, "a@b.de")


def test_the_key_may_be_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASK_KEY", "correct horse")
    found = parcel(steps('mask = "email"\nhash_key_env = "MASK_KEY"'), "a@b.de").values[0]
    assert found == hashed("correct horse", "a@b.de")


@pytest.mark.parametrize("head", ['topic = "t"', 'topic = "t"\ndead_letters = "dead"', 'topic = "t"\nencode = "json"'])
def test_events_that_fail_are_masked_too(head: str) -> None:
    before = steps('mask = "email"', 'parse = "json"', head=head)
    after = steps('parse = "json"', 'mask = "email"', head=head)
    for text in (before, after):
        assert b"a@b.de" not in apply(text, "broken a@b.de").parcels[0].values[0]


def test_events_that_find_no_topic_are_masked_too() -> None:
    text = steps('parse = "json"', 'mask = "email"', head='topic = "by.{nothing}"\ndead_letters = "dead"')
    assert parcel(text, '{"to":"a@b.de"}').values == [b'{"to":"***"}']


def test_the_reason_of_a_failure_does_not_tell_either() -> None:
    text = steps('parse = "logfmt"\ntypes = { n = "int" }', 'mask = "email"')
    assert (
        header(parcel(text, "n=a@b.de"), 0, "agent.error") == "step 1 (parse logfmt): n = '***' is not a whole number"
    )


def test_lines_that_go_on_as_they_came_are_masked_too() -> None:
    text = steps('parse = "logfmt"', 'mask = "email"', head='topic = "t"\nkey = "to"\nencode = "raw"')
    only = parcel(text, "to=a@b.de")
    assert (only.values, only.keys) == ([b"to=***"], [b"***"])


EVIL = [
    "a" * 50_000 + " @",
    "eyJ" * 20_000 + "@",
    "4 " * 30_000,
    "a:" * 30_000,
    "1.1.1." * 10_000,
    "a@a." * 20_000,
    "::" * 30_000,
]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", EVIL)
def test_no_text_keeps_a_finder_busy(text: str) -> None:
    for kind in FINDERS:
        stars(kind, text)
