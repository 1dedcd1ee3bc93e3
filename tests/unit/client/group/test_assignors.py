"""Assignors: equal to other clients' where the strategy promises it, even and sticky where it promises that."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.client.consumer.group.assignors import ASSIGNORS, assignors_of
from penstock.client.consumer.group.assignors.subscription import (
    Remembered,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from penstock.model.ids import TopicPartition
from tests.properties import examples

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription as TheirSubscription

TOPICS = ["a", "b", "c", "d"]
topic_counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 9), min_size=1)
member_ids = st.lists(st.text("mnxyz0123", min_size=1, max_size=4), min_size=1, max_size=6, unique=True)


@st.composite
def groups(draw: Any, *, same: bool = False, static: bool = True) -> tuple[dict[str, int], dict[str, Subscription]]:
    counts = draw(topic_counts)
    everything = tuple(sorted(counts))
    members = {}
    for member_id in draw(member_ids):
        topics = everything if same else tuple(sorted(draw(st.sets(st.sampled_from(TOPICS), min_size=1))))
        instance_id = f"i-{member_id}" if static and draw(st.booleans()) else None
        members[member_id] = Subscription(topics, instance_id=instance_id)
    return counts, members


def topics_of(counts: dict[str, int]) -> dict[str, list[frozenset[str]]]:
    return {topic: [frozenset()] * count for topic, count in counts.items()}


def assign(name: str, counts: dict[str, int], members: dict[str, Subscription]) -> dict[str, list[TopicPartition]]:
    return ASSIGNORS[name].assign(topics_of(counts), members)


def theirs(assignor: Any, counts: dict[str, int], members: dict[str, Subscription]) -> dict[str, set[TopicPartition]]:
    # kafka-python wants static members first, or it forgets some of them.
    order = sorted(members, key=lambda member_id: members[member_id].instance_id is None)
    cluster = SimpleNamespace(
        partitions_for_topic=lambda topic: set(range(counts[topic])) if topic in counts else None,
        topics=lambda: set(counts),
    )
    asked = [
        SimpleNamespace(
            member_id=member_id,
            group_instance_id=members[member_id].instance_id,
            metadata=TheirSubscription(0, list(members[member_id].topics), b""),
        )
        for member_id in order
    ]
    found = assignor.assign(cluster, asked)
    return {
        member_id: {TopicPartition(topic, number) for topic, number in assignment.partitions()}
        for member_id, assignment in found.items()
    }


@settings(max_examples=examples(150), deadline=None)
@given(group=groups())
def test_range_comes_to_what_kafka_python_comes_to(group: Any) -> None:
    counts, members = group
    ours = {member_id: set(share) for member_id, share in assign("range", counts, members).items()}
    assert ours == theirs(RangePartitionAssignor, counts, members)


@settings(max_examples=examples(150), deadline=None)
@given(group=groups(same=True))  # kafka-python stumbles where subscriptions differ
def test_roundrobin_comes_to_what_kafka_python_comes_to(group: Any) -> None:
    counts, members = group
    ours = {member_id: set(share) for member_id, share in assign("roundrobin", counts, members).items()}
    assert ours == theirs(RoundRobinPartitionAssignor, counts, members)


def test_roundrobin_passes_over_members_that_do_not_want_a_topic() -> None:
    members = {"c0": Subscription(("t0",)), "c1": Subscription(("t0", "t1")), "c2": Subscription(("t0", "t1", "t2"))}
    assert assign("roundrobin", {"t0": 1, "t1": 2, "t2": 3}, members) == {
        "c0": [TopicPartition("t0", 0)],
        "c1": [TopicPartition("t1", 0)],
        "c2": [TopicPartition("t1", 1), *(TopicPartition("t2", n) for n in range(3))],
    }


def check_whole(
    counts: dict[str, int], members: dict[str, Subscription], shares: dict[str, list[TopicPartition]]
) -> None:
    """Every partition that somebody wants has one owner, who wants it."""
    wanted = {topic for member in members.values() for topic in member.topics}
    dealt = sorted(partition for share in shares.values() for partition in share)
    assert dealt == [TopicPartition(topic, n) for topic in sorted(wanted & set(counts)) for n in range(counts[topic])]
    assert all(partition.topic in members[member_id].topics for member_id in shares for partition in shares[member_id])


def check_even(members: dict[str, Subscription], shares: dict[str, list[TopicPartition]]) -> None:
    """Nobody has two more than a member who could take one of them."""
    for rich, held in shares.items():
        for poor, others in shares.items():
            takeable = any(partition.topic in members[poor].topics for partition in held)
            assert rich == poor or not takeable or len(held) < len(others) + 2


def with_history(name: str, member: Subscription, share: list[TopicPartition], generation: int) -> Subscription:
    last = Remembered(tuple(share), generation)
    owned = tuple(share) if ASSIGNORS[name].cooperative else ()
    return Subscription(
        member.topics, owned, generation, ASSIGNORS[name].user_data(last), instance_id=member.instance_id
    )


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@settings(max_examples=examples(150), deadline=None)
@given(group=groups())
def test_sticky_assignments_are_whole_and_even_and_do_not_move_without_a_reason(name: str, group: Any) -> None:
    counts, members = group
    first = assign(name, counts, members)
    check_whole(counts, members, first)
    check_even(members, first)
    again = {member_id: with_history(name, members[member_id], first[member_id], 1) for member_id in members}
    assert assign(name, counts, again) == first


@settings(max_examples=examples(100), deadline=None)
@given(group=groups(same=True, static=False))
def test_sticky_shares_are_as_large_as_those_of_kafka_python(group: Any) -> None:
    counts, members = group
    ours = assign("sticky", counts, members)
    shares = theirs(StickyPartitionAssignor(), counts, members)
    assert sorted(map(len, ours.values())) == sorted(map(len, shares.values()))


@settings(max_examples=examples(150), deadline=None)
@given(group=groups(same=True), gone=st.integers(0, 5), joins=st.booleans())
def test_with_equal_subscriptions_only_what_must_move_moves(group: Any, gone: int, joins: bool) -> None:
    counts, members = group
    first = assign("sticky", counts, members)
    left = {member_id: members[member_id] for i, member_id in enumerate(members) if i != gone or len(members) == 1}
    after = {member_id: with_history("sticky", left[member_id], first[member_id], 1) for member_id in left}
    if joins:
        after["new"] = Subscription(tuple(sorted(counts)))
    second = assign("sticky", counts, after)
    check_whole(counts, after, second)
    check_even(after, second)
    share, rest = divmod(sum(counts.values()), len(after))
    held = sorted((len(first[member_id]) for member_id in left), reverse=True)
    most_kept = sum(min(count, share + (i < rest)) for i, count in enumerate(held))
    assert sum(len(set(first[member_id]) & set(second[member_id])) for member_id in left) == most_kept


@settings(max_examples=examples(150), deadline=None)
@given(group=groups(), newcomer=st.sets(st.sampled_from(TOPICS), min_size=1))
def test_cooperative_rounds_never_give_a_partition_that_somebody_holds_and_end_even(group: Any, newcomer: Any) -> None:
    counts, members = group
    holds = assign("cooperative-sticky", counts, members)
    members = {**members, "new": Subscription(tuple(sorted(newcomer)))}
    for generation in range(1, 8):
        said = {
            member_id: with_history("cooperative-sticky", member, holds.get(member_id, []), generation)
            for member_id, member in members.items()
        }
        shares = assign("cooperative-sticky", counts, said)
        owner = {partition: member_id for member_id, share in holds.items() for partition in share}
        assert all(owner.get(p, member_id) == member_id for member_id, share in shares.items() for p in share)
        if shares == holds:
            break
        holds = shares
    check_whole(counts, members, holds)
    check_even(members, holds)


def test_a_newer_generation_is_believed_and_a_double_claim_is_not() -> None:
    p0, p1, p2 = (TopicPartition("t", n) for n in range(3))
    members = {
        "old": Subscription(("t",), (p0, p1), 3),
        "new": Subscription(("t",), (p1,), 4),
        "twin": Subscription(("t",), (p2,), 4),
        "twin2": Subscription(("t",), (p2,), 4),
    }
    shares = assign("cooperative-sticky", {"t": 4}, members)
    assert shares["new"] == [p1]
    assert shares["old"] == [p0]


def test_range_prefers_members_in_the_rack_of_a_replica() -> None:
    racks = [frozenset({"r0"}), frozenset({"r1"}), frozenset({"r0"}), frozenset({"r1"})]
    members = {"m1": Subscription(("a", "b"), rack="r1"), "m2": Subscription(("a", "b"), rack="r0")}
    shares = ASSIGNORS["range"].assign({"a": racks, "b": racks}, members)
    assert shares == {
        "m1": [TopicPartition(topic, n) for topic in "ab" for n in (1, 3)],
        "m2": [TopicPartition(topic, n) for topic in "ab" for n in (0, 2)],
    }


def test_range_ignores_racks_when_every_partition_is_everywhere() -> None:
    everywhere = [frozenset({"r0", "r1"})] * 2
    members = {"m1": Subscription(("a",), rack="r1"), "m2": Subscription(("a",), rack="r0")}
    shares = ASSIGNORS["range"].assign({"a": everywhere}, members)
    assert shares == {"m1": [TopicPartition("a", 0)], "m2": [TopicPartition("a", 1)]}


def test_a_large_group_is_evened_out_without_squaring() -> None:
    counts = {f"t{n}": 20 for n in range(250)}
    topics = tuple(counts)
    everything = [TopicPartition(topic, n) for topic in topics for n in range(20)]
    members = {"old": with_history("sticky", Subscription(topics), everything, 1)}
    members.update({f"n{n}": Subscription(topics) for n in range(24)})
    shares = assign("sticky", counts, members)
    assert {len(share) for share in shares.values()} == {200}


# Bytes.


def test_subscription_bytes_are_those_of_the_java_client() -> None:
    said = Subscription(
        ("b", "a"), (TopicPartition("b", 1), TopicPartition("a", 0), TopicPartition("b", 0)), 7, b"\x00", "r"
    )
    assert encode_subscription(said).hex() == (
        "0003"  # version
        "00000002"
        "000161"
        "000162"  # topics, sorted
        "00000001"
        "00"  # user data
        "00000002"
        "000161"
        "00000001"
        "00000000"
        "000162"
        "00000002"
        "00000000"
        "00000001"  # owned
        "00000007"  # generation
        "000172"  # rack
    )


def test_a_plain_subscription_has_null_user_data_and_rack() -> None:
    assert encode_subscription(Subscription(("a",))).hex() == "000300000001000161ffffffff00000000ffffffffffff"


def test_assignment_bytes_are_those_of_the_java_client() -> None:
    data = encode_assignment([TopicPartition("a", 1), TopicPartition("a", 2)])
    assert data.hex() == "000300000001000161000000020000000100000002ffffffff"
    assert decode_assignment(data) == (TopicPartition("a", 1), TopicPartition("a", 2))


def test_no_bytes_are_no_assignment() -> None:
    assert decode_assignment(b"") == ()


def test_subscriptions_of_newer_and_sloppier_members_are_read() -> None:
    newer = bytes.fromhex("000900000001000161ffffffff00000000ffffffffffffbeef")
    assert decode_subscription(newer).topics == ("a",)
    sloppy = bytes.fromhex("00010000000100016100000000")
    assert decode_subscription(sloppy, "i") == Subscription(("a",), user_data=b"", instance_id="i")


def test_user_data_of_the_sticky_strategies_is_that_of_the_java_client() -> None:
    last = Remembered((TopicPartition("a", 1), TopicPartition("a", 0)), 5)
    sticky, cooperative = ASSIGNORS["sticky"], ASSIGNORS["cooperative-sticky"]
    assert sticky.user_data(Remembered()) is None
    assert (sticky.user_data(last) or b"").hex() == "0000000100016100000002000000000000000100000005"
    assert cooperative.user_data(Remembered()) == b"\xff\xff\xff\xff"
    assert cooperative.user_data(last) == b"\x00\x00\x00\x05"


def test_sticky_reads_user_data_without_a_generation() -> None:
    old = bytes.fromhex("000000010001740000000100000003")
    members = {"m1": Subscription(("t",)), "m2": Subscription(("t",), user_data=old)}
    assert TopicPartition("t", 3) in assign("sticky", {"t": 4}, members)["m2"]


def test_an_unknown_strategy_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match="'rnage'; there are range, roundrobin, sticky, cooperative-sticky"):
        assignors_of(["rnage"])
