"""image -> records -> image, and a metadata log and snapshot that Apache Kafka 4.3.1 wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from tests.unit.metadata.worlds import applied, histories

from penstock.metadata.records import frame_record, unframe_record
from penstock.metadata.snapshot import image_of, snapshot_records

KAFKA = Path(__file__).parent / "kafka-4.3.1"
SNAPSHOT = KAFKA / "00000000000000000033-0000000001.checkpoint"
LOG = KAFKA / "00000000000000000000.log"


@given(histories())
def test_replaying_a_snapshot_gives_the_image_it_was_made_of(history: list[Any]) -> None:
    image = applied(history)
    framed = [frame_record(record, version) for record, version in snapshot_records(image)]
    again = image_of([unframe_record(each) for each in framed], image.offset, image.epoch)
    assert again == image
    assert (again.offset, again.epoch) == (image.offset, image.epoch)
    assert [frame_record(record, version) for record, version in snapshot_records(again)] == framed
