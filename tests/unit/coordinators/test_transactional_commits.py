"""Offsets committed in transactions: who may, what is shown meanwhile, and what may not go before they are decided."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.coordinators.decision import Caller, Decision, Moment, ProducerEpoch, StateRecord
from penstock.coordinators.groups.records import offset_record, offset_tombstone
from penstock.coordinators.groups.settings import GroupSettings
from penstock.coordinators.groups.shard import GroupShard
from penstock.coordinators.groups.table import CommittedOffset
from penstock.metadata.image import ClusterImage
from penstock.model.errors import (
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    INVALID_GROUP_ID,
    NONE,
    OFFSET_METADATA_TOO_LARGE,
    UNKNOWN_MEMBER_ID,
    UNSTABLE_OFFSET_COMMIT,
    ErrorCode,
    error_of,
)
from penstock.model.ids import Epoch, Millis, Offset, Uuid
from penstock.protocol.disk.metadata_topics import RemoveTopicRecord, TopicRecord
from penstock.protocol.messages.offset_delete import OffsetDeleteRequest
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest
from penstock.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.properties import examples
from tests.unit.coordinators.classic.script import GROUP, Script
from tests.unit.coordinators.consumer.scene import Scene

NOW = Moment(Millis(1_700_000_000_000), 5_000)
WEEK_MS = 7 * 86_400_000
CALLER = Caller("c", "/127.0.0.1", 5, object())
PRODUCER = ProducerEpoch(9, 3)
TOPIC_ID = Uuid(b"\1" * 16)


def request(
    *partitions: int, member: str = "", generation: int = -1, instance: str | None = None, **said: Any
) -> TxnOffsetCommitRequest:
    made = TxnOffsetCommitRequest
    done = [
        made.TxnOffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=said.get("at", 10),
            committed_leader_epoch=2,
            committed_metadata=said.get("metadata"),
        )
        for index in partitions or (0,)
    ]
    return made(
        transactional_id="copier",
        group_id=said.get("group", GROUP),
        producer_id=PRODUCER.id,
        producer_epoch=PRODUCER.epoch,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
        topics=[made.TxnOffsetCommitRequestTopic(name="t", partitions=done)],
    )


def errors_of(decision: Decision) -> list[ErrorCode]:
    reply: Any = decision.reply
    return [error_of(each.error_code) for topic in reply.topics for each in topic.partitions]


class Shard:
    """A shard and its log, as its home writes to it."""

    def __init__(self, **properties: Any) -> None:
        self.image = ClusterImage()
        self.image.apply(TopicRecord(name="t", topic_id=TOPIC_ID), Offset(1), Epoch(0))
        self.image.take_delta()
        self.shard = GroupShard(
            GroupSettings.fixed({name.replace("_", "."): value for name, value in properties.items()}),
            self.image,
            new_id=lambda: "id",
        )
        self.end = self.weeks = 0
        list(self.shard.loaded(NOW))

    def carry_out(self, decision: Decision) -> Decision:
        for record in decision.records:
            if decision.producer is None:
                self.shard.apply(record, Offset(self.end))
            else:
                self.shard.apply_pending(decision.producer.id, record, Offset(self.end))
            self.end += 1
        return decision

    def commit(self, *partitions: int, **said: Any) -> list[ErrorCode]:
        return errors_of(self.carry_out(self.shard.decide(request(*partitions, **said), CALLER, NOW)))

    def plain(self, at: int, partition: int = 0) -> None:
        committed = CommittedOffset(at, -1, "", NOW.wall, topic_id=TOPIC_ID)
        self.carry_out(Decision([offset_record(GROUP, "t", partition, committed)]))

    def end_transaction(self, *, committed: bool) -> None:
        self.end += 1
        self.shard.on_marker(PRODUCER.id, committed=committed)

    def shown(self, *partitions: int, stable: bool = False) -> list[int | ErrorCode]:
        asked = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=GROUP,
            topics=[OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=list(partitions))]
            if partitions
            else None,
        )
        reply = self.shard.fetch_offsets(asked, CALLER, NOW, require_stable=stable)
        return [
            error_of(each.error_code) if each.error_code else each.committed_offset
            for topic in reply.topics
            for each in topic.partitions
        ]

    def expire(self) -> list[StateRecord]:
        """What a week takes."""
        self.weeks += 1
        later = Moment(Millis(NOW.wall + self.weeks * WEEK_MS), NOW.tick + self.weeks * WEEK_MS)
        return [record for decision in self.shard.expire(later) for record in self.carry_out(decision).records]


# -- committing


def test_what_is_committed_in_a_transaction_is_written_as_part_of_it() -> None:
    decision = Shard().shard.decide(request(0, 1, metadata="here"), CALLER, NOW)
    assert decision.producer == PRODUCER
    wanted = CommittedOffset(10, 2, "here", NOW.wall, topic_id=TOPIC_ID)
    assert decision.records == [offset_record(GROUP, "t", index, wanted) for index in (0, 1)]
    assert errors_of(decision) == [NONE, NONE]


def test_metadata_that_is_too_long_is_refused_by_itself() -> None:
    shard = Shard(offset_metadata_max_bytes=3)
    assert shard.commit(0, metadata="long") == [OFFSET_METADATA_TOO_LARGE]
    assert not shard.shard.pending


def test_a_group_without_a_name_has_no_transactions() -> None:
    assert Shard().commit(0, group="") == [INVALID_GROUP_ID]


def test_a_group_that_is_not_known_is_made_for_nobody_in_particular() -> None:
    shard = Shard()
    assert shard.commit(0, generation=1, member="m") == [ILLEGAL_GENERATION]
    assert shard.shard.table.groups == {}
    assert shard.commit(0) == [NONE]
    assert list(shard.shard.table.groups) == [GROUP]


STABLE = """
    a join instance=i v=9 | -
    wait 3000             | a: generation 1 leads a
    a sync a=x            | a: assigned x
