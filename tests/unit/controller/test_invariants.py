"""A record that should never have been decided is noticed when it is applied."""

from __future__ import annotations

import pytest

from penstock.metadata.records import Record
from penstock.model.ids import Epoch, Offset
from penstock.protocol.disk.metadata_topics import PartitionChangeRecord
from tests.unit.controller.desk import Desk, assigned, creation


def made() -> Desk:
    """One partition on brokers 1, 2 and 3, led by 1."""
    desk = Desk()
    desk.join(1, 2, 3, 4)
    desk.ask(creation(assigned("t", {0: [1, 2, 3]})))
    return desk


def told(desk: Desk, record: Record) -> None:
    desk.controller.apply(record, Offset(desk.image.offset + 1), Epoch(1))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"isr": [1, 2, 4]}, "who is in sync is a replica"),
        ({"isr": [2, 3]}, "a leader is in sync"),
        ({"leader": 3, "isr": [1, 2]}, "a leader is in sync"),
        ({"eligible_leader_replicas": [2]}, "who is eligible is not in sync"),
        ({"isr": [1, 2, 3], "eligible_leader_replicas": [4]}, "who is eligible is a replica"),
        ({"replicas": [1, 2], "directories": [bytes(16)], "isr": [1, 2]}, "every replica lies in a directory"),
    ],
)
def test_a_partition_that_cannot_be_is_our_own_mistake(change: dict[str, object], words: str) -> None:
    desk = made()
    record = PartitionChangeRecord(partition_id=0, topic_id=desk.image.ids["t"], **change)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match=words):
        told(desk, record)


def test_an_epoch_that_does_not_rise_is_noticed() -> None:
    desk = made()
    key = (desk.image.ids["t"], 0)
    partition = desk.image.topics[key[0]].partitions[0]
    index = desk.controller._world.index
    index.see(key, partition)
    with pytest.raises(AssertionError, match="a change raises the partition epoch"):
        index.see(key, partition._replace(isr=(1, 2)))
    with pytest.raises(AssertionError, match="an epoch has one leader"):
        index.see(key, partition._replace(leader=2, partition_epoch=partition.partition_epoch + 1))


def test_a_record_that_comes_twice_is_noticed() -> None:
    desk = made()
    record = PartitionChangeRecord(partition_id=0, topic_id=desk.image.ids["t"], isr=[1, 2])
    offset = Offset(desk.image.offset + 1)
    desk.controller.apply(record, offset, Epoch(1))
    with pytest.raises(AssertionError, match="in the order of the log"):
        desk.controller.apply(record, offset, Epoch(1))
