"""What a new leader means for a position."""

from __future__ import annotations

from penstock.client.consumer.partition import AssignedPartition, Phase
from tests.unit.client.consumer.made import TP, batch, opened

ID, OTHER_ID = b"1" * 16, b"2" * 16


def read_partition() -> AssignedPartition:
    """Read up to offset 2 at epoch 3."""
    made = AssignedPartition(TP)
    made.led_anew(ID, 3)
    made.place(0)
    made.put(opened(batch(0, 2, epoch=3), batch(2, 2, epoch=3)))
    made.take(2, [])
    return made


def test_a_new_epoch_throws_away_what_was_fetched_and_asks_whether_the_position_holds() -> None:
    partition = read_partition()
    partition.led_anew(ID, 4)
    assert (partition.phase, partition.fetch_offset, partition.batches) == (
        Phase.VALIDATING,
        2,
        type(partition.batches)(),
    )


def test_old_news_about_leaders_change_nothing() -> None:
    partition = read_partition()
    partition.led_anew(ID, 3)
    partition.led_anew(ID, 2)
    assert (partition.phase, partition.fetch_offset) == (Phase.READY, 4)


def test_without_a_record_read_there_is_nothing_to_ask() -> None:
    partition = AssignedPartition(TP)
    partition.led_anew(ID, 3)
    partition.place(0)
    partition.led_anew(ID, 4)
    assert partition.phase is Phase.READY


def test_epochs_of_a_topic_made_anew_count_from_the_beginning() -> None:
    partition = read_partition()
    partition.led_anew(OTHER_ID, 0)
    assert (partition.topic_id, partition.leader_epoch) == (OTHER_ID, 0)


def test_nothing_that_was_fetched_of_a_former_topic_is_given_once_the_new_one_is_known() -> None:
    partition = read_partition()
    fetched_as = partition.version
    partition.led_anew(OTHER_ID, 0)
    assert (len(partition.batches), partition.fetch_offset, partition.position) == (0, 2, 2)
    assert partition.version > fetched_as, "an answer under way is of no use either"
    assert partition.position_epoch == -1, "it was an epoch of the former topic"


def test_a_committed_offset_with_its_epoch_is_checked_first() -> None:
    partition = AssignedPartition(TP)
    partition.place(7, 2)
    assert (partition.phase, partition.position) == (Phase.VALIDATING, 7)
