"""Committed offsets: commit, fetch, delete, expire, and what happens to them when topics or groups go."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.coordinators.decision import Caller
from penstock.coordinators.groups.expiry import GROUPS_PER_STEP
from penstock.coordinators.groups.table import CommittedOffset
from penstock.metadata.delta import Delta
from penstock.metadata.entities import TopicImage
from penstock.model.errors import (
    GROUP_ID_NOT_FOUND,
    GROUP_SUBSCRIBED_TO_TOPIC,
    INVALID_GROUP_ID,
    NON_EMPTY_GROUP,
    NONE,
    OFFSET_METADATA_TOO_LARGE,
    error_of,
)
from penstock.model.ids import ZERO_UUID, Uuid
from penstock.protocol.messages.offset_commit import OffsetCommitRequest
from penstock.protocol.messages.offset_delete import OffsetDeleteRequest
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.unit.coordinators.classic.script import GROUP, START, Script

DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS
CALLER = Caller("c", "/127.0.0.1", 9, object())
ID, OTHER_ID = Uuid(b"\1" * 16), Uuid(b"\2" * 16)  # of the topics t and u

STABLE = """
    a join v=3      | -
    wait 3000       | a: generation 1 leads a
    a sync a=x      | a: assigned x
"""


def commit(script: Script, at: int = 1, *, version: int = 9, **fields: Any) -> Any:
    """One offset of partition 0, by nobody in particular."""
    about = {name: fields.pop(name) for name in ("group_id", "retention_time_ms") if name in fields}
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(
        name=fields.pop("topic", "t"),
        topic_id=fields.pop("topic_id", ZERO_UUID),
        partitions=[
            OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=fields.pop("partition", 0), committed_offset=at, **fields
            )
        ],
    )
    (answer,) = script.ask("admin", OffsetCommitRequest(**{"group_id": GROUP, **about}, topics=[topic]), version)
    return error_of(answer.reply.topics[0].partitions[0].error_code)


def fetch(script: Script, *topics: tuple[str, list[int]], topic_id: Uuid = ZERO_UUID) -> Any:
    """What OffsetFetch says of these partitions, or of all: topic, partition, offset, leader epoch, metadata."""
    asked = [
        OffsetFetchRequest.OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=indexes)
        for name, indexes in topics
    ]
    request = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=asked or None)
    reply = script.shard.fetch_offsets(request, CALLER, script.now)
    assert reply.error_code == 0
    return [
        (topic.name, each.partition_index, each.committed_offset, each.committed_leader_epoch, each.metadata)
        for topic in reply.topics
        for each in topic.partitions
        if each.error_code == 0
    ]


def delete_offset(script: Script, topic: str = "t", group_id: str = GROUP) -> tuple[Any, Any]:
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequest.OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)]
            )
        ],
    )
    (answer,) = script.ask("admin", request, 0)
    partition = answer.reply.topics[0].partitions[0].error_code if answer.reply.topics else None
    return error_of(answer.reply.error_code), None if partition is None else error_of(partition)


def delete_group(script: Script, group_id: str = GROUP) -> Any:
    decision = script.shard.decide_delete(group_id, script.now)
    script._carry_out([decision])
    assert decision.reply is not None
    return error_of(decision.reply.error_code)


def listed(script: Script) -> list[tuple[str, str, str, str]]:
    groups = script.shard.listed(script.now)
    return [(group.group_id, group.protocol_type, group.group_state, group.group_type) for group in groups]


def test_offsets_without_members_make_a_group_in_name() -> None:
    script = Script()
    assert commit(script, 7, committed_leader_epoch=3, committed_metadata="note") is NONE
    assert fetch(script, ("t", [0, 1])) == [("t", 0, 7, 3, "note"), ("t", 1, -1, -1, "")]
    assert listed(script) == [(GROUP, "", "Empty", "classic")]


def test_a_null_metadata_is_kept_as_an_empty_one() -> None:
    script = Script()
    commit(script, 7, committed_metadata=None)
    assert script.shard.table.offsets[GROUP] == {("t", 0): CommittedOffset(7, -1, "", START.wall, topic_id=ID)}


def test_all_offsets_of_a_group_come_by_topic() -> None:
    script = Script()
    for topic, partition in (("u", 1), ("t", 0), ("u", 0)):
        commit(script, 5, topic=topic, partition=partition, committed_metadata="")
    found = fetch(script)
    assert sorted(found) == [("t", 0, 5, -1, ""), ("u", 0, 5, -1, ""), ("u", 1, 5, -1, "")]


def test_a_group_that_is_not_there_has_no_offsets_and_no_error() -> None:
    assert fetch(Script(), ("t", [4])) == [("t", 4, -1, -1, "")]
    assert fetch(Script()) == []


def test_offsets_of_a_former_topic_are_not_for_its_successor() -> None:
    script = Script()
    commit(script, 5, topic_id=ID, committed_metadata="", version=10)
    assert fetch(script, ("t", [0]), topic_id=OTHER_ID) == [("t", 0, -1, -1, "")]
    assert fetch(script, ("t", [0]), topic_id=ID) == [("t", 0, 5, -1, "")]
    assert fetch(script, ("t", [0])) == [("t", 0, 5, -1, "")]


@pytest.mark.parametrize(("text", "error"), [("x" * 4096, NONE), ("x" * 4097, OFFSET_METADATA_TOO_LARGE)])
def test_metadata_has_a_limit(text: str, error: Any) -> None:
    script = Script()
    assert commit(script, committed_metadata=text) is error
    assert (GROUP in script.shard.table.offsets) is (error is NONE)


def test_the_limit_of_metadata_counts_as_java_counts() -> None:
    script = Script()
    assert commit(script, committed_metadata="é" * 4096) is NONE
    assert commit(script, committed_metadata="😀" * 2049) is OFFSET_METADATA_TOO_LARGE


def test_the_empty_group_id_may_commit_and_be_deleted() -> None:
    script = Script()
    assert commit(script, group_id="") is NONE
    assert delete_group(script, "") is NONE
    assert listed(script) == []


# Deleting


def test_offsets_in_use_are_not_deleted() -> None:
    script = Script()
    script.play(STABLE)
    script.play("a commit | a: NONE")
    assert delete_offset(script) == (NONE, GROUP_SUBSCRIBED_TO_TOPIC)
    assert delete_offset(script, "other") == (NONE, NONE)
    script.play("a leave | a: NONE")
    assert delete_offset(script) == (NONE, NONE)
    assert script.log[-1].value is None
    assert fetch(script) == []


def test_offsets_of_members_that_are_no_consumers_are_not_deleted_while_they_are_there() -> None:
    script = Script()
    script.play("""
        a join v=3 type=connect         | -
        wait 3000                       | a: generation 1 leads a
        a sync v=4 a=x                  | a: assigned x
    """)
    assert delete_offset(script) == (NON_EMPTY_GROUP, None)


def test_offsets_of_no_group_are_not_deleted() -> None:
    assert delete_offset(Script()) == (GROUP_ID_NOT_FOUND, None)
    assert delete_offset(Script(), group_id="") == (INVALID_GROUP_ID, None)


def test_only_an_empty_group_is_deleted_and_its_offsets_with_it() -> None:
    script = Script()
    script.play(STABLE)
    script.play("a commit | a: NONE")
    assert delete_group(script) is NON_EMPTY_GROUP
    script.play("a leave | a: NONE")
    assert delete_group(script) is NONE
    assert [record.value for record in script.log[-2:]] == [None, None]
    assert (listed(script), script.shard.table.offsets, script.shard.table.offset_topics) == ([], {}, {})
    assert delete_group(script) is GROUP_ID_NOT_FOUND


def test_a_deleted_group_leaves_no_timer() -> None:
    script = Script()
    script.play("a join | a: MEMBER_ID_REQUIRED")
    assert delete_group(script) is NONE
    assert len(script.shard.table.timers) == 0


def test_offsets_of_a_deleted_topic_go() -> None:
    script = Script()
    commit(script, topic="t")
    commit(script, topic="u")
    commit(script, topic="t", group_id="other")
    script.delete_topic("t")
    successor = script.make_topic("t")
    commit(script, topic="t", partition=1)
    delta = Delta(deleted={ID: TopicImage("t", ID)})
    script._carry_out(script.shard.image_changed(script.image, delta, script.now))
    assert script.shard.table.offsets == {
        GROUP: {
            ("u", 0): CommittedOffset(1, -1, "", START.wall, topic_id=OTHER_ID),
            ("t", 1): CommittedOffset(1, -1, "", START.wall, topic_id=successor),
        }
    }


@pytest.mark.parametrize("made_anew", [True, False])
def test_offsets_of_a_topic_that_went_while_nobody_coordinated_are_not_shown_and_go(made_anew: bool) -> None:
    script = Script()
    script.play(STABLE)
    script.play("a commit | a: NONE")
    commit(script, 5, topic="u", group_id="other")
    script.delete_topic("t")
    if made_anew:
        script.make_topic("t")
    written = len(script.log)
    script.reload()
    assert fetch(script, ("t", [0])) == [("t", 0, -1, -1, "")]
    assert fetch(script) == []
    assert len(script.log) == written, "a load needs no log that can be written to"
    script.wait(0)
    assert [(record.key.topic, record.value) for record in script.log[written:]] == [("t", None)]
    assert list(script.shard.table.offsets) == ["other"]
    assert (script.shard.next_deadline() or 0) > script.now.tick, "the check is not due again and again"


def test_an_offset_without_an_id_is_taken_for_one_of_the_topic_that_has_the_name() -> None:
    """Nothing tells it from an offset of the topic before; but without any topic of the name it is nobody's."""
    script = Script()
    commit(script, 5, version=4, retention_time_ms=DAY_MS, committed_metadata="")
    script.delete_topic("t")
    script.make_topic("t")
    script.reload()
    assert fetch(script, ("t", [0])) == [("t", 0, 5, -1, "")]
    script.delete_topic("t")
    script.reload()
    script.wait(0)
    assert script.shard.table.offsets == {}


