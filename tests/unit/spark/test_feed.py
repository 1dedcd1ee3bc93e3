"""Where a table's rows come from, as the table itself says it."""

from __future__ import annotations

import json

import pytest

from penstock.spark.errors import BadOption
from penstock.spark.feed import Feed, FeedStep

OPTIONS = {
    "kafka.bootstrap.servers": "localhost:9092",
    "kafka.isolation.level": "read_committed",
    "subscribe": "orders, returns",
    "startingOffsets": "earliest",
    "value.format": "json",
    "value.schema": "id BIGINT",
    "metadataColumns": "_offset",
    "maxOffsetsPerTrigger": "10",
    "deadLetters": "topic:dead",
}


def test_what_decides_about_rows_is_kept_and_nothing_else() -> None:
    feed = Feed.of_source(OPTIONS, query="shop-orders")
    assert feed == Feed(
        bootstrap="localhost:9092",
        topics=("orders", "returns"),
        options={
            "kafka.isolation.level": "read_committed",
            "value.format": "json",
            "value.schema": "id BIGINT",
            "metadatacolumns": "_offset",
        },
        start={"startingoffsets": "earliest"},
        rows="record",
        query="shop-orders",
    )
    assert feed.from_the_first


def test_a_feed_survives_its_property() -> None:
    steps = [FeedStep("clean", "select * from orders"), FeedStep("python")]
    feed = Feed.of_source(OPTIONS, view="orders", steps=steps, query="q")
    assert Feed.of_property(feed.to_property()) == feed


def test_a_feed_in_few_words_is_read() -> None:
    feed = Feed.of_property('{"topics": ["a"], "start": "latest", "steps": ["s"], "pipeline": "shop"}')
    assert (feed.topics, feed.start, feed.steps, feed.rows) == (
        ("a",),
        {"startingOffsets": "latest"},
        (FeedStep("s"),),
        "any",
    )
    assert not feed.from_the_first


@pytest.mark.parametrize("text", ["", "[]", "7", '{"options": 7}', '{"steps": [{}]}', '{"topics": 7}'])
def test_what_is_no_feed_is_told(text: str) -> None:
    with pytest.raises(BadOption, match=r"penstock\.feed"):
        Feed.of_property(text)


def test_a_feed_names_its_topics_by_name_or_by_pattern() -> None:
    assert [Feed("b", ("orders",)).names(topic) for topic in ("orders", "orders-eu")] == [True, False]
    assert [Feed("b", pattern="^ord").names(topic) for topic in ("orders-eu", "lord")] == [True, False]


def test_a_property_is_plain_json() -> None:
    assert json.loads(Feed("b", ("a",)).to_property()) == {"bootstrap": "b", "topics": ["a"], "rows": "any"}
