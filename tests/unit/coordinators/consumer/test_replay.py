"""Whatever happens to a group, its log gives it back."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.coordinators.decision import StateRecord
from penstock.coordinators.groups.consumer import replay
from penstock.coordinators.groups.consumer.group import ConsumerGroup
from penstock.protocol.disk.classic_group_records import GroupMetadataKey
from penstock.protocol.disk.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupRegularExpressionKey,
)
from tests.properties import examples
from tests.unit.coordinators.consumer.classic_client import ClassicClient
from tests.unit.coordinators.consumer.scene import GROUP, Scene, topic_id

MEMBERS = ("a", "b", "c")
TOPICS = ("t", "u", "v")

steps = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.sampled_from(MEMBERS), st.sets(st.sampled_from(TOPICS), min_size=1)),
        st.tuples(st.just("regex"), st.sampled_from(MEMBERS), st.sampled_from(["t|u", "v", ".*"])),
        st.tuples(st.just("static"), st.sampled_from(["x", "y"]), st.just("i")),
        st.tuples(st.just("follow"), st.sampled_from((*MEMBERS, "x", "y")), st.booleans()),
        st.tuples(st.just("classic"), st.integers(0, 2), st.sets(st.sampled_from(TOPICS), min_size=1)),
        st.tuples(st.just("leave"), st.sampled_from((*MEMBERS, "x", "y")), st.sampled_from([-1, -2])),
        st.tuples(st.just("grow"), st.sampled_from(TOPICS), st.integers(1, 6)),
        st.tuples(st.just("time"), st.sampled_from([500, 11_000, 50_000]), st.none()),
    ),
    max_size=25,
)


class Story:
    """Takes steps without caring whether they are refused."""

    def __init__(self) -> None:
        self.scene = Scene({"t": 2, "u": 3}, {"group.initial.rebalance.delay.ms": 0})
        self._classic_ids: dict[int, str] = {}

    def take(self, what: str, who: object, how: object) -> None:
        getattr(self, what)(who, how)

    def join(self, member: str, topics: set[str]) -> None:
        self.scene.join(member, *sorted(topics))

    def regex(self, member: str, regex: str) -> None:
        self.scene.join(member, subscribed_topic_regex=regex)

    def static(self, member: str, instance: str) -> None:
        self.scene.join(member, "t", instance_id=instance)

    def follow(self, member: str, lets_go: bool) -> None:
        group = self.scene.shard.table.groups.get(GROUP)
        known = group.members.get(member) if isinstance(group, ConsumerGroup) else None
        if known is None:
            return
        owned = {name: sorted(known.assigned.get(topic_id(name), ())) for name in TOPICS}
        if not lets_go:
            for name in TOPICS:
                owned[name] += known.revoking.get(topic_id(name), ())
        self.scene.beat(member, known.epoch, owned=owned, instance_id=known.instance_id)

    def classic(self, number: int, topics: set[str]) -> None:
        reply = ClassicClient(self.scene).join(self._classic_ids.get(number, ""), *sorted(topics))
        if reply is not None and reply.member_id:
            self._classic_ids[number] = reply.member_id

    def leave(self, member: str, epoch: int) -> None:
        self.scene.beat(member, epoch, instance_id="i" if member in "xy" else None)

    def grow(self, name: str, partitions: int) -> None:
        if self.scene.image.topic(name) is None:
            self.scene.create(name, partitions)
        else:
            self.scene.grow(name, partitions)

    def time(self, ms: int, _: None) -> None:
        self.scene.tick(ms)


@settings(max_examples=examples(60))
@given(steps)
def test_a_replay_gives_the_same_group(taken: list[tuple[str, object, object]]) -> None:
    story = Story()
    for what, who, how in taken:
        story.take(what, who, how)
    groups, twins = story.scene.shard.table.groups, story.scene.reloaded().shard.table.groups
    before = {name: group.durable() for name, group in groups.items() if isinstance(group, ConsumerGroup)}
    after = {name: group.durable() for name, group in twins.items() if isinstance(group, ConsumerGroup)}
    assert after == before


def test_records_of_older_releases_do_not_say_since_when_partitions_are_owned() -> None:
    scene = Scene({"t": 1})
    topics = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(topic_id=topic_id("t"), partitions=[0])
    value = ConsumerGroupCurrentMemberAssignmentValue(member_epoch=7, assigned_partitions=[topics])
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="a")
    scene.shard.apply(StateRecord(key, value))
    assert scene.group.members["a"].assigned == {topic_id("t"): {0: 7}}


def test_tombstones_of_what_is_not_there_are_nothing() -> None:
    scene = Scene({"t": 1})
    for key in (
        ConsumerGroupMetadataKey(group_id="x"),
        ConsumerGroupCurrentMemberAssignmentKey(group_id="x", member_id="a"),
        ConsumerGroupRegularExpressionKey(group_id="x", regular_expression="r"),
    ):
        assert replay.apply(scene.shard.table, key, None)
    assert not scene.shard.table.groups
    assert not replay.apply(scene.shard.table, GroupMetadataKey(group="x"), None)