# Expiry


def test_offsets_of_an_empty_group_expire_a_week_after_it_became_empty() -> None:
    script = Script()
    script.play(STABLE)
    script.play("a commit | a: NONE")
    script.do("wait 5000")
    script.play("a leave | a: NONE")
    script.wait(WEEK_MS - 1)
    assert fetch(script) != []
    script.wait(600_000)
    assert (fetch(script), listed(script)) == ([], [])
    assert [record.value for record in script.log[-2:]] == [None, None]


def test_offsets_without_members_expire_a_week_after_each_commit() -> None:
    script = Script()
    commit(script, topic="t")
    script.wait(DAY_MS)
    commit(script, topic="u")
    script.wait(WEEK_MS - DAY_MS + 600_000)
    assert [found[0] for found in fetch(script)] == ["u"]
    script.wait(DAY_MS)
    assert listed(script) == []


def test_what_a_stable_group_reads_does_not_expire_and_what_it_no_longer_reads_does() -> None:
    script = Script()
    commit(script, topic="old")
    script.play("""
        a join v=3 session=1800000  | -
        wait 3000                   | a: generation 1 leads a
        a sync a=x                  | a: assigned x
        a commit topic=t            | a: NONE
    """)
    for _ in range(WEEK_MS // 1_000_000 + 2):
        script.play("""
            wait 1000000    | -
            a beat          | a: NONE
        """)
    assert [found[0] for found in fetch(script)] == ["t"]


def test_nothing_expires_while_members_are_no_consumers() -> None:
    script = Script()
    script.play("""
        a join v=3 type=connect session=1800000     | -
        wait 3000                                   | a: generation 1 leads a
        a sync v=4 a=x                              | a: assigned x
        a commit                                    | a: NONE
    """)
    for _ in range(WEEK_MS // 1_000_000 + 2):
        script.play("""
            wait 1000000    | -
            a beat          | a: NONE
        """)
    assert [found[0] for found in fetch(script)] == ["t"]


def test_an_old_client_may_say_how_long_its_offsets_are_kept() -> None:
    script = Script()
    commit(script, version=4, retention_time_ms=DAY_MS)
    assert (script.log[-1].value_version, script.log[-1].value.expire_timestamp) == (1, START.wall + DAY_MS)
    script.wait(DAY_MS - 1)
    assert fetch(script) != []
    script.wait(600_000)
    assert listed(script) == []


def test_an_empty_group_without_offsets_goes_at_the_next_check() -> None:
    script = Script()
    script.play(STABLE)
    script.play("a leave | a: NONE")
    script.wait(599_999)
    assert listed(script) == []


def test_the_check_rests_between_groups_and_groups_cost_no_timer() -> None:
    script = Script()
    count = 10 * GROUPS_PER_STEP
    for number in range(count):
        table = script.shard.table
        record = commit_record(number, START.wall)
        script.shard.apply(record)
    assert (len(table.timers), script.shard.next_deadline()) == (0, START.tick + 600_000)
    now = START._replace(tick=START.tick + 600_000)
    decisions = list(script.shard.expire(now))
    assert len(decisions) == count / GROUPS_PER_STEP
    assert not any(decision.records for decision in decisions)


def commit_record(number: int, at: int) -> Any:
    from penstock.coordinators.groups.records import offset_record

    return offset_record(f"g{number}", "t", 0, CommittedOffset(1, -1, "", at))
