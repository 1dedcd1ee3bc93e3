"""First bytes: how long a hello is, and what it is if it is none."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.transport.tls.failures import Kind, TlsFailure
from penstock.transport.tls.greeting import check_answer, hello_bytes


@pytest.mark.parametrize(
    ("first", "size"),
    [
        (b"\x16", 0),
        (b"\x16\x03", 0),
        (b"\x16\x03\x01\x02", 0),
        (b"\x16\x03\x01\x02\x00", 517),
        (b"\x16\x03\x03\x40\x00x", 16389),
    ],
)
def test_the_length_of_a_hello_is_known_after_five_bytes(first: bytes, size: int) -> None:
    assert hello_bytes(first) == size


@pytest.mark.parametrize(
    ("first", "kind", "word"),
    [
        (b"\0", Kind.PLAINTEXT, "plaintext client"),
        (b"\0\0\0\x20\0\x12", Kind.PLAINTEXT, "plaintext client"),
        (b"GET /", Kind.FOREIGN, "HTTP"),
        (b"\x16\x04", Kind.FOREIGN, "no TLS"),
        (b"\x16\x03\x01\x40\x01", Kind.BROKEN, "16385 bytes"),
    ],
)
def test_what_is_no_hello_is_named(first: bytes, kind: Kind, word: str) -> None:
    with pytest.raises(TlsFailure, match=word) as found:
        hello_bytes(first)
    assert found.value.kind is kind


@given(st.binary(min_size=1, max_size=40))
def test_any_first_bytes_are_a_hello_or_a_failure_in_words(first: bytes) -> None:
    for look in (hello_bytes, check_answer):
        with contextlib.suppress(TlsFailure):
            look(first)
