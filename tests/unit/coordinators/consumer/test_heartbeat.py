"""ConsumerGroupHeartbeat: joins, epochs, revocation and release, refusals."""

from __future__ import annotations

import pytest

from penstock.coordinators.groups.consumer.member import STABLE, UNRELEASED, UNREVOKED
from penstock.model.errors import (
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE_REACHED,
    INVALID_REQUEST,
    NONE,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_ASSIGNOR,
)
from penstock.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.unit.coordinators.consumer.scene import Scene, error, given, kinds


def test_the_first_member_gets_everything_in_one_reply() -> None:
    scene = Scene({"t": 3})
    reply = scene.join("a", "t")
    assert (error(reply), reply.member_id, reply.member_epoch, given(reply)) == (NONE, "a", 2, {"t": [0, 1, 2]})
    assert reply.heartbeat_interval_ms == 5_000
    assert kinds(scene.log) == [
        "MemberMetadata",
        "Metadata",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
    ]
    assert scene.group.state_name() == "Stable"


def test_before_version_1_the_coordinator_makes_the_member_id() -> None:
    scene = Scene({"t": 1})
    reply = scene.join("", "t", version=0)
    assert reply.member_id == "00000001-0000-0000-0000-000000000000"
    assert reply.member_id in scene.group.members
    assert error(scene.join("", "t")) is INVALID_REQUEST


def test_a_steady_heartbeat_writes_nothing_and_carries_no_assignment() -> None:
    scene = Scene({"t": 1})
    scene.join("a", "t")
    written = len(scene.log)
    reply = scene.beat("a", 2)
    assert (error(reply), reply.member_epoch, reply.assignment, len(scene.log)) == (NONE, 2, None, written)


def test_a_full_heartbeat_is_answered_with_the_assignment_and_writes_nothing() -> None:
    scene = Scene({"t": 1})
    scene.join("a", "t")
    written = len(scene.log)
    reply = scene.beat("a", 2, rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], owned={"t": [0]})
    assert (given(reply), len(scene.log)) == ({"t": [0]}, written)


def test_a_partition_goes_to_the_next_owner_only_when_the_former_has_let_go() -> None:
    scene = Scene({"t": 2})
    scene.join("a", "t")
    second = scene.join("b", "t")
    assert (second.member_epoch, given(second)) == (3, {})
    assert scene.group.members["b"].state == UNRELEASED
    asked = scene.beat("a", 2, owned={"t": [0, 1]})
    assert (asked.member_epoch, given(asked)) == (2, {"t": [0]})
    assert scene.group.members["a"].state == UNREVOKED
    assert scene.group.state_name() == "Reconciling"
    assert given(scene.beat("b", 3)) is None
    assert scene.beat("a", 2).member_epoch == 2, "a heartbeat without partitions says nothing of letting go"
    assert scene.beat("a", 2, owned={"t": [0]}).member_epoch == 3
    assert given(scene.beat("b", 3)) == {"t": [1]}
    assert {member.state for member in scene.group.members.values()} == {STABLE}
    assert scene.group.state_name() == "Stable"


def test_what_a_member_is_letting_go_of_may_come_back_to_it() -> None:
    scene = Scene({"t": 2})
    scene.join("a", "t")
    scene.join("b", "t")
    scene.beat("a", 2, owned={"t": [0, 1]})
    scene.beat("b", -1)
    reply = scene.beat("a", 2, owned={"t": [0]})
    assert (reply.member_epoch, given(reply)) == (4, {"t": [0, 1]})


def test_a_lost_reply_is_forgiven_when_the_member_claims_nothing_new() -> None:
    scene = Scene({"t": 2})
    scene.join("a", "t")
    scene.join("b", "t")
    scene.beat("a", 2, owned={"t": [0, 1]})
    scene.beat("a", 2, owned={"t": [0]})
    assert error(scene.beat("a", 2, owned={"t": [0]})) is NONE
    assert error(scene.beat("a", 2, owned={"t": [0, 1]})) is FENCED_MEMBER_EPOCH
    assert error(scene.beat("a", 2)) is FENCED_MEMBER_EPOCH
    assert error(scene.beat("a", 10)) is FENCED_MEMBER_EPOCH


def test_a_fenced_member_rejoins_with_epoch_0_and_keeps_its_place() -> None:
    scene = Scene({"t": 2})
    scene.join("a", "t")
    written = len(scene.log)
    reply = scene.join("a", "t")
    assert (reply.member_epoch, given(reply), len(scene.log)) == (2, {"t": [0, 1]}, written)


