"""Addresses as users write them."""

from __future__ import annotations

import pytest

from penstock.agent.listening.addresses import Address, NotAnAddress, parse_address

SCHEMES = ("tcp", "tls")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("127.0.0.1:80", Address("tcp", "127.0.0.1", 80)),
        ("tls://example.org:6514", Address("tls", "example.org", 6514)),
        ("TCP://[::1]:0", Address("tcp", "::1", 0)),
        (":5140", Address("tcp", "0.0.0.0", 5140)),
        ("tcp://0.0.0.0:514/", Address("tcp", "0.0.0.0", 514)),
    ],
)
def test_what_is_an_address(text: str, wanted: Address) -> None:
    assert parse_address(text, SCHEMES) == wanted
    assert parse_address(str(wanted), SCHEMES) == wanted


@pytest.mark.parametrize("text", ["", "80", "host", "host:port", "udp://a:1", "::1:80", "a:70000", "tcp://a:1/path"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(NotAnAddress):
        parse_address(text, SCHEMES)
