"""The map from digests to offsets."""

from __future__ import annotations

from hashlib import blake2b
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.kernels import OffsetTable

# Few first halves, so that chains of collisions form.
DIGESTS = st.tuples(st.integers(0, 3), st.integers(0, 40)).map(lambda pair: bytes([pair[0]] * 8) + bytes([pair[1]] * 8))


def digest(number: int) -> bytes:
    return blake2b(number.to_bytes(8, "big"), digest_size=16).digest()


def test_the_last_offset_of_each_digest_is_found(twin: ModuleType) -> None:
    table = twin.OffsetTable(10_000)
    for number in range(9_000):
        table.put(digest(number), number)
    for number in range(0, 9_000, 3):
        table.put(digest(number), number + 100_000)
    assert len(table) == 9_000
    for number in range(9_000):
        assert table.get(digest(number)) == (number + 100_000 if number % 3 == 0 else number)
    assert table.get(digest(9_001)) == -1


def test_a_full_table_takes_only_digests_that_it_has(twin: ModuleType) -> None:
    table = twin.OffsetTable(3)
    for number in range(3):
        table.put(digest(number), 0)
    table.put(digest(1), 7)
    assert (table.get(digest(1)), table.get(digest(2)), table.get(digest(3))) == (7, 0, -1)
    with pytest.raises(OverflowError):
        table.put(digest(3), 1)


def test_a_digest_has_16_bytes(twin: ModuleType) -> None:
    table = twin.OffsetTable(3)
    for wrong in (b"", b"x" * 15, b"x" * 17):
        with pytest.raises(ValueError, match="16"):
            table.put(wrong, 1)
        with pytest.raises(ValueError, match="16"):
            table.get(wrong)


@given(st.lists(st.tuples(DIGESTS, st.integers(0, 2**62)), max_size=150))
def test_it_behaves_like_a_dict(entries: list[tuple[bytes, int]]) -> None:
    table, model = OffsetTable(200), dict(entries)
    for key, offset in entries:
        table.put(key, offset)
    assert len(table) == len(model)
    assert all(table.get(key) == offset for key, offset in model.items())
