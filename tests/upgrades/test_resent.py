"""Which values that are there twice are librdkafka's own doing: those under one producer id and rising epochs."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.compat.batches import Record, encode_batch
from tests.faults.cluster.history import Anomaly, Kind
from tests.upgrades.resent import by_choice

TWICE = Anomaly(Kind.DUPLICATE, 0, "confluent:5 is at offsets [0, 2]")


def log_of(directory: Path, *origins: tuple[int, int]) -> Path:
    """A partition of one record for each producer id and epoch."""
    batches = [
        encode_batch([Record(b"v")], base_timestamp_ms=1, producer_id=producer, producer_epoch=epoch, base_sequence=0)
        for producer, epoch in origins
    ]
    data = b"".join(struct.pack(">q", offset) + batch[8:] for offset, batch in enumerate(batches))
    (directory / f"{0:020}.log").write_bytes(data)
    return directory


def test_copies_of_rising_epochs_are_the_clients_choice(tmp_path: Path) -> None:
    assert by_choice(TWICE, log_of(tmp_path, (1, 1), (7, 0), (1, 2)))


@pytest.mark.parametrize(
    "origins", [((1, 1), (7, 0), (1, 1)), ((1, 2), (7, 0), (1, 1)), ((1, 1), (7, 0), (2, 2)), ((1, 1), (7, 0))]
)
def test_any_other_copies_are_the_brokers(tmp_path: Path, origins: tuple[tuple[int, int], ...]) -> None:
    """One epoch: the log forgot. Falling epochs: it let an old one in. Two producers, or none: nobody knows."""
    assert not by_choice(TWICE, log_of(tmp_path, *origins))


@pytest.mark.parametrize(
    "anomaly",
    [TWICE._replace(words="own:5 is at offsets [0, 2]"), TWICE._replace(kind=Kind.LOST_WRITE)],
)
def test_no_other_client_and_no_other_anomaly_is_let_off(tmp_path: Path, anomaly: Anomaly) -> None:
    assert not by_choice(anomaly, log_of(tmp_path, (1, 1), (7, 0), (1, 2)))
