from __future__ import annotations

from dataclasses import replace

from penstock.client.admin import BrokerInfo, ClusterInfo, GroupListing, PartitionInfo, TopicInfo
from penstock.console.people.vision import Vision
from penstock.console.sampler.changes import AT_ONCE_MAX, occurrences
from penstock.console.sampler.picture import Picture, items_of


def topic(name: str, *leaders: int, isr: int = 2) -> TopicInfo:
    partitions = [PartitionInfo(index, leader, 0, [1, 2], [1, 2][:isr], []) for index, leader in enumerate(leaders)]
    return TopicInfo(name, f"id of {name}", False, partitions)


def picture(*topics: TopicInfo, alive: tuple[int, ...] = (1, 2), groups: dict[str, str] | None = None) -> Picture:
    brokers = [BrokerInfo(node, "h", 9092, fenced=node not in alive) for node in (1, 2)]
    listed = {name: GroupListing(name, "consumer", state, "consumer", 1) for name, state in (groups or {}).items()}
    known = {each.name: each for each in topics}
    return Picture(ClusterInfo("c", 1, 1, brokers), known, items_of(known), groups=listed, at_ms={"groups": 1})


def kinds(before: Picture, after: Picture) -> list[tuple[str, str]]:
    return [(each.kind, each.text) for each in occurrences(before, after)]


def test_nothing_happened_between_the_same_pictures() -> None:
    same = picture(topic("a", 1, 2), groups={"g": "Stable"})
    assert occurrences(same, same) == []


def test_what_happened_is_told_in_words() -> None:
    before = picture(topic("a", 1, 2), topic("gone", 1), groups={"g": "Stable", "old": "Empty"})
    after = picture(topic("a", 2, -1, 1, isr=1), topic("new", 1), alive=(2,), groups={"g": "Empty", "young": "Stable"})
    assert kinds(before, after) == [
        ("broker_down", "broker 1 went away"),
        ("topic_created", "topic new was created with 1 partition"),
        ("topic_deleted", "topic gone was deleted"),
        ("partitions_added", "topic a has 3 partitions, after 2"),
        ("leader_moved", "a-0 is led by broker 2, after 1"),
        ("leader_lost", "a-1 has no leader any more"),
        ("isr_shrank", "a-0 has 1 of 2 replicas in sync, after 2"),
        ("isr_shrank", "a-1 has 1 of 2 replicas in sync, after 2"),
        ("group_appeared", "group young appeared"),
        ("group_gone", "group old is gone"),
        ("group_state", "group g is Empty, after Stable"),
    ]
    assert kinds(after, replace(after, cluster=replace(after.cluster, controller=-1)))[0][0] == "controller_moved"


def test_what_thousands_of_partitions_do_at_once_is_counted() -> None:
    before, after = picture(topic("a", *[1] * 500)), picture(topic("a", *[2] * 500))
    told = occurrences(before, after)
    assert len(told) == AT_ONCE_MAX + 1
    assert told[-1].text == f"and {500 - AT_ONCE_MAX} more like this"


def test_who_may_not_see_a_topic_does_not_hear_of_it() -> None:
    before, after = picture(topic("a", 1), topic("b", 1)), picture(topic("a", 2), topic("b", 2), alive=(2,))
    vision = Vision(topics=frozenset({"b"}), groups=frozenset(), cluster=False)
    assert [each.text for each in occurrences(before, after) if vision.occurrence(each)] == [
        "b-0 is led by broker 2, after 1"
    ]
