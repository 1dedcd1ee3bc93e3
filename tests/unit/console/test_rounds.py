from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.console.sampler.asking import round_of


@given(st.integers(0, 50), st.integers(1, 20), st.text(max_size=3))
def test_of_very_many_groups_each_has_its_turn(count: int, most: int, until: str) -> None:
    names = [f"g{number:03d}" for number in range(count)]
    seen: set[str] = set()
    for _ in range(-(-count // most)):
        chosen = round_of(names, until, most)
        assert len(chosen) == len(set(chosen)) == min(most, count)
        seen.update(chosen)
        until = chosen[-1]
    assert seen == set(names)


def test_groups_that_come_and_go_between_rounds_keep_nobody_waiting() -> None:
    first = round_of(["a", "b", "c", "d"], "", 2)
    assert (first, round_of(["a", "c", "d", "e"], first[-1], 2)) == (["a", "b"], ["c", "d"])
    assert round_of(["a", "c", "d", "e"], "d", 2) == ["e", "a"]
    assert round_of(["a"], "z", 2) == ["a"]
