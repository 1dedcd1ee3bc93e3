"""The safe position stops at the first gap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.agent.inputs.files.ledger import Ledger


@given(st.permutations(range(8)))
def test_the_safe_position_is_the_end_of_the_first_unbroken_run(order: list[int]) -> None:
    moves: list[int] = []
    ledger = Ledger[str](0, "begin", lambda: moves.append(ledger.safe))
    dones = [ledger.begin((index + 1) * 10, f"mark {index}") for index in range(8)]
    finished: set[int] = set()
    for index in order:
        dones[index]()
        dones[index]()
        finished.add(index)
        run = next((number for number in range(8) if number not in finished), 8)
        assert ledger.safe == run * 10
        assert ledger.mark == (f"mark {run - 1}" if run else "begin")
    assert moves == sorted(set(moves))
    assert ledger.open_spans == 0
