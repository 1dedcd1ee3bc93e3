from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.console.failures import Declined
from penstock.console.messages.cursors import cursor_positions, cursor_text
from penstock.console.messages.merging import first_of, last_of


class Dated(NamedTuple):
    timestamp: int
    partition: int
    offset: int


@st.composite
def logs(draw: st.DrawFn) -> dict[int, list[Dated]]:
    """Times go back within a partition now and then: producers' clocks differ."""
    return {
        partition: [
            Dated(time, partition, offset)
            for offset, time in enumerate(draw(st.lists(st.integers(0, 20), max_size=12)))
        ]
        for partition in range(draw(st.integers(0, 4)))
    }


@given(logs(), st.integers(1, 60))
def test_pages_from_the_front_are_the_whole_and_offsets_never_go_back(
    found: dict[int, list[Dated]], limit: int
) -> None:
    whole = first_of(found, 1_000)
    assert sorted(whole) == sorted(record for records in found.values() for record in records)
    assert first_of(found, limit) == whole[:limit]
    for partition, records in found.items():
        assert [record for record in whole if record.partition == partition] == records


@given(logs(), st.integers(1, 60))
def test_a_page_from_the_back_has_the_last_of_each_partition(found: dict[int, list[Dated]], limit: int) -> None:
    whole, page = last_of(found, 1_000), last_of(found, limit)
    assert page == whole[max(len(whole) - limit, 0) :]
    assert sorted(whole) == sorted(record for records in found.values() for record in records)
    for partition, records in found.items():
        assert [record for record in whole if record.partition == partition] == records


@given(st.dictionaries(st.integers(0, (1 << 31) - 1), st.integers(0, (1 << 63) - 1), max_size=20))
def test_a_cursor_is_read_back(positions: dict[int, int]) -> None:
    assert cursor_positions(cursor_text(positions)) == positions


@given(st.text(max_size=40))
def test_what_comes_as_a_cursor_is_positions_or_is_declined(text: str) -> None:
    found: dict[int, int] = {}
    with suppress(Declined):
        found = cursor_positions(text)
    assert all(partition >= 0 and 0 <= offset < 1 << 63 for partition, offset in found.items())


def test_a_cursor_names_no_offset_that_there_cannot_be() -> None:
    with pytest.raises(Declined):
        cursor_positions(cursor_text({0: 1 << 63}))
