"""Subscriptions by pattern."""

from __future__ import annotations

from penstock.model.errors import INVALID_REGULAR_EXPRESSION, NONE
from tests.unit.coordinators.consumer.scene import Scene, error, given, kinds


def join_by(scene: Scene, member: str, regex: str):
    return scene.join(member, subscribed_topic_regex=regex)


def test_a_pattern_matches_whole_names() -> None:
    scene = Scene({"foo": 1, "foobar": 1, "bar": 1})
    assert given(join_by(scene, "a", "foo")) == {"foo": [0]}


def test_a_second_pattern_waits_until_patterns_are_looked_up_again() -> None:
    scene = Scene({"foo": 1, "bar": 1})
    join_by(scene, "a", "foo")
    assert given(join_by(scene, "b", "ba.*")) == {}
    scene.tick(10_001)
    assert given(scene.beat("b", 2)) == {"bar": [0]}


def test_the_first_member_gets_the_topics_of_its_pattern_in_one_reply() -> None:
    scene = Scene({"foo1": 1, "foo2": 2, "bar": 1})
    reply = join_by(scene, "a", "foo.*")
    assert (reply.member_epoch, given(reply)) == (2, {"foo1": [0], "foo2": [0, 1]})
    assert kinds(scene.log) == [
        "MemberMetadata",
        "RegularExpression",
        "Metadata",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
    ]


def test_a_broken_pattern_is_refused_and_leaves_nothing_behind() -> None:
    scene = Scene({"foo": 1})
    reply = join_by(scene, "a", "foo(")
    assert error(reply) is INVALID_REGULAR_EXPRESSION
    assert not scene.log
    assert "g" not in scene.shard.table.groups


def test_look_behind_is_not_in_re2() -> None:
    assert error(join_by(Scene({"foo": 1}), "a", "(?<=x)foo")) is INVALID_REGULAR_EXPRESSION


def test_a_pattern_without_topics_still_makes_a_group() -> None:
    scene = Scene({"foo": 1})
    reply = join_by(scene, "a", "bar")
    assert (reply.member_epoch, given(reply)) == (1, {})


def test_a_new_topic_is_found_by_the_pattern_after_ten_seconds() -> None:
    scene = Scene({"foo1": 1})
    join_by(scene, "a", "foo.*")
    scene.create("foo2", 1)
    assert scene.beat("a", 2).assignment is None
    scene.tick(10_001)
    reply = scene.beat("a", 2)
    assert (reply.member_epoch, given(reply)) == (3, {"foo1": [0], "foo2": [0]})


def test_patterns_are_looked_up_again_from_time_to_time() -> None:
    scene = Scene({"foo1": 1})
    join_by(scene, "a", "foo.*")
    for _ in range(20):
        scene.tick(30_000)
        written = len(scene.log)
        assert error(scene.beat("a", 2)) is NONE
        assert len(scene.log) == written
    scene.tick(1)
    scene.beat("a", 2)
    assert kinds(scene.log)[-1] == "RegularExpression"


def test_the_last_user_of_a_pattern_takes_it_along() -> None:
    scene = Scene({"foo": 2, "bar": 1})
    join_by(scene, "a", "foo")
    join_by(scene, "b", "foo")
    scene.beat("a", -1)
    assert list(scene.group.resolved) == ["foo"]
    before = len(scene.log)
    scene.beat("b", -1)
    assert kinds(scene.log[before:]) == [
        "-CurrentMemberAssignment",
        "-TargetAssignmentMember",
        "-MemberMetadata",
        "-RegularExpression",
        "Metadata",
    ]
    assert not scene.group.resolved
    assert not scene.group.subscribes_to("foo")


def test_names_and_a_pattern_add_up_and_the_pattern_can_be_dropped() -> None:
    scene = Scene({"foo": 1, "bar": 1})
    assert given(scene.join("a", "bar", subscribed_topic_regex="foo")) == {"bar": [0], "foo": [0]}
    reply = scene.beat("a", 2, subscribed_topic_regex="", owned={"bar": [0], "foo": [0]})
    assert given(reply) == {"bar": [0]}
    assert scene.beat("a", 2, owned={"bar": [0]}).member_epoch == 3
    assert not scene.group.resolved


def test_a_second_user_of_a_known_pattern_shares_its_topics_at_once() -> None:
    scene = Scene({"foo": 2})
    join_by(scene, "a", "foo")
    join_by(scene, "b", "foo")
    assert scene.group.epoch == 3
    scene.beat("a", 2, owned={"foo": [0, 1]})
    scene.beat("a", 2, owned={"foo": [0]})
    assert given(scene.beat("b", 3)) == {"foo": [1]}
