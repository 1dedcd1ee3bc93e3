"""Every partition to one of its subscribers, evenly, and with few moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.coordinators.groups.assignors import ASSIGNORS, Subscriber, Target
from penstock.model.ids import Uuid
from tests.properties import examples

TOPICS = [Uuid(bytes([number]) * 16) for number in range(1, 6)]
NOTHING: Target = {}
few = settings(max_examples=examples(40))


def member(name: str, *topics: Uuid, owned: Target = NOTHING, instance: str | None = None) -> Subscriber:
    return Subscriber(name, instance, frozenset(topics), owned)


def uniform(members: Sequence[Subscriber], partitions: Mapping[Uuid, int]) -> dict[str, Target]:
    return ASSIGNORS["uniform"](members, partitions)


def by_range(members: Sequence[Subscriber], partitions: Mapping[Uuid, int]) -> dict[str, Target]:
    return ASSIGNORS["range"](members, partitions)


def pairs(target: Target) -> set[tuple[Uuid, int]]:
    return {(topic, number) for topic, numbers in target.items() for number in numbers}


def load(target: Target) -> int:
    return sum(map(len, target.values()))


def check_complete(members: Sequence[Subscriber], partitions: Mapping[Uuid, int], found: dict[str, Target]) -> None:
    """Each partition of a subscribed topic has exactly one owner, who subscribes to it."""
    assert found.keys() == {each.id for each in members}
    wanted = {(topic, number) for each in members for topic in each.topics for number in range(partitions[topic])}
    given_out = [pair for target in found.values() for pair in pairs(target)]
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == wanted
    for each in members:
        assert found[each.id].keys() <= each.topics
        assert all(found[each.id].values()), "topics without partitions are left out"


counts = st.fixed_dictionaries({topic: st.integers(0, 12) for topic in TOPICS})
member_names = st.lists(st.integers(0, 30), min_size=1, max_size=9, unique=True).map(
    lambda numbers: [f"m{number:02}" for number in numbers]
)


@st.composite
def mixed_groups(draw: st.DrawFn) -> list[Subscriber]:
    return [
        member(
            name, *draw(st.sets(st.sampled_from(TOPICS), max_size=4)), instance=draw(st.none() | st.just(f"i-{name}"))
        )
        for name in draw(member_names)
    ]


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@few
@given(members=mixed_groups(), partitions=counts)
def test_every_partition_goes_to_exactly_one_subscriber(
    name: str, members: list[Subscriber], partitions: dict[Uuid, int]
) -> None:
    check_complete(members, partitions, ASSIGNORS[name](members, partitions))


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@few
@given(members=mixed_groups(), partitions=counts, seed=st.randoms(use_true_random=False))
def test_the_order_of_members_does_not_matter(name: str, members: list[Subscriber], partitions, seed) -> None:
    shuffled = list(members)
    seed.shuffle(shuffled)
    assert ASSIGNORS[name](members, partitions) == ASSIGNORS[name](shuffled, partitions)


@few
@given(names=member_names, partitions=counts)
def test_uniform_loads_of_alike_members_differ_by_one_at_most(names: list[str], partitions: dict[Uuid, int]) -> None:
    found = uniform([member(name, *TOPICS) for name in names], partitions)
    loads = [load(target) for target in found.values()]
    assert max(loads) - min(loads) <= 1


@st.composite
def reassignments(draw: st.DrawFn) -> tuple[list[Subscriber], dict[Uuid, int]]:
    """Alike members with an arbitrary former assignment, some of it of partitions that do not exist."""
    partitions = draw(counts)
    names = draw(member_names)
    owned: dict[str, dict[Uuid, set[int]]] = {name: {} for name in names}
    for topic in TOPICS:
        for number in range(partitions[topic] + 1):
            owner = draw(st.none() | st.sampled_from(names))
            if owner is not None:
                owned[owner].setdefault(topic, set()).add(number)
    frozen = {name: {t: frozenset(numbers) for t, numbers in topics.items()} for name, topics in owned.items()}
    return [member(name, *TOPICS[:4], owned=frozen[name]) for name in names], partitions


@few
@given(reassignments())
def test_uniform_moves_only_what_must_move(case: tuple[list[Subscriber], dict[Uuid, int]]) -> None:
    members, partitions = case
    found = uniform(members, partitions)
    check_complete(members, partitions, found)
    share, extras = divmod(sum(partitions[topic] for topic in TOPICS[:4]), len(members))
    still_there = {
        each.id: sum(1 for topic, number in pairs(each.owned) if topic in each.topics and number < partitions[topic])
        for each in members
    }
    kept = sum(len(pairs(each.owned) & pairs(found[each.id])) for each in members)
    fully_loaded = sorted(still_there.values(), reverse=True)
    most = sum(min(size, share + 1) for size in fully_loaded[:extras]) + sum(
        min(size, share) for size in fully_loaded[extras:]
    )
    assert kept == most


@few
@given(mixed_groups(), counts)
def test_uniform_repeats_itself_when_nothing_changes(members: list[Subscriber], partitions: dict[Uuid, int]) -> None:
    first = uniform(members, partitions)
    again = uniform([each._replace(owned=first[each.id]) for each in members], partitions)
    assert again == first


@settings(max_examples=examples(150))
@given(mixed_groups(), counts)
def test_mixed_subscriptions_are_spread_as_evenly_as_they_allow(
    members: list[Subscriber], partitions: dict[Uuid, int]
) -> None:
    """No chain of hand-overs leads from a member to one that has two fewer: then no spread is more even."""
    found = uniform(members, partitions)
    loads = {name: load(target) for name, target in found.items()}
    takers = {topic: [each.id for each in members if topic in each.topics] for topic in TOPICS}
    for start in loads:
        seen, frontier = {start}, [start]
        while frontier:
            for taker in [taker for topic in found[frontier.pop()] for taker in takers[topic]]:
                if taker not in seen:
                    seen.add(taker)
                    frontier.append(taker)
        assert all(loads[start] - loads[other] <= 1 for other in seen)


def test_a_chain_of_hand_overs_evens_out_what_single_moves_cannot() -> None:
    a, b = TOPICS[:2]
    members = [
        member("1", a, owned={a: frozenset({0, 1, 2})}),
        member("2", a, b, owned={b: frozenset({0, 1})}),
        member("3", b, owned={b: frozenset({2})}),
    ]
    found = uniform(members, {a: 3, b: 3})
    assert [load(found[name]) for name in "123"] == [2, 2, 2]


def test_whoever_gained_by_one_chain_may_begin_another() -> None:
    """A member that was light, took something, and is now heavier than members looked at meanwhile."""
    a, b, c, d, e = TOPICS
    members = [
        member("0", a), member("1", d), member("2", a, e), member("3", b, c), member("4", b, d, e), member("5", a),
        member("6", c, d),
    ]  # fmt: skip
    found = uniform(members, {a: 11, b: 2, c: 3, d: 5, e: 2})
    assert sorted(load(target) for target in found.values()) == [3, 3, 3, 3, 3, 4, 4]


def test_range_cuts_topics_of_equal_size_alike() -> None:
    a, b = TOPICS[:2]
    found = by_range([member("m2", a, b), member("m1", a, b)], {a: 3, b: 3})
    assert found == {
        "m1": {a: frozenset({0, 1}), b: frozenset({0, 1})},
        "m2": {a: frozenset({2}), b: frozenset({2})},
    }


def test_range_gives_a_static_member_its_run_again_under_another_id() -> None:
    a = TOPICS[0]
    before = by_range([member("z", a, instance="i1"), member("b", a, instance="i2"), member("c", a)], {a: 6})
    after = by_range([member("a", a, instance="i1"), member("b", a, instance="i2"), member("c", a)], {a: 6})
    assert after["a"] == before["z"] == {a: frozenset({0, 1})}
    assert (after["b"], after["c"]) == (before["b"], before["c"])


@pytest.mark.parametrize("alike", [True, False])
def test_a_thousand_members_share_ten_thousand_partitions_and_so_do_those_who_come_after(alike: bool) -> None:
    partitions = {Uuid(number.to_bytes(16, "big")): 100 for number in range(1, 101)}
    topics = sorted(partitions)
    members = [member(f"m{number:04}", *(topics if alike else topics[: 50 + number % 51])) for number in range(1000)]
    first = uniform(members, partitions)
    joined = [each._replace(owned=first[each.id]) for each in members[10:]]
    joined += [member(f"n{number:04}", *topics) for number in range(20)]
    found = uniform(joined, partitions)
    check_complete(joined, partitions, found)
