"""Which partition a group lives on."""

from __future__ import annotations

import pytest

from penstock.coordinators.home import home_partition, java_hash


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("console-consumer-12345", 158455506),
        ("polygenelubricants", -(1 << 31)),
        ("group-that-hashes-low", -197962533),
        ("é", 233),
        ("😀", 1772899),
    ],
)
def test_the_hash_is_javas_over_utf_16_units(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_a_hash_without_a_positive_twin_counts_as_zero() -> None:
    assert home_partition("polygenelubricants", 50) == 0


def test_a_negative_hash_counts_by_its_size() -> None:
    assert home_partition("group-that-hashes-low", 50) == 33
