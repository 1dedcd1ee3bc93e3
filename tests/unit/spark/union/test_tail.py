"""Where the log goes on after a table."""

from __future__ import annotations

import pytest

from penstock.client.spans import Span
from penstock.model.ids import TopicPartition
from penstock.spark.errors import DataLost
from penstock.spark.lake.ranges import RangeKey
from penstock.spark.source.losses import Seen
from penstock.spark.union.tail import Standing, check_same_topics, never_fed, plan_tail

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
TABLE = Standing("the table", {RangeKey("id-a", 0): 10})
SEEN = Seen(ids={"a": "id-a"}, ends={A0: 15, A1: 4})
STARTS = {A0: 0, A1: 0}


def test_the_tail_begins_where_the_table_ends() -> None:
    assert plan_tail(TABLE, SEEN, STARTS, {}) == [Span("a", "id-a", 0, 10, 15), Span("a", "id-a", 1, 0, 4)]


def test_a_partition_that_the_table_has_to_its_end_has_no_tail() -> None:
    assert plan_tail(TABLE, Seen({"a": "id-a"}, {A0: 10}), STARTS, {}) == []


def test_a_table_that_was_fed_without_ids_knows_names() -> None:
    assert plan_tail(Standing("t", {RangeKey("a", 0): 12}), Seen({"a": "id-a"}, {A0: 15}), STARTS, {}) == [
        Span("a", "id-a", 0, 12, 15)
    ]


def test_partitions_that_the_table_never_had_begin_where_the_feed_says() -> None:
    assert never_fed(TABLE, SEEN, STARTS) == [A1]
    assert never_fed(TABLE, SEEN, {A0: 0, A1: 4}) == []
    assert plan_tail(TABLE, SEEN, STARTS, {A1: 3})[1] == Span("a", "id-a", 1, 3, 4)


def test_a_log_that_begins_after_the_table_is_a_loss() -> None:
    with pytest.raises(DataLost, match="a-0 begins at 12, but the table has it only up to 10: 2 offsets"):
        plan_tail(TABLE, SEEN, {A0: 12, A1: 0}, {})


def test_a_log_that_begins_where_the_table_ends_is_none() -> None:
    assert plan_tail(TABLE, Seen({"a": "id-a"}, {A0: 15}), {A0: 10}, {}) == [Span("a", "id-a", 0, 10, 15)]


def test_a_log_that_ends_before_the_table_is_a_loss() -> None:
    with pytest.raises(DataLost, match="a-0 ends at 9, but the table has it up to 10"):
        plan_tail(TABLE, Seen({"a": "id-a"}, {A0: 9}), STARTS, {})


def test_a_table_behind_an_open_transaction_has_no_tail_and_lost_nothing() -> None:
    # It was fed by reading everything; what is committed ends at 9, the log at 12.
    held = Seen({"a": "id-a"}, {A0: 9})
    assert plan_tail(TABLE, held.reaching(TABLE.places(held), {A0: 12}), STARTS, {}) == []
    with pytest.raises(DataLost, match="a-0 ends at 9"):
        plan_tail(TABLE, held.reaching(TABLE.places(held), {A0: 9}), STARTS, {})


def test_a_topic_made_anew_is_not_the_one_in_the_table() -> None:
    with pytest.raises(DataLost, match="'a' was deleted and created anew"):
        check_same_topics(TABLE, {"a": "id-new"}, {"a": {"id-a"}})
    check_same_topics(TABLE, {"a": "id-a"}, {"a": {"id-old", "id-a"}})
    check_same_topics(TABLE, {"a": "id-a", "b": "id-b"}, {"a": {"id-a"}})
