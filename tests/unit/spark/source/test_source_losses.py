"""What became of partitions since the last batch."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.ids import TopicPartition
from penstock.spark.errors import DataLost, TopicLost
from penstock.spark.offsets import EARLIEST, LATEST, StreamOffset
from penstock.spark.source.losses import Seen, Standing, stand, tell, wanting_starts
from tests.properties import examples

T0, T1, T2, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 2), TopicPartition("u", 0)
SEEN = Seen(ids={"t": "A"}, ends={T0: 100, T1: 50})


def standing(start: StreamOffset, seen: Seen, log_starts: dict[TopicPartition, int] | None = None) -> Standing:
    wanting = wanting_starts(start, seen)
    return stand(start, seen, {tp: (log_starts or {}).get(tp, 0) for tp in wanting})


def test_a_batch_begins_where_the_one_before_ended() -> None:
    found = standing(StreamOffset({T0: 90, T1: 50}, ids={"t": "A"}), SEEN)
    assert found == Standing({T0: 90, T1: 50}, frozenset(), (), frozenset())


def test_wishes_are_resolved_and_written_down() -> None:
    found = standing(StreamOffset({T0: LATEST, T1: EARLIEST}), SEEN, {T1: 20})
    assert found == Standing({T0: 100, T1: 20}, frozenset({T0, T1}), (), frozenset())


def test_a_new_partition_begins_at_its_first_record() -> None:
    found = standing(StreamOffset({T0: 90}, ids={"t": "A"}), SEEN)
    assert found == Standing({T0: 90, T1: 0}, frozenset({T1}), (), frozenset())


def test_a_new_partition_whose_first_records_are_gone_is_a_loss() -> None:
    found = standing(StreamOffset({T0: 90}, ids={"t": "A"}), SEEN, {T1: 7})
    assert found.begins[T1] == 7
    assert found.losses == ("the new partition t-1 begins at 7, not 0: its first records are gone",)


def test_a_deleted_topic_is_a_loss_and_no_longer_read() -> None:
    found = standing(StreamOffset({T0: 90, T1: 50, U0: 5}, ids={"t": "A", "u": "B"}), SEEN)
    assert found.gone == {U0}
    assert found.begins.keys() == {T0, T1}
    assert found.losses == ("topic 'u' is gone (deleted, or no longer matched)",)


def test_a_partition_that_is_gone_is_a_loss() -> None:
    found = standing(StreamOffset({T0: 90, T1: 50, T2: 5}, ids={"t": "A"}), SEEN)
    assert found.losses == ("partition t-2 is gone",)


def test_a_log_that_ends_before_where_we_were_is_a_loss_and_read_on_from_its_end() -> None:
    found = standing(StreamOffset({T0: 130, T1: 50}, ids={"t": "A"}), SEEN)
    assert found.begins == {T0: 100, T1: 50}
    assert found.resolved == {T0}
    assert found.losses == ("t-0 ends at 100, but was to be read from 130: records were cut off",)
    assert not found.topic_lost


@pytest.mark.parametrize("before", [10, 90, 100, 5000])
def test_a_topic_made_anew_is_read_from_its_start_even_when_it_has_grown_past_us(before: int) -> None:
    found = standing(StreamOffset({T0: before, T1: 50}, ids={"t": "OLD"}), SEEN, {T0: 3})
    assert found.begins == {T0: 3, T1: 0}
    assert found.resolved == {T0, T1}
    assert found.losses == (
        "topic 't' was deleted and created anew (its id was OLD, now it is A): what had not been read of the old one "
        "is gone",
    )
    assert found.topic_lost


def test_without_an_id_a_topic_is_taken_for_the_same() -> None:
    # The JVM connector's checkpoints have no ids.
    assert standing(StreamOffset({T0: 90, T1: 50}), SEEN).losses == ()


def test_losses_end_the_query_unless_the_user_chose_to_go_on(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataLost, match=r"partition t-2 is gone\. To go on .* failOnDataLoss=false"):
        tell(["partition t-2 is gone"], fail=True)
    with caplog.at_level(logging.WARNING):
        tell(["partition t-2 is gone"], fail=False)
    assert "partition t-2 is gone" in caplog.text
    tell([], fail=True)
    tell([], fail=True, topic_lost=True)
    with pytest.raises(TopicLost):
        tell(["topic 't' is gone"], fail=True, topic_lost=True)


OFFSETS = st.integers(-2, 200)
PARTITIONS = st.builds(TopicPartition, st.sampled_from("tu"), st.integers(0, 4))


@settings(deadline=None, max_examples=examples(60))
@given(
    st.dictionaries(PARTITIONS, OFFSETS),
    st.dictionaries(PARTITIONS, st.integers(0, 200)),
    st.dictionaries(PARTITIONS, st.integers(0, 200)),
    st.sampled_from(["A", "B", ""]),
)
def test_every_partition_that_is_there_begins_inside_its_log(
    before: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
    log_starts: dict[TopicPartition, int],
    was: str,
) -> None:
    seen = Seen(ids={tp.topic: "A" for tp in ends}, ends=ends)
    found = standing(StreamOffset(before, ids={"t": was} if was else {}), seen, log_starts)
    assert found.begins.keys() == ends.keys()
    assert all(0 <= begin <= ends[tp] for tp, begin in found.begins.items())
    # Whatever is not written down is where the batch before ended: a replay needs nothing else.
    assert all(before[tp] == found.begins[tp] for tp in ends.keys() - found.resolved)


def test_what_goes_between_two_questions_was_never_seen() -> None:
    assert SEEN.without({T1}) == replace(SEEN, ends={T0: 100})
    assert SEEN.without(set()) is SEEN
