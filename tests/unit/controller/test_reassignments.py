"""Partitions that move: begun, replaced, called back, finished; and what each of them is refused for."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.controller.decision import Decision
from penstock.metadata.entities import RECOVERING, PartitionImage
from penstock.metadata.snapshot import image_of, snapshot_records
from penstock.model.errors import (
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    NEW_LEADER_ELECTED,
    NO_REASSIGNMENT_IN_PROGRESS,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
)
from penstock.model.ids import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED
from penstock.protocol.disk.metadata_features import FeatureLevelRecord
from penstock.protocol.messages.alter_partition import AlterPartitionRequest
from penstock.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from penstock.protocol.messages.create_partitions import CreatePartitionsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from penstock.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.unit.controller.desk import Desk, assigned, creation, uuid_of

Request = AlterPartitionReassignmentsRequest


def cluster(brokers: int = 5, replicas: list[int] | None = None, **properties: str) -> Desk:
    """A topic `t` with one partition on brokers 1, 2, 3."""
    desk = Desk(**properties)
    desk.join(*range(1, brokers + 1))
    desk.ask(creation(assigned("t", {0: replicas or [1, 2, 3]})))
    return desk


def the(desk: Desk, topic: str = "t", index: int = 0) -> PartitionImage:
    found = desk.image.partition(desk.image.ids[topic], index)
    assert found is not None
    return found


def wanted(replicas: list[int] | None, topic: str = "t", index: int = 0) -> Request.ReassignableTopic:
    return Request.ReassignableTopic(
        name=topic, partitions=[Request.ReassignablePartition(partition_index=index, replicas=replicas)]
    )


def move(desk: Desk, replicas: list[int] | None, **said: Any) -> int:
    """Asks for a move of t-0, or calls it back; the error."""
    reply = desk.ask(Request(topics=[wanted(replicas)], **said))
    assert reply.error_code == 0
    result = reply.responses[0].partitions[0]
    assert (result.error_message is None) == (result.error_code == 0)
    code: int = result.error_code
    return code


def sync(desk: Desk, *isr: int) -> int:
    """The leader of t-0 reports who is in sync; the error."""
    at, made = the(desk), AlterPartitionRequest
    data = made.PartitionData(
        leader_epoch=at.leader_epoch,
        partition_epoch=at.partition_epoch,
        new_isr_with_epochs=[made.BrokerState(broker_id=each, broker_epoch=-1) for each in isr],
    )
    reply = desk.ask(
        made(
            broker_id=at.leader,
            broker_epoch=desk.image.brokers[at.leader].epoch,
            topics=[made.TopicData(topic_id=desk.image.ids["t"], partitions=[data])],
        )
    )
    code: int = reply.topics[0].partitions[0].error_code
    return code


def listed(desk: Desk, **named: list[int]) -> list[tuple[str, int, list[int], list[int], list[int]]]:
    request = ListPartitionReassignmentsRequest
    topics = [request.ListPartitionReassignmentsTopics(name=name, partition_indexes=at) for name, at in named.items()]
    reply = desk.ask(request(topics=topics or None))
    return [
        (topic.name, each.partition_index, each.replicas, each.adding_replicas, each.removing_replicas)
        for topic in reply.topics
        for each in topic.partitions
    ]


def test_a_move_begins_with_old_and_new_replicas_together() -> None:
    desk = cluster()
    assert move(desk, [4, 5, 3]) == 0
    at = the(desk)
    assert (at.replicas, at.adding, at.removing) == ((4, 5, 3, 1, 2), (4, 5), (1, 2))
    assert (at.leader, at.isr, at.leader_epoch, at.partition_epoch) == (1, (1, 2, 3), 0, 1)
    assert at.directories == tuple(uuid_of(5_000 + each) for each in (4, 5, 3, 1, 2))


def test_and_ends_when_all_who_stay_are_in_sync() -> None:
    desk = cluster()
    move(desk, [3, 4])
    assert sync(desk, 1, 3) == 0
    assert the(desk).reassigning
    assert sync(desk, 1, 3, 4) == NEW_LEADER_ELECTED.code
    at = the(desk)
    assert (at.replicas, at.isr, at.leader, at.adding, at.removing) == ((3, 4), (3, 4), 3, (), ())
    assert at.leader_epoch == 1


def test_a_leader_that_stays_learns_of_the_end_by_its_epoch() -> None:
    desk = cluster()
    move(desk, [1, 2, 4])
    assert sync(desk, 1, 2, 3, 4) == 0
    at = the(desk)
    assert (at.replicas, at.leader, at.leader_epoch, at.isr) == ((1, 2, 4), 1, 1, (1, 2, 4))


def test_another_order_is_done_at_once() -> None:
    desk = cluster()
    assert move(desk, [3, 2, 1]) == 0
    assert (the(desk).replicas, the(desk).reassigning, the(desk).leader_epoch) == ((3, 2, 1), False, 0)
    before = len(desk.log)
    assert move(desk, [3, 2, 1]) == 0
    assert len(desk.log) == before


def test_fewer_replicas_are_done_at_once_and_nobody_stays_eligible() -> None:
    desk = cluster(min_insync_replicas="2")
    assert move(desk, [2]) == 0
    at = the(desk)
    assert (at.replicas, at.isr, at.elr, at.leader, at.leader_epoch) == ((2,), (2,), (), 2, 1)


def test_a_replica_that_stays_and_is_not_in_sync_holds_the_end_back() -> None:
    desk = cluster()
    sync(desk, 1, 2)
    move(desk, [2, 3])
    assert (the(desk).replicas, the(desk).removing) == ((2, 3, 1), (1,))
    assert sync(desk, 1, 2, 3) == NEW_LEADER_ELECTED.code
    assert the(desk).replicas == (2, 3)


def test_a_move_is_called_back() -> None:
    desk = cluster()
    move(desk, [4, 5, 3])
    sync(desk, 1, 2, 3, 4)
    assert move(desk, None) == 0
    at = the(desk)
    assert (sorted(at.replicas), sorted(at.isr), at.adding, at.removing) == ([1, 2, 3], [1, 2, 3], (), ())
    assert (at.leader, at.leader_epoch) == (1, 1)
    assert move(desk, None) == NO_REASSIGNMENT_IN_PROGRESS.code


def test_after_several_moves_it_is_called_back_to_where_it_was() -> None:
    desk = cluster()
    move(desk, [4, 2, 3])
    move(desk, [5, 2, 3])
    at = the(desk)
    assert (at.replicas, at.adding, at.removing) == ((5, 2, 3, 1, 4), (4, 5), (1, 4))
    move(desk, [4, 5])
    assert move(desk, None) == 0
    assert sorted(the(desk).replicas) == [1, 2, 3]


def test_a_replaced_move_ends_where_the_last_one_goes() -> None:
    desk = cluster()
    move(desk, [4, 2, 3])
    move(desk, [5, 2, 3])
    sync(desk, 1, 2, 3, 5)
    assert (sorted(the(desk).replicas), the(desk).reassigning) == ([2, 3, 5], False)


def test_going_back_is_a_move_too() -> None:
    desk = cluster()
    move(desk, [4, 5])
    assert move(desk, [1, 2, 3]) == 0
    assert (the(desk).replicas, the(desk).reassigning) == ((1, 2, 3), False)


def test_a_leader_that_was_added_gives_way_when_the_move_is_called_back() -> None:
    desk = cluster()
    move(desk, [4, 5])
    sync(desk, 1, 2, 4)
    for broker in (1, 2):
        desk.heartbeat(broker, want_fence=True)
    assert the(desk).leader == 4
    assert move(desk, None) == INVALID_REPLICA_ASSIGNMENT.code
    desk.heartbeat(2)
    sync(desk, 4, 2)
    assert move(desk, None) == 0
    assert (the(desk).leader, the(desk).isr, sorted(the(desk).replicas)) == (2, (2,), [1, 2, 3])


def test_what_only_added_replicas_have_is_not_given_up_unless_that_is_allowed() -> None:
    desk = cluster(unclean_leader_election_enable="true")
    move(desk, [4, 5])
    sync(desk, 1, 4)
    desk.heartbeat(1, want_fence=True)
    assert the(desk).isr == (4,)
    assert move(desk, None) == 0
    at = the(desk)
    assert (at.leader, at.isr, at.leader_recovery_state) == (2, (2,), RECOVERING)


def test_eligible_replicas_that_were_added_count_as_well() -> None:
    desk = cluster(min_insync_replicas="2")
    move(desk, [4, 5])
    sync(desk, 1, 2, 4)
    sync(desk, 1, 4)
    for broker in (1, 4):
        desk.heartbeat(broker, want_fence=True)
    assert (the(desk).isr, the(desk).elr) == ((), (1, 4))
    assert move(desk, None) == 0
    assert the(desk).elr == (1,)


@pytest.mark.parametrize(
    ("replicas", "said", "error"),
    [
        ([], {}, INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], {}, INVALID_REPLICA_ASSIGNMENT),
        ([1, 9], {}, INVALID_REPLICA_ASSIGNMENT),
        ([1, 2], {"allow_replication_factor_change": False}, INVALID_REPLICATION_FACTOR),
        (None, {}, NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_a_move_that_cannot_be_is_refused(replicas: list[int] | None, said: dict[str, bool], error: ErrorCode) -> None:
    desk = cluster()
    before = len(desk.log)
    assert move(desk, replicas, **said) == error.code
    assert len(desk.log) == before


def test_the_factor_that_must_not_change_is_the_one_a_move_leads_to() -> None:
    desk = cluster()
    move(desk, [4, 5])
    assert move(desk, [1, 4, 5], allow_replication_factor_change=False) == INVALID_REPLICATION_FACTOR.code
    assert move(desk, [1, 4], allow_replication_factor_change=False) == 0


def test_partitions_are_refused_one_by_one() -> None:
    desk = cluster()
    request = Request(topics=[wanted([4], "none"), wanted([4], index=7), wanted([4]), wanted([5])])
    codes = [each.error_code for topic in desk.ask(request).responses for each in topic.partitions]
    unknown = UNKNOWN_TOPIC_OR_PARTITION.code
    assert codes == [unknown, unknown, 0, INVALID_REQUEST.code]
    assert the(desk).adding == (4,)


def test_moves_under_way_are_listed_all_or_by_name() -> None:
    desk = cluster()
    desk.ask(creation(assigned("u", {0: [1], 1: [1]})))
    assert listed(desk) == []
    move(desk, [4, 2, 3])
    desk.ask(Request(topics=[wanted([2], "u", 1)]))
    here = [("t", 0, [4, 2, 3, 1], [4], [1])]
    there = [("u", 1, [2, 1], [2], [1])]
    assert listed(desk) == here + there
    assert listed(desk, t=[0, 0, 5], none=[0]) == here
    assert listed(desk, u=[0]) == []
    assert listed(desk, u=[0, 1]) == there


def test_a_topic_is_deleted_while_it_moves() -> None:
    desk = cluster()
    move(desk, [4, 5])
    desk.ask(DeleteTopicsRequest(topic_names=["t"]))
    assert listed(desk) == []
    assert desk.controller.decide_preferred_leaders().records == []


def test_new_partitions_of_a_topic_that_moves_are_as_many_as_they_will_be() -> None:
    desk = cluster()
    move(desk, [4, 5])
    grown = CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=2, assignments=None)
    assert desk.ask(CreatePartitionsRequest(topics=[grown])).results[0].error_code == 0
    assert len(the(desk, index=1).replicas) == 2


def test_a_broker_that_has_several_directories_chooses_for_itself() -> None:
    desk = cluster(3)
    desk.register(4, log_dirs=[uuid_of(6_000), uuid_of(6_001)])
    desk.heartbeat(4)
    move(desk, [4])
    assert the(desk).directory_of(4) == DIRECTORY_UNASSIGNED


def test_a_move_survives_a_snapshot() -> None:
    desk = cluster()
    move(desk, [4, 2, 3])
    again = image_of((record for record, _ in snapshot_records(desk.image)), desk.image.offset, desk.image.epoch)
    assert again == desk.image
    assert again.partition(desk.image.ids["t"], 0) == the(desk)


def test_an_old_metadata_version_has_no_place_for_directories() -> None:
    desk = Desk()
    desk.do(Decision([(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0), 0)]))
    desk.do(Decision([(FeatureLevelRecord(name="metadata.version", feature_level=7), 0)]))
    desk.join(1, 2, 3)
    desk.ask(creation(assigned("t", {0: [1, 2]})))
    assert move(desk, [2, 3]) == 0
    assert the(desk).directories == (DIRECTORY_MIGRATING,) * 3
    assert sync(desk, 1, 2, 3) == NEW_LEADER_ELECTED.code
    assert (the(desk).replicas, the(desk).directories) == ((2, 3), (DIRECTORY_MIGRATING,) * 2)


def test_an_unclean_leader_may_be_all_that_a_move_waited_for() -> None:
    desk = cluster(unclean_leader_election_enable="true")
    move(desk, [4])
    for broker in (1, 2, 3):
        desk.heartbeat(broker, want_fence=True)
    at = the(desk)
    assert (at.leader, at.isr, at.replicas, at.reassigning) == (4, (4,), (4,), False)


def test_a_broker_is_decommissioned_by_moving_everything_away() -> None:
    desk = cluster(3)
    desk.join(4)
    assert move(desk, [4, 2, 3]) == 0
    assert sync(desk, 1, 2, 3, 4) == NEW_LEADER_ELECTED.code
    before = the(desk)
    assert desk.ask(UnregisterBrokerRequest(broker_id=1)).error_code == 0
    assert the(desk) == before
    assert 1 not in desk.image.brokers
