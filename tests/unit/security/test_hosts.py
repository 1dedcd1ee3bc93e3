"""Addresses as ACLs spell them."""

from __future__ import annotations

import pytest

from penstock.security.hosts import host_text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:0db8::00ff", "2001:db8:0:0:0:0:0:ff"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
    ],
)
def test_an_address_is_spelled_as_java_does(given: str, text: str) -> None:
    assert host_text(given) == text


def test_a_name_is_no_address() -> None:
    with pytest.raises(ValueError, match="localhost"):
        host_text("localhost")
