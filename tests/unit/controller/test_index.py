"""The index follows the working image, however records come."""

from __future__ import annotations

from penstock.controller.decision import Decision
from penstock.controller.index import Key, PartitionIndex
from penstock.metadata.entities import NO_LEADER
from penstock.protocol.disk.metadata_topics import ClearElrRecord, PartitionChangeRecord
from penstock.protocol.disk.metadata_transactions import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.unit.controller.desk import Desk, assigned, creation


def made() -> tuple[Desk, PartitionIndex]:
    """Two partitions on brokers 1 and 2, both led by 1, where two must be in sync."""
    desk = Desk(min_insync_replicas="2")
    desk.join(1, 2)
    desk.ask(creation(assigned("t", {0: [1, 2], 1: [1, 2]})))
    return desk, desk.controller._world.index


def tables(index: PartitionIndex) -> list[object]:
    return [getattr(index, name) for name in PartitionIndex.__slots__]


def check(desk: Desk, index: PartitionIndex) -> None:
    assert tables(index) == tables(PartitionIndex(desk.image))


def keys(desk: Desk) -> list[Key]:
    return [(desk.image.ids["t"], 0), (desk.image.ids["t"], 1)]


def test_who_leads_who_is_in_sync_and_who_holds_what() -> None:
    desk, index = made()
    assert (index.leads(1), index.leads(2), index.leads(NO_LEADER)) == (True, False, False)
    assert list(index.in_sync(2)) == keys(desk)
    assert (index.holds, index.preferred) == ({1: 2, 2: 2}, {1: 2})
    check(desk, index)


def test_who_left_is_found_among_the_eligible() -> None:
    desk, index = made()
    desk.heartbeat(1, want_fence=True)
    assert (index.leads(1), index.leads(2), list(index.in_sync(1))) == (False, True, [])
    assert list(index.in_sync_or_eligible(1)) == list(index.with_eligible()) == list(index.moved()) == keys(desk)
    desk.heartbeat(2, want_fence=True)
    assert list(index.leaderless()) == keys(desk)
    desk.do(Decision([(ClearElrRecord(topic_name="t"), 0)]))
    assert list(index.with_eligible()) == []
    check(desk, index)


def test_a_transaction_counts_when_it_ends_and_never_when_it_is_aborted() -> None:
    desk, index = made()
    change = PartitionChangeRecord(topic_id=desk.image.ids["t"], partition_id=0, leader=2)
    desk.do(Decision([(BeginTransactionRecord(), 0), (change, 2)]))
    assert not index.leads(2)
    desk.do(Decision([(AbortTransactionRecord(), 0)]))
    assert not index.leads(2)
    desk.do(Decision([(BeginTransactionRecord(), 0), (change, 2), (EndTransactionRecord(), 0)]))
    assert index.leads(2)
    check(desk, index)


def test_a_deleted_topic_leaves_nothing_behind() -> None:
    desk, index = made()
    desk.ask(DeleteTopicsRequest(topic_names=["t"]))
    assert tables(index) == tables(PartitionIndex(Desk().image))
