"""image -> records -> image, and a metadata log and snapshot that Apache Kafka 4.3.1 wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given

from penstock.kernels import scan_batches
from penstock.metadata.image import ClusterImage
from penstock.metadata.records import frame_record, unframe_record, unframe_versioned
from penstock.metadata.snapshot import image_of, snapshot_records
from penstock.model.ids import Epoch, Offset
from penstock.protocol.batch import is_control, read_records
from tests.unit.metadata.worlds import applied, histories

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


def _metadata_records(path: Path) -> list[tuple[int, bytes]]:
    """(offset, value) of every record that is not a control record."""
    data = path.read_bytes()
    found = []
    for position, header in scan_batches(data):
        if not is_control(header.attributes):
            records = read_records(memoryview(data)[position : position + header.size])
            found += [(record.offset, record.value or b"") for record in records]
    return found


def test_every_record_kafka_wrote_is_written_alike() -> None:
    values = [value for path in (LOG, SNAPSHOT) for _, value in _metadata_records(path)]
    assert len(values) == 73
    assert [frame_record(*unframe_versioned(value)) for value in values] == values


def test_kafkas_log_and_kafkas_snapshot_make_the_same_image() -> None:
    replayed = ClusterImage()
    for offset, value in _metadata_records(LOG):
        if offset < 33:
            replayed.apply(unframe_record(value), Offset(offset), Epoch(1))
    loaded = image_of([unframe_record(value) for _, value in _metadata_records(SNAPSHOT)], Offset(32), Epoch(1))
    assert replayed == loaded
    assert (replayed.offset, list(replayed.ids)) == (32, ["alpha", "gone"])


def test_our_snapshot_of_kafkas_image_has_the_same_records_in_the_same_order_of_kinds() -> None:
    theirs = [unframe_record(value) for _, value in _metadata_records(SNAPSHOT)]
    ours = [record for record, _ in snapshot_records(image_of(theirs, Offset(32), Epoch(1)))]
    assert [type(record) for record in ours] == [type(record) for record in theirs]
    assert sorted(map(repr, ours[5:])) == sorted(map(repr, theirs[5:]))