def test_unknown_groups_and_members_are_refused() -> None:
    scene = Scene({"t": 1})
    assert error(scene.beat("a", 2)) is GROUP_ID_NOT_FOUND
    assert error(scene.beat("a", -1)) is GROUP_ID_NOT_FOUND
    scene.join("a", "t")
    assert error(scene.beat("b", 2)) is UNKNOWN_MEMBER_ID
    assert error(scene.beat("b", -1)) is UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"group": ""}, "GroupId"),
        ({"member": " "}, "MemberId"),
        ({"instance_id": ""}, "InstanceId"),
        ({"rack_id": ""}, "RackId"),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs"),
        ({"owned": {"t": [0]}}, "TopicPartitions"),
        ({"owned": None}, "TopicPartitions"),
        ({"subscribed_topic_names": None}, "SubscribedTopicNames"),
        ({"epoch": -3}, "MemberEpoch"),
        ({"epoch": -2}, "InstanceId"),
    ],
)
def test_a_request_that_cannot_be_meant_is_refused_with_its_field_named(fields: dict, word: str) -> None:
    scene = Scene({"t": 1})
    full = {"rebalance_timeout_ms": 1, "owned": {}, "subscribed_topic_names": ["t"], "member": "a", "epoch": 0} | fields
    reply = scene.beat(full.pop("member"), full.pop("epoch"), **full)
    assert error(reply) is INVALID_REQUEST
    assert word in (reply.error_message or "")
    assert not scene.log


def test_an_assignor_that_is_not_there_is_refused_with_those_that_are() -> None:
    reply = Scene({"t": 1}).join("a", "t", server_assignor="sticky")
    assert error(reply) is UNSUPPORTED_ASSIGNOR
    assert "uniform, range" in (reply.error_message or "")


def test_the_assignor_with_the_most_votes_is_used() -> None:
    scene = Scene({"t": 4, "u": 4})
    scene.join("a", "t", "u", server_assignor="range")
    scene.join("b", "t", "u")
    both = [0, 1, 2, 3]
    scene.beat("a", 2, owned={"t": both, "u": both})
    assert given(scene.beat("a", 2, owned={"t": [0, 1], "u": [0, 1]})) is None
    assert given(scene.beat("b", 3)) == {"t": [2, 3], "u": [2, 3]}


def test_a_full_group_takes_nobody_else() -> None:
    scene = Scene({"t": 1}, {"group.consumer.max.size": 1})
    scene.join("a", "t")
    assert error(scene.join("b", "t")) is GROUP_MAX_SIZE_REACHED
    assert error(scene.join("a", "t")) is NONE


def test_a_member_that_leaves_frees_its_partitions_at_once() -> None:
    scene = Scene({"t": 2})
    scene.join("a", "t")
    scene.join("b", "t")
    before = len(scene.log)
    reply = scene.beat("a", -1)
    assert (error(reply), reply.member_id, reply.member_epoch) == (NONE, "a", -1)
    assert kinds(scene.log[before:]) == [
        "-CurrentMemberAssignment",
        "-TargetAssignmentMember",
        "-MemberMetadata",
        "Metadata",
    ]
    reply = scene.beat("b", 3)
    assert (reply.member_epoch, given(reply)) == (4, {"t": [0, 1]})


def test_a_changed_subscription_takes_away_topics_at_once() -> None:
    scene = Scene({"t": 1, "u": 1}, {"group.consumer.assignment.interval.ms": 1_000})
    scene.join("a", "t", "u")
    reply = scene.beat("a", 2, subscribed_topic_names=["t"], owned={"t": [0], "u": [0]})
    assert (reply.member_epoch, given(reply)) == (2, {"t": [0]})
    assert scene.group.epoch == 3
    assert scene.group.target_epoch == 2
    scene.tick(1_000)
    assert scene.beat("a", 2, owned={"t": [0]}).member_epoch == 3


def test_later_assignments_wait_for_the_interval_and_cover_all_changes_together() -> None:
    scene = Scene({"t": 4}, {"group.consumer.assignment.interval.ms": 1_000})
    assert given(scene.join("a", "t")) == {"t": [0, 1, 2, 3]}
    assert scene.join("b", "t").member_epoch == 2
    assert scene.join("c", "t").member_epoch == 2
    assert (scene.group.epoch, scene.group.target_epoch, scene.group.state_name()) == (4, 2, "Assigning")
    scene.tick(999)
    assert scene.beat("a", 2).assignment is None
    scene.tick(1)
    assert given(scene.beat("a", 2)) == {"t": [0, 1]}
    assert scene.group.target_epoch == 4


def test_a_group_may_have_intervals_of_its_own() -> None:
    own = {"g": {"consumer.heartbeat.interval.ms": "7000", "consumer.session.timeout.ms": "50000"}}
    scene = Scene({"t": 1}, groups=own)
    assert scene.join("a", "t").heartbeat_interval_ms == 7_000
    scene.tick(49_999)
    assert "a" in scene.group.members
    scene.tick(1)
    assert not scene.group.members


# Static members


def test_a_static_member_that_is_away_keeps_its_partitions_for_its_successor() -> None:
    scene = Scene({"t": 2})
    scene.join("a", "t", instance_id="i")
    assert error(scene.join("b", "t", instance_id="i")) is UNRELEASED_INSTANCE_ID
    reply = scene.beat("a", -2, instance_id="i")
    assert (error(reply), reply.member_epoch) == (NONE, -2)
    epoch = scene.group.epoch
    reply = scene.join("b", "t", instance_id="i")
    assert (reply.member_epoch, given(reply), scene.group.epoch) == (epoch, {"t": [0, 1]}, epoch)
    assert list(scene.group.members) == ["b"]
    assert error(scene.beat("a", 2, instance_id="i")) is FENCED_INSTANCE_ID
    assert error(scene.beat("a", -2, instance_id="i")) is FENCED_INSTANCE_ID
    assert error(scene.beat("a", 2, instance_id="j")) is UNKNOWN_MEMBER_ID


