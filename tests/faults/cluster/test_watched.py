"""A node is frozen when it says that it is ready and does not follow, and in no other case."""

from __future__ import annotations

from tests.faults.cluster.watched import FrozenWatch, Told


def frozen(*looks: dict[int, Told], frozen_s: float = 0.0) -> list[str]:
    watch = FrozenWatch(frozen_s)
    return [sentence for told in looks for sentence in watch.look(told)]


def at(*applied: int, ready: bool = True) -> dict[int, Told]:
    return {node_id: Told(ready, offset) for node_id, offset in enumerate(applied, 1)}


def test_a_node_that_stands_still_behind_the_others_is_frozen() -> None:
    (sentence,) = frozen(at(10, 10, 7), at(12, 12, 7))
    assert sentence.startswith("node 3 says that it is ready and stands at metadata offset 7; others were at 10 ")


def test_a_node_that_follows_is_not_frozen_however_far_behind() -> None:
    assert frozen(at(10, 7), at(20, 10), at(30, 20), at(40, 30)) == []


def test_a_node_gets_its_time() -> None:
    assert frozen(at(10, 7), at(20, 7), frozen_s=3_600.0) == []


def test_a_node_that_does_not_claim_to_be_ready_or_does_not_answer_is_not_frozen() -> None:
    late = {1: Told(True, 10), 2: Told(False, 7)}
    assert frozen(late, late) == []
    assert frozen(at(10, 7), at(10), at(10, 7)) == []


def test_all_may_stand_still_together() -> None:
    assert frozen(at(10, 10), at(10, 10)) == []
