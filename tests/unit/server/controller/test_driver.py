"""What the controller's driver counts."""

from __future__ import annotations

from penstock.metadata.image import ClusterImage
from penstock.model.ids import Epoch, Millis, Offset
from penstock.protocol.disk.metadata_features import NoOpRecord
from penstock.protocol.disk.metadata_topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from penstock.server.controller.driver import _unclean_elections
from penstock.server.quorum.metadata_driver import LogBatch
from tests.unit.controller.desk import uuid_of

TOPIC = uuid_of(1)


def test_elections_that_may_lose_records_are_counted_among_the_records_of_a_batch() -> None:
    image = ClusterImage()
    image.apply(TopicRecord(name="t", topic_id=TOPIC), Offset(0), Epoch(1))
    for index, isr in enumerate(([1], [1, 2])):
        placed = PartitionRecord(partition_id=index, topic_id=TOPIC, replicas=[1, 2], isr=isr, leader=1, leader_epoch=0)
        image.apply(placed, Offset(1 + index), Epoch(1))
    records = [
        NoOpRecord(),
        *(PartitionChangeRecord(topic_id=TOPIC, partition_id=index, isr=[2], leader=2) for index in (0, 1)),
    ]
    batch = LogBatch(Offset(3), Offset(6), Epoch(1), Millis(0), 100, records)
    assert _unclean_elections(image, batch) == 1, "of the second partition the winner had everything"