def test_a_successor_is_written_after_the_former_member_is_gone() -> None:
    scene = Scene({"t": 1})
    scene.join("a", "t", instance_id="i")
    scene.beat("a", -2, instance_id="i")
    before = len(scene.log)
    scene.join("b", "t", instance_id="i")
    assert kinds(scene.log[before:]) == [
        "-CurrentMemberAssignment",
        "-TargetAssignmentMember",
        "-MemberMetadata",
        "MemberMetadata",
        "TargetAssignmentMember",
        "CurrentMemberAssignment",
        "CurrentMemberAssignment",
    ]


def test_a_static_member_that_stays_away_loses_its_place() -> None:
    scene = Scene({"t": 2})
    scene.join("a", "t", instance_id="i")
    scene.join("b", "t")
    scene.beat("a", -2, instance_id="i")
    scene.tick(44_999)
    scene.beat("b", 3)
    scene.tick(1)
    assert list(scene.group.members) == ["b"]
    assert given(scene.beat("b", 3)) == {"t": [0, 1]}


def test_a_static_member_may_leave_for_good() -> None:
    scene = Scene({"t": 1})
    scene.join("a", "t", instance_id="i")
    scene.beat("a", -1, instance_id="i")
    assert not scene.group.members
    assert not scene.group.static


# Time


def test_a_silent_member_is_removed_when_its_session_ends() -> None:
    scene = Scene({"t": 2})
    scene.join("a", "t")
    scene.join("b", "t")
    scene.tick(30_000)
    scene.beat("b", 3)
    scene.tick(15_000)
    assert list(scene.group.members) == ["b"]
    assert given(scene.beat("b", 3)) == {"t": [0, 1]}


def test_a_member_that_does_not_let_go_in_time_is_removed() -> None:
    scene = Scene({"t": 2})
    scene.join("a", "t", rebalance_timeout_ms=20_000)
    scene.join("b", "t")
    scene.beat("a", 2, owned={"t": [0, 1]})
    scene.tick(10_000)
    scene.beat("a", 2)
    scene.beat("b", 3)
    scene.tick(10_000)
    assert list(scene.group.members) == ["b"]
    assert error(scene.beat("a", 2)) is UNKNOWN_MEMBER_ID


def test_a_group_without_members_has_no_timer() -> None:
    scene = Scene({"t": 2})
    scene.join("a", "t", rebalance_timeout_ms=20_000)
    scene.join("b", "t")
    scene.beat("a", 2, owned={"t": [0, 1]})
    scene.beat("a", -1)
    scene.beat("b", -1)
    assert len(scene.shard.table.timers) == 0
    assert scene.group.state_name() == "Empty"


def test_after_a_load_members_have_a_whole_session_again() -> None:
    scene = Scene({"t": 1})
    scene.join("a", "t")
    scene.tick(40_000)
    twin = scene.reloaded()
    twin.tick(44_999)
    assert "a" in twin.group.members
    twin.tick(1)
    assert not twin.group.members


# Topics change


def test_new_partitions_are_given_out_at_the_next_heartbeat() -> None:
    scene = Scene({"t": 1})
    scene.join("a", "t")
    written = len(scene.log)
    scene.grow("t", 3)
    assert len(scene.log) == written, "the change itself writes nothing"
    reply = scene.beat("a", 2)
    assert (reply.member_epoch, given(reply)) == (3, {"t": [0, 1, 2]})


def test_a_topic_that_comes_to_be_is_given_out() -> None:
    scene = Scene({})
    assert given(scene.join("a", "t")) == {}
    scene.create("t", 2)
    assert given(scene.beat("a", 2)) == {"t": [0, 1]}


def test_a_deleted_topic_is_taken_away() -> None:
    scene = Scene({"t": 1, "u": 1})
    scene.join("a", "t", "u")
    scene.delete("u")
    assert given(scene.beat("a", 2)) == {"t": [0]}
    assert scene.beat("a", 2, owned={"t": [0]}).member_epoch == 3


def test_a_change_of_a_topic_that_nobody_reads_changes_nothing() -> None:
    scene = Scene({"t": 1, "u": 1})
    scene.join("a", "t")
    scene.beat("a", 2)
    scene.grow("u", 5)
    assert not scene.group.metadata_stale
    assert scene.beat("a", 2).member_epoch == 2


def test_a_changed_client_id_is_written_down_without_a_rebalance() -> None:
    scene = Scene({"t": 1})
    scene.join("a", "t")
    before = len(scene.log)
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=2)
    scene.ask(request, 1, client="other")
    assert kinds(scene.log[before:]) == ["MemberMetadata"]
    assert scene.group.epoch == 2
