from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.console.failures import Declined
from penstock.console.listings import Wanted, cut

Row = tuple[str, int | None]
SORTS = {"size": lambda row: row[1], "name": lambda row: row[0]}


@given(
    st.lists(st.tuples(st.text("abC", max_size=4), st.none() | st.integers(0, 9)), max_size=30),
    st.sampled_from(["", "a", "bc"]),
    st.booleans(),
    st.integers(0, 30),
    st.integers(1, 10),
)
def test_pages_of_a_list_put_together_are_the_list(
    rows: list[Row], text: str, descending: bool, offset: int, limit: int
) -> None:
    matching, shown = cut(rows, Wanted(text, "size", descending, offset, limit), lambda row: row[0], SORTS)
    kept = [row for row in rows if text in row[0].lower()]
    assert matching == len(kept)
    whole = cut(rows, Wanted(text, "size", descending, 0, 1_000), lambda row: row[0], SORTS)[1]
    assert shown == whole[offset : offset + limit]
    assert sorted(whole, key=str) == sorted(kept, key=str)
    sizes = [row[1] for row in whole]
    known = [size for size in sizes if size is not None]
    assert sizes == sorted(known, reverse=descending) + [None] * (len(sizes) - len(known))


@pytest.mark.parametrize(
    "query", [{"sort": "x"}, {"limit": "x"}, {"offset": "-1"}, {"limit": "٣"}, {"offset": "9" * 30}]
)
def test_what_is_no_part_of_a_list_is_told(query: dict[str, str]) -> None:
    with pytest.raises(Declined, match=next(iter(query))):
        Wanted.of(query, {"size"})
