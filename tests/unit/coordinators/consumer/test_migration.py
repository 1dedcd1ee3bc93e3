"""Members of the classic protocol in consumer groups, and groups that change their protocol."""

from __future__ import annotations

import pytest

from penstock.coordinators.groups.classic.group import ClassicGroup
from penstock.coordinators.groups.consumer.group import ConsumerGroup
from penstock.model.errors import (
    GROUP_ID_NOT_FOUND,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from penstock.protocol.messages.sync_group import SyncGroupRequest
from tests.unit.coordinators.consumer.classic_client import ClassicClient, assignment, read_assignment
from tests.unit.coordinators.consumer.scene import GROUP, Scene, error, given, kinds

REBALANCE = REBALANCE_IN_PROGRESS.code


def scene_with(policy: str = "bidirectional", **topics: int) -> Scene:
    properties = {"group.initial.rebalance.delay.ms": 0, "group.consumer.migration.policy": policy}
    return Scene(topics or {"t": 3}, properties)


def test_a_classic_group_is_taken_over_with_its_members_when_a_new_member_joins() -> None:
    scene = scene_with()
    client = ClassicClient(scene)
    old, generation = client.form_group(["t"], {"t": [0, 1, 2]})
    before = len(scene.log)
    reply = scene.join("new", "t")
    assert (error(reply), reply.member_epoch, given(reply)) == (NONE, generation + 1, {})
    assert kinds(scene.log[before:]) == [
        "-GroupMetadata",
        "MemberMetadata",
        "Metadata",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
        "MemberMetadata",
        "Metadata",
        "TargetAssignmentMember",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
    ]
    assert sorted(scene.group.members) == sorted([old, "new"])
    assert scene.group.classic_members == 1


def test_a_classic_member_moves_on_by_joining_and_syncing() -> None:
    scene = scene_with()
    client = ClassicClient(scene)
    old, generation = client.form_group(["t"], {"t": [0, 1, 2]})
    epoch = scene.join("new", "t").member_epoch
    assert client.beat(old, generation) == REBALANCE
    assert client.sync(old, generation).error_code == REBALANCE
    asked = client.join(old, "t", owned={"t": [0, 1, 2]})
    assert asked.generation_id == generation, "it must let go first"
    assert read_assignment(client.sync(old, generation).assignment) == {"t": [0, 1]}
    assert given(scene.beat("new", epoch)) is None
    assert client.beat(old, generation) == REBALANCE
    moved = client.join(old, "t", owned={"t": [0, 1]})
    assert moved.generation_id == epoch
    assert read_assignment(client.sync(old, epoch).assignment) == {"t": [0, 1]}
    assert client.beat(old, epoch) == NONE.code
    assert given(scene.beat("new", epoch)) == {"t": [2]}


def test_a_new_classic_member_gets_its_id_first_and_waits_for_nobody() -> None:
    scene = scene_with()
    client = ClassicClient(scene)
    scene.join("new", "t")
    first = client.join("", "t")
    assert error(first) is MEMBER_ID_REQUIRED
    second = client.join(first.member_id, "t")
    assert (error(second), second.leader, second.members, second.protocol_name) == (NONE, "", [], "range")
    assert client.sync(second.member_id, second.generation_id).error_code == NONE.code


def test_classic_members_are_checked_like_in_a_classic_group() -> None:
    scene = scene_with()
    client = ClassicClient(scene)
    scene.join("new", "t")
    old = client.join("", "t").member_id
    generation = client.join(old, "t").generation_id
    assert error(client.join("", "t", protocols=("other",))) is INCONSISTENT_GROUP_PROTOCOL
    assert error(client.join("", "t", protocol_type="connect")) is INCONSISTENT_GROUP_PROTOCOL
    assert client.beat(old, generation + 1) == ILLEGAL_GENERATION.code
    assert client.beat("nobody", generation) == UNKNOWN_MEMBER_ID.code
    assert client.beat("new", 2) == UNKNOWN_MEMBER_ID.code, "it does not speak this protocol"
    request = SyncGroupRequest(
        group_id=GROUP, generation_id=generation, member_id=old, protocol_type="consumer", protocol_name="other"
    )
    assert error(scene.ask(request, 5).reply) is INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("way", ["join", "sync", "session"])
def test_a_classic_member_that_falls_silent_is_removed(way: str) -> None:
    scene = scene_with()
    client = ClassicClient(scene)
    old, generation = client.form_group(["t"], {"t": [0, 1, 2]})
    epoch = scene.join("new", "t").member_epoch
    if way == "join":
        client.beat(old, generation)
    elif way == "sync":
        client.join(old, "t", owned={"t": [0, 1, 2]})
    for _ in range(7):
        scene.tick(10_000)
        epoch = scene.beat("new", epoch).member_epoch
        if way == "join":
            client.beat(old, generation)
    assert list(scene.group.members) == ["new"]
    assert given(scene.beat("new", epoch, owned={})) in (None, {"t": [0, 1, 2]})
    assert scene.group.members["new"].assigned.keys()


def test_members_that_wait_in_a_classic_rebalance_are_told_of_the_next_one() -> None:
    scene = scene_with()
    client = ClassicClient(scene)
    client.form_group(["t"], {"t": [0, 1, 2]})
    other = client.join("", "t").member_id
    assert client.join(other, "t") is None, "held back until the first member has joined again"
    scene.join("new", "t")
    answer = scene.answers[-1].reply
    assert (answer.error_code, answer.member_id) == (REBALANCE, other)
    assert other in scene.group.members


def test_the_last_new_member_to_leave_gives_the_group_back_to_the_classic_protocol() -> None:
    scene = scene_with()
    client = ClassicClient(scene)
    old, _ = client.form_group(["t"], {"t": [0, 1, 2]})
    epoch = scene.join("new", "t").member_epoch
    client.join(old, "t", owned={"t": [0, 1, 2]})
    client.join(old, "t", owned={"t": [0, 1]})
    client.sync(old, epoch)
    before = len(scene.log)
    assert error(scene.beat("new", -1)) is NONE
    written = kinds(scene.log[before:])
    assert (written[-1], written.count("GroupMetadata")) == ("GroupMetadata", 1)
    group = scene.shard.table.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert (list(group.members), group.generation) == ([old], epoch)
    scene.tick(0)
    assert client.beat(old, epoch) == REBALANCE
    again = client.join(old, "t")
    assert (again.generation_id, again.leader) == (epoch + 1, old)


def test_a_static_new_member_replaced_by_a_classic_one_gives_the_group_back_without_a_rebalance() -> None:
    scene = scene_with(t=2)
    client = ClassicClient(scene)
    scene.join("p", "t", instance_id="i")
    reply = client.join("", "t", group_instance_id="i")
    assert error(reply) is NONE
    group = scene.shard.table.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    scene.tick(0)
    member, generation = reply.member_id, reply.generation_id
    assert read_assignment(client.sync(member, generation, instance="i").assignment) == {"t": [0, 1]}
    assert client.beat(member, generation, "i") == NONE.code


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_a_group_with_members_is_not_taken_over_when_that_is_turned_off(policy: str) -> None:
    scene = scene_with(policy)
    ClassicClient(scene).form_group(["t"], {"t": [0, 1, 2]})
    assert error(scene.join("new", "t")) is GROUP_ID_NOT_FOUND
    assert isinstance(scene.shard.table.groups[GROUP], ClassicGroup)


def test_a_group_is_not_given_back_when_that_is_turned_off_and_still_finds_new_targets() -> None:
    scene = scene_with("upgrade")
    client = ClassicClient(scene)
    old, _ = client.form_group(["t"], {"t": [0, 1, 2]})
    epoch = scene.join("new", "t").member_epoch
    client.join(old, "t", owned={"t": [0, 1, 2]})
    client.join(old, "t", owned={"t": [0, 1]})
    client.sync(old, epoch)
    scene.beat("new", -1)
    assert isinstance(scene.shard.table.groups[GROUP], ConsumerGroup)
    assert client.beat(old, epoch) == REBALANCE
    epoch = client.join(old, "t", owned={"t": [0, 1]}).generation_id
    assert read_assignment(client.sync(old, epoch).assignment) == {"t": [0, 1, 2]}
    scene.grow("t", 4)
    assert client.beat(old, epoch) == REBALANCE


def test_classic_members_stay_out_where_migration_is_disabled() -> None:
    scene = scene_with("disabled")
    scene.join("new", "t")
    assert error(ClassicClient(scene).join("", "t")) is INCONSISTENT_GROUP_PROTOCOL


def test_an_empty_classic_group_makes_room_whatever_the_policy() -> None:
    scene = scene_with("disabled")
    client = ClassicClient(scene)
    old, _ = client.form_group(["t"], {"t": [0, 1, 2]})
    client.leave((old, None))
    scene.tick(0)
    assert given(scene.join("new", "t")) == {"t": [0, 1, 2]}


def test_a_classic_group_of_others_than_consumers_is_left_alone() -> None:
    scene = scene_with()
    client = ClassicClient(scene)
    member = client.join("", "t", protocol_type="connect").member_id
    client.join(member, "t", protocol_type="connect")
    assert error(scene.join("new", "t")) is GROUP_ID_NOT_FOUND


def test_an_assignor_that_keeps_data_with_assignments_stops_the_upgrade() -> None:
    scene = scene_with()
    client = ClassicClient(scene)
    member = client.join("", "t").member_id
    generation = client.join(member, "t").generation_id
    request = SyncGroupRequest(group_id=GROUP, generation_id=generation, member_id=member)
    request.assignments = [
        SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=assignment({"t": [0]}, b"mine"))
    ]
    scene.ask(request, 4)
    assert error(scene.join("new", "t")) is GROUP_ID_NOT_FOUND
    assert client.beat(member, generation) == NONE.code


def test_an_admin_removes_members_of_either_protocol() -> None:
    scene = scene_with()
    client = ClassicClient(scene)
    scene.join("a", "t", instance_id="i")
    scene.join("b", "t")
    reply = client.leave(("", "i"), ("b", None), ("", "j"), ("x", None))
    unknown = UNKNOWN_MEMBER_ID.code
    assert [member.error_code for member in reply.members] == [0, 0, unknown, unknown]
    assert not scene.group.members