"""


@pytest.mark.parametrize(
    ("member", "generation", "instance", "error"),
    [
        ("", -1, None, NONE),
        ("a", 1, None, NONE),
        ("a", 1, "i", NONE),
        ("a", 0, None, ILLEGAL_GENERATION),
        ("a", 2, "i", ILLEGAL_GENERATION),
        ("a", -1, None, ILLEGAL_GENERATION),
        ("x", 1, None, UNKNOWN_MEMBER_ID),
        ("", 1, None, UNKNOWN_MEMBER_ID),
        ("a", 1, "j", UNKNOWN_MEMBER_ID),
        ("x", 1, "i", FENCED_INSTANCE_ID),
        ("", -1, "i", FENCED_INSTANCE_ID),
    ],
)
def test_who_may_commit_in_a_transaction_for_a_classic_group(
    member: str, generation: int, instance: str | None, error: ErrorCode
) -> None:
    script = Script()
    script.play(STABLE)
    asked = request(0, member=script.ids.get(member, member), generation=generation, instance=instance)
    assert errors_of(script.shard.decide(asked, CALLER, script.now)) == [error]


def test_a_classic_member_may_commit_while_its_group_waits_for_an_assignment() -> None:
    script = Script()
    script.play("""
        a join v=3      | -
        wait 3000       | a: generation 1 leads a
    """)
    asked = request(0, member=script.ids["a"], generation=1)
    assert errors_of(script.shard.decide(asked, CALLER, script.now)) == [NONE]


def test_anybody_may_commit_for_an_empty_classic_group() -> None:
    script = Script()
    script.play(STABLE)
    script.do("a leave")
    asked = request(0, member="whoever", instance="whatever")
    assert errors_of(script.shard.decide(asked, CALLER, script.now)) == [NONE]


@pytest.mark.parametrize(
    ("member", "epoch", "partitions", "error"),
    [
        ("", -1, (0, 1), NONE),
        ("a", 3, (0, 1), NONE),
        ("a", 2, (0,), NONE),
        ("a", 2, (1,), ILLEGAL_GENERATION),
        ("a", 4, (0,), ILLEGAL_GENERATION),
        ("a", -1, (0,), ILLEGAL_GENERATION),
        ("x", 3, (0,), UNKNOWN_MEMBER_ID),
        ("", 3, (0,), UNKNOWN_MEMBER_ID),
        ("", -2, (0,), UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_commit_in_a_transaction_for_a_consumer_group(
    member: str, epoch: int, partitions: tuple[int, ...], error: ErrorCode
) -> None:
    scene = Scene({"t": 2})  # a had t-0 and t-1 since epoch 2 and is at epoch 3 with t-0
    scene.join("a", "t")
    scene.join("b", "t")
    scene.beat("a", 2, owned={"t": [0, 1]})
    scene.beat("a", 2, owned={"t": [0]})
    scene.beat("b", 3)
    asked = request(*partitions, member=member, generation=epoch)
    assert scene.group.check_transactional_commit(asked) is error
    scene.beat("a", -1)
    scene.beat("b", -1)
    assert scene.group.check_transactional_commit(request(0, member="x")) is NONE, "nobody is there to be disturbed"


# -- what is shown


def test_an_offset_is_unstable_until_its_transaction_has_ended() -> None:
    shard = Shard()
    shard.plain(5)
    shard.plain(6, partition=1)
    shard.commit(0, 2)
    assert shard.shown(0, 1, 2, 3) == [5, 6, -1, -1]
    assert shard.shown(0, 1, 2, 3, stable=True) == [UNSTABLE_OFFSET_COMMIT, 6, UNSTABLE_OFFSET_COMMIT, -1]
    assert shard.shown(stable=True) == [UNSTABLE_OFFSET_COMMIT, 6], "of all, those that are committed"
    shard.end_transaction(committed=True)
    assert shard.shown(0, 1, 2, 3, stable=True) == [10, 6, 10, -1]


def test_an_offset_that_was_overtaken_is_unstable_all_the_same() -> None:
    shard = Shard()
    shard.commit(0)
    shard.plain(12)
    assert shard.shown(0, stable=True) == [UNSTABLE_OFFSET_COMMIT]
    shard.end_transaction(committed=False)
    assert shard.shown(0, stable=True) == [12]


# -- what may not go, and what goes along


def test_nothing_expires_that_a_transaction_may_change() -> None:
    shard = Shard()
    shard.plain(5)
    shard.commit(0)
    assert shard.expire() == []
    shard.end_transaction(committed=False)
    assert [record.value for record in shard.expire()] == [None, None]
    assert shard.shard.table.groups == {}


def test_a_group_of_which_everything_is_pending_stays() -> None:
    shard = Shard()
    shard.commit(0)
    assert shard.expire() == []
    assert list(shard.shard.table.groups) == [GROUP]


@pytest.mark.parametrize("known_before", [False, True])
@pytest.mark.parametrize("how", ["group", "offset", "topic"])
def test_what_is_removed_takes_along_what_is_pending(how: str, known_before: bool) -> None:
    shard = Shard()
    if known_before:
        shard.plain(5)
    shard.commit(0)
    if how == "group":
        shard.carry_out(shard.shard.decide_delete(GROUP, NOW))
    elif how == "offset":
        made = OffsetDeleteRequest
        topic = made.OffsetDeleteRequestTopic(
            name="t", partitions=[made.OffsetDeleteRequestPartition(partition_index=0)]
        )
        shard.carry_out(shard.shard.decide(made(group_id=GROUP, topics=[topic]), CALLER, NOW))
    else:
        shard.image.apply(RemoveTopicRecord(topic_id=TOPIC_ID), Offset(2), Epoch(0))
        for decision in shard.shard.image_changed(shard.image, shard.image.take_delta(), NOW):
            shard.carry_out(decision)
    assert not shard.shard.pending
    shard.end_transaction(committed=True)
    assert shard.shard.table.offsets == {}


def test_what_is_pending_for_a_later_topic_of_the_same_name_stays() -> None:
    shard = Shard()
    shard.plain(5)
    later = Uuid(b"\2" * 16)
    shard.image.apply(RemoveTopicRecord(topic_id=TOPIC_ID), Offset(2), Epoch(0))
    shard.image.apply(TopicRecord(name="t", topic_id=later), Offset(3), Epoch(0))
    shard.commit(0, at=7)
    for decision in shard.shard.image_changed(shard.image, shard.image.take_delta(), NOW):
        shard.carry_out(decision)
    shard.end_transaction(committed=True)
    assert shard.shown(0) == [7]


# -- the later written wins


PRODUCERS, PARTITIONS = (7, 8), (0, 1)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("plain"), st.sampled_from(PARTITIONS)),
        st.tuples(st.just("tombstone"), st.sampled_from(PARTITIONS)),
        st.tuples(st.just("pending"), st.sampled_from(PRODUCERS), st.sampled_from(PARTITIONS)),
        st.tuples(st.just("marker"), st.sampled_from(PRODUCERS), st.booleans()),
    ),
    max_size=30,
)


@settings(max_examples=examples(200), deadline=None)
@given(STEPS)
def test_committed_offsets_are_those_of_the_latest_records_that_count(steps: list[tuple[Any, ...]]) -> None:
    shard = GroupShard(GroupSettings.fixed(), ClusterImage(), new_id=lambda: "id")
    in_force: dict[int, int] = {}  # partition -> where its record lies, which is its offset too
    pending: dict[int, dict[int, int]] = {}
    for at, (what, *who) in enumerate(steps):
        record = offset_record(GROUP, "t", who[-1] if what != "marker" else 0, CommittedOffset(at, -1, "", 1))
        if what == "plain":
            shard.apply(record, Offset(at))
            in_force[who[0]] = at
        elif what == "tombstone":
            shard.apply(offset_tombstone(GROUP, "t", who[0]), Offset(at))
            in_force.pop(who[0], None)
            for places in pending.values():
                places.pop(who[0], None)
        elif what == "pending":
            shard.apply_pending(who[0], record, Offset(at))
            pending.setdefault(who[0], {})[who[1]] = at
        else:
            shard.on_marker(who[0], committed=who[1])
            for partition, written_at in pending.pop(who[0], {}).items():
                if who[1] and written_at > in_force.get(partition, -1):
                    in_force[partition] = written_at
        held = {index: each.offset for (_, index), each in shard.table.offsets.get(GROUP, {}).items()}
        assert held == in_force
        opened = {partition for places in pending.values() for partition in places}
        assert {index for index in PARTITIONS if shard.pending.is_open(GROUP, "t", index)} == opened
        assert {index for _, index in shard.pending.of_group(GROUP)} == opened
        assert bool(shard.pending) is bool(opened)
