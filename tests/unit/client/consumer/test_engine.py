"""What a consumer's engine does by itself."""

from __future__ import annotations

from penstock.client.consumer.engine import Engine
from penstock.client.settings import ConsumerSettings
from penstock.model.ids import TopicPartition


def test_partitions_are_read_in_their_order_whatever_order_they_came_in() -> None:
    engine = Engine(ConsumerSettings.of({"group_id": "g"}))
    given = [TopicPartition("b", 1), TopicPartition("a", 2), TopicPartition("b", 0), TopicPartition("a", 10)]
    assert engine.add(given) == sorted(given)
    assert list(engine.partitions) == sorted(given)
