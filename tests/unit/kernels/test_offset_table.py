"""The map from keys to offsets."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels import OffsetTable


def key(number: int) -> bytes:
    return b"key %d" % number


def test_the_last_offset_of_each_key_is_found(twin: ModuleType) -> None:
    table = twin.OffsetTable(10_000)
    for number in range(9_000):
        table.put(key(number), number)
    for number in range(0, 9_000, 3):
        table.put(key(number), number + 100_000)
    assert len(table) == 9_000
    for number in range(9_000):
        assert table.get(key(number)) == (number + 100_000 if number % 3 == 0 else number)
    assert table.get(key(9_001)) == -1


def test_a_full_table_takes_only_keys_that_it_has(twin: ModuleType) -> None:
    table = twin.OffsetTable(3)
    for number in range(3):
        table.put(key(number), 0)
    table.put(key(1), 7)
    assert (table.get(key(1)), table.get(key(2)), table.get(key(3))) == (7, 0, -1)
    with pytest.raises(OverflowError):
        table.put(key(3), 1)


@settings(deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=20), st.integers(0, 2**62)), max_size=150))
def test_it_behaves_like_a_dict(entries: list[tuple[bytes, int]]) -> None:
    table, model = OffsetTable(200), dict(entries)
    for data, offset in entries:
        table.put(data, offset)
    assert len(table) == len(model)
    assert all(table.get(data) == offset for data, offset in model.items())


def test_the_hash_is_the_one_of_its_paper() -> None:
    compiled = pytest.importorskip("penstock.kernels._compiled")
    low, high = 0x0706050403020100, 0x0F0E0D0C0B0A0908
    assert compiled.siphash(b"", low, high).hex() == "a3817f04ba25a8e66df67214c7550293"
    assert compiled.siphash(b"\x00", low, high).hex() == "da87c1d86b99af44347659119b22fc45"
    assert compiled.siphash(b"\x00\x01", low, high).hex() == "8177228da4a45dc7fca38bdef60affe4"
