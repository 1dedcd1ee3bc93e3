"""What readers must not see of transactions, and what they must, is noticed when it is so."""

from __future__ import annotations

import pytest

from tests.upgrades.transactions import Outcome, Own, mistakes

OUTCOMES = {0: Outcome.COMMITTED, 1: Outcome.ABORTED, 2: Outcome.UNKNOWN, 3: Outcome.COMMITTED}
PARTITIONS = range(2)


def found(*partitions: list[int]) -> list[str]:
    """The mistakes when these transactions are shown in each of the partitions."""
    writer = Own("nowhere:1", "t", PARTITIONS)
    writer.outcomes = OUTCOMES
    seen = {index: [f"own:{number}" for number in numbers] for index, numbers in enumerate(partitions)}
    return mistakes([writer], seen)


@pytest.mark.parametrize("numbers", [[0, 3], [0, 2, 3]])
def test_what_is_unknown_may_be_there_or_not(numbers: list[int]) -> None:
    assert not found(numbers, numbers)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ([0], [0, 3], "own:3 was committed and is shown in [False, True]"),
        ([0, 1, 3], [0, 3], "own:1 was aborted and is shown in [True, False]"),
        ([0, 2, 3], [0, 3], "own:2 is shown in part: [True, False]"),
        ([0, 0, 3], [0, 3], "partition 0 has own's transactions twice or out of order: [0, 0, 3]"),
        ([3, 0], [0, 3], "partition 0 has own's transactions twice or out of order: [3, 0]"),
    ],
)
def test_everything_else_is_a_mistake(first: list[int], second: list[int], words: str) -> None:
    assert found(first, second) == [words]
