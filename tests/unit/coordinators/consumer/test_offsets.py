"""What a consumer group says to commits, fetches, deletions and expiry."""

from __future__ import annotations

import pytest

from penstock.coordinators.groups.table import CommittedOffset
from penstock.model.errors import (
    NON_EMPTY_GROUP,
    NONE,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    UNSUPPORTED_VERSION,
)
from penstock.protocol.messages.offset_commit import OffsetCommitRequest
from tests.unit.coordinators.consumer.scene import Scene, topic_id


def commit(member: str, epoch: int, *partitions: int, by_id: bool = False) -> OffsetCommitRequest:
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(
        partitions=[
            OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=number, committed_offset=1)
            for number in partitions
        ]
    )
    if by_id:
        topic.topic_id = topic_id("t")
    else:
        topic.name = "t"
    return OffsetCommitRequest(group_id="g", member_id=member, generation_id_or_member_epoch=epoch, topics=[topic])


@pytest.fixture
def scene() -> Scene:
    """a had t-0 and t-1 since epoch 2 and is at epoch 3 with t-0."""
    scene = Scene({"t": 2})
    scene.join("a", "t")
    scene.join("b", "t")
    scene.beat("a", 2, owned={"t": [0, 1]})
    scene.beat("a", 2, owned={"t": [0]})
    scene.beat("b", 3)
    return scene


def test_a_commit_at_the_members_epoch_is_fine(scene: Scene) -> None:
    assert scene.group.check_commit(commit("a", 3, 0, 1), 9) is NONE


@pytest.mark.parametrize("by_id", [False, True])
def test_a_late_commit_is_fine_for_what_the_member_still_has(scene: Scene, by_id: bool) -> None:
    assert scene.group.check_commit(commit("a", 2, 0, by_id=by_id), 10 if by_id else 9) is NONE
    assert scene.group.check_commit(commit("a", 2, 1, by_id=by_id), 10 if by_id else 9) is STALE_MEMBER_EPOCH
    assert scene.group.check_commit(commit("b", 2, 1, by_id=by_id), 10 if by_id else 9) is STALE_MEMBER_EPOCH


def test_commits_from_nowhere_or_the_future_are_refused(scene: Scene) -> None:
    group = scene.group
    assert group.check_commit(commit("x", 3, 0), 9) is UNKNOWN_MEMBER_ID
    assert group.check_commit(commit("", -1, 0), 9) is UNKNOWN_MEMBER_ID
    assert group.check_commit(commit("a", 4, 0), 9) is STALE_MEMBER_EPOCH
    assert group.check_commit(commit("a", 3, 0), 8) is UNSUPPORTED_VERSION


def test_anybody_may_commit_for_an_empty_group(scene: Scene) -> None:
    scene.beat("a", -1)
    scene.beat("b", -1)
    assert scene.group.check_commit(commit("", -1, 0), 9) is NONE


def test_a_fetch_that_names_a_member_must_know_its_epoch(scene: Scene) -> None:
    group = scene.group
    assert group.check_fetch(None, -1) is NONE
    assert group.check_fetch("a", 3) is NONE
    assert group.check_fetch("a", 2) is STALE_MEMBER_EPOCH
    assert group.check_fetch("x", 3) is UNKNOWN_MEMBER_ID


def test_only_an_empty_group_may_be_deleted_and_then_nothing_is_left(scene: Scene) -> None:
    assert scene.group.check_delete() is NON_EMPTY_GROUP
    scene.beat("a", -1)
    scene.beat("b", -1)
    assert scene.group.check_delete() is NONE
    for record in scene.group.tombstones():
        scene.shard.apply(record)
    assert not scene.shard.table.groups


def test_offsets_count_their_retention_from_the_commit(scene: Scene) -> None:
    assert scene.group.expiry_base(CommittedOffset(1, -1, "", 77)) == 77
    assert scene.group.subscribes_to("t")
    assert not scene.group.subscribes_to("u")
