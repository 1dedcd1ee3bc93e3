"""Plans for where replicas should lie: even, apart, and with as little copying as that takes."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from penstock.model.ids import TopicPartition
from penstock.operations.moving.plan import CannotPlace, Move, Placement, evacuate, even_out

ANYWHERE = dict.fromkeys(range(1, 10), "here")


def brokers(*nodes: int) -> dict[int, str]:
    return {node: ANYWHERE[node] for node in nodes}


def striped(partitions: int, nodes: list[int], replication: int, topic: str = "t") -> Placement:
    """As a cluster places a new topic."""
    return {
        TopicPartition(topic, index): tuple(nodes[(index + copy) % len(nodes)] for copy in range(replication))
        for index in range(partitions)
    }


def after(placement: Placement, moves: list[Move]) -> Placement:
    assert all(placement[move.partition] == move.before for move in moves)
    return {**placement, **{move.partition: move.after for move in moves}}


def totals(placement: Placement) -> Counter[int]:
    return Counter(node for nodes in placement.values() for node in nodes)


def leads(placement: Placement) -> Counter[int]:
    return Counter(nodes[0] for nodes in placement.values())


def spread(counts: Counter[int], nodes: dict[int, str]) -> int:
    return max(counts[node] for node in nodes) - min(counts[node] for node in nodes)


def copies(moves: list[Move]) -> int:
    return sum(len(move.adding) for move in moves)


def test_what_is_even_stays_as_it_is() -> None:
    assert even_out(striped(12, [1, 2, 3], 3), brokers(1, 2, 3)) == []
    assert even_out({}, brokers(1, 2, 3)) == []


@pytest.mark.parametrize("replication", [1, 2, 3])
def test_a_fourth_broker_gets_its_share_and_no_more_is_copied(replication: int) -> None:
    before = striped(12, [1, 2, 3], replication)
    found = even_out(before, brokers(1, 2, 3, 4))
    then = after(before, found)
    assert set(totals(then).values()) == {12 * replication // 4}
    assert set(leads(then).values()) == {3}
    assert copies(found) == 12 * replication // 4


def test_every_topic_gives_its_share() -> None:
    before = {**striped(9, [1, 2, 3], 2, "a"), **striped(9, [1, 2, 3], 2, "b")}
    then = after(before, even_out(before, brokers(1, 2, 3, 4)))
    for topic in "ab":
        assert totals({item: nodes for item, nodes in then.items() if item.topic == topic})[4] in (4, 5)


def test_leaders_are_passed_on_over_others() -> None:
    """1 leads too much, 3 too little, and they share no partition: 2 takes one and gives one."""
    before: Placement = {TopicPartition("t", index): (1, 2) for index in range(3)}
    before |= {TopicPartition("t", 3): (2, 3), TopicPartition("t", 4): (2, 3)}
    found = even_out(before, brokers(1, 2, 3))
    assert set(leads(after(before, found)).values()) <= {1, 2}


def test_replicas_are_kept_in_different_racks() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    before: Placement = {TopicPartition("t", index): (1, 2) for index in range(6)}
    found = even_out(before, racks)
    then = after(before, found)
    assert all(len({racks[node] for node in nodes}) == 2 for nodes in then.values())
    assert spread(totals(then), racks) <= 1
    assert spread(leads(then), racks) <= 1
    assert copies(found) == 6


def test_evenness_gives_way_to_racks() -> None:
    racks = {1: "a", 2: "a", 3: "a", 4: "b"}
    before = striped(6, [1, 2, 3], 1) | {TopicPartition("u", index): (1 + index % 3, 4) for index in range(6)}
    then = after(before, even_out(before, racks))
    assert all(len({racks[node] for node in nodes}) == 2 for item, nodes in then.items() if item.topic == "u")


def test_brokers_that_are_not_named_are_left() -> None:
    before = striped(12, [1, 2, 3, 4], 2)
    then = after(before, even_out(before, brokers(1, 2, 3)))
    assert totals(then) == {1: 8, 2: 8, 3: 8}
    assert leads(then) == {1: 4, 2: 4, 3: 4}


def test_an_evacuation_touches_nothing_else() -> None:
    before = striped(12, [1, 2, 3, 4], 3)
    found = evacuate(before, brokers(1, 2, 3, 4), [4])
    then = after(before, found)
    assert totals(then) == {1: 12, 2: 12, 3: 12}
    assert all(move.removing == (4,) and len(move.adding) == 1 for move in found)
    assert {move.partition for move in found} == {item for item, nodes in before.items() if 4 in nodes}


def test_a_broker_that_is_down_can_be_evacuated() -> None:
    before = striped(4, [1, 2, 9], 2)
    then = after(before, evacuate(before, brokers(1, 2, 3), [9]))
    assert 9 not in totals(then)


def test_too_few_brokers_are_named() -> None:
    with pytest.raises(CannotPlace, match=r"partition 0 of topic 't' has 3 replicas.*without broker 3.*start another"):
        evacuate(striped(2, [1, 2, 3], 3), brokers(1, 2, 3), [3])


@pytest.mark.parametrize("seed", range(60))
def test_any_cluster_becomes_as_even_as_it_can_be(seed: int) -> None:
    random = Random(seed)
    nodes = list(range(1, random.randint(3, 7)))
    places = {node: random.choice("abc") if seed % 2 else "here" for node in nodes}
    before: Placement = {}
    for topic in "xyz"[: random.randint(1, 3)]:
        replication = random.randint(1, min(3, len(nodes)))
        for index in range(random.randint(1, 20)):
            before[TopicPartition(topic, index)] = tuple(random.sample(nodes, replication))
    found = even_out(before, places)
    then = after(before, found)
    for item, held in then.items():
        assert len(set(held)) == len(held) == len(before[item])
        wanted = min(len(held), len(set(places.values())))
        assert len({places[node] for node in held}) == wanted, f"{item} is not as far apart as it can be"
    if not seed % 2:
        assert spread(totals(then), places) <= 1
    assert spread(leads(then), places) <= max(1, spread(leads(before), places))
    assert even_out(then, places) == [], "a second plan has nothing to do"
    assert even_out(before, places) == found
