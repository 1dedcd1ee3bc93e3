"""Bootstrap addresses."""

from __future__ import annotations

import re

import pytest

from penstock.client.cluster_view import parse_bootstrap


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        ("a:1, b", [("a", 1), ("b", 9092)]),
        ("[::1]:9092,[::1]", [("::1", 9092), ("::1", 9092)]),
    ],
)
def test_addresses_are_host_and_port(text: str, addresses: list[tuple[str, int]]) -> None:
    assert parse_bootstrap(text) == addresses


@pytest.mark.parametrize("text", ["", "a:b", "a:0", "a:65536", ","])
def test_what_is_no_address_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="address"):
        parse_bootstrap(text)


@pytest.mark.parametrize(
    ("text", "better"),
    [
        ("http://localhost:9092", "localhost:9092"),
        ("kafka://a:1", "a:1"),
        ("b:2,PLAINTEXT://a:1/", "a:1"),
        ("SASL_SSL://[::1]:9092", "[::1]:9092"),
    ],
)
def test_what_stands_before_an_address_is_named_with_the_right_spelling(text: str, better: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"write {better}")):
        parse_bootstrap(text)
