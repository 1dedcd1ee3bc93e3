"""Offsets that were committed in transactions: what counts when a transaction ends, and what does not."""

from __future__ import annotations

from penstock.coordinators.decision import StateRecord
from penstock.coordinators.groups.records import offset_record, offset_tombstone
from penstock.coordinators.groups.settings import GroupSettings
from penstock.coordinators.groups.shard import GroupShard
from penstock.coordinators.groups.table import CommittedOffset
from penstock.metadata.image import ClusterImage
from penstock.model.ids import Offset


def shard() -> GroupShard:
    return GroupShard(GroupSettings.fixed(), ClusterImage(), new_id=lambda: "id")


def offset(number: int, partition: int = 0, group: str = "g") -> StateRecord:
    return offset_record(group, "t", partition, CommittedOffset(number, -1, "", 1))


def committed(groups: GroupShard, group: str = "g") -> dict[int, int]:
    held = groups.table.offsets.get(group, {})
    return {partition: each.offset for (_, partition), each in sorted(held.items())}


def test_an_offset_of_a_transaction_counts_when_the_transaction_is_committed() -> None:
    groups = shard()
    groups.apply(offset(5), Offset(0))
    groups.apply_pending(9, offset(10), Offset(1))
    groups.apply_pending(9, offset(20, partition=1), Offset(2))
    assert committed(groups) == {0: 5}
    assert groups.pending.is_open("g", "t", 1)
    groups.on_marker(9, committed=True)
    assert committed(groups) == {0: 10, 1: 20}
    assert not groups.pending


def test_an_offset_of_a_transaction_that_is_aborted_never_counts() -> None:
    groups = shard()
    groups.apply(offset(5), Offset(0))
    groups.apply_pending(9, offset(10), Offset(1))
    groups.on_marker(9, committed=False)
    groups.on_marker(9, committed=True)
    assert committed(groups) == {0: 5}


def test_the_later_written_wins_and_not_the_later_committed() -> None:
    groups = shard()
    groups.apply_pending(9, offset(10), Offset(100))
    groups.apply(offset(12), Offset(105))
    assert groups.pending.is_open("g", "t", 0), "the transaction has not ended yet, whatever comes of it"
    groups.on_marker(9, committed=True)
    assert committed(groups) == {0: 12}


def test_of_two_transactions_the_later_written_wins_in_whichever_order_they_end() -> None:
    for first, second in ((7, 8), (8, 7)):
        groups = shard()
        groups.apply_pending(7, offset(70), Offset(1))
        groups.apply_pending(8, offset(80), Offset(2))
        groups.on_marker(first, committed=True)
        groups.on_marker(second, committed=True)
        assert committed(groups) == {0: 80}


def test_an_aborted_transaction_takes_nothing_from_one_that_was_written_before_it() -> None:
    groups = shard()
    groups.apply_pending(7, offset(70), Offset(1))
    groups.apply_pending(8, offset(80), Offset(2))
    groups.on_marker(8, committed=False)
    groups.on_marker(7, committed=True)
    assert committed(groups) == {0: 70}


def test_what_is_removed_is_not_brought_back_by_a_transaction_of_before() -> None:
    groups = shard()
    groups.apply_pending(9, offset(10), Offset(1))
    groups.apply(offset_tombstone("g", "t", 0), Offset(2))
    assert not groups.pending
    groups.on_marker(9, committed=True)
    assert committed(groups) == {}


def test_a_marker_ends_what_the_producer_did_in_all_groups() -> None:
    groups = shard()
    groups.apply_pending(9, offset(1), Offset(1))
    groups.apply_pending(9, offset(2, group="h"), Offset(2))
    groups.on_marker(9, committed=True)
    assert (committed(groups), committed(groups, "h")) == ({0: 1}, {0: 2})
    assert len(groups.pending) == 0
