"""Framing of metadata records, judged by bytes that Apache Kafka 4.3.1 wrote."""

from __future__ import annotations

import pytest

from penstock.metadata.records import (
    RECORD_TYPES,
    frame_record,
    record_class,
    unframe_record,
    unframe_versioned,
    version_of,
)
from penstock.protocol.disk.metadata_brokers import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from penstock.protocol.disk.metadata_configs import ConfigRecord
from penstock.protocol.disk.metadata_features import FeatureLevelRecord, NoOpRecord
from penstock.protocol.disk.metadata_topics import PartitionChangeRecord, PartitionRecord
from penstock.protocol.disk.metadata_transactions import BeginTransactionRecord
from penstock.protocol.wire import Malformed, schema_of

GOLDEN = [
    (NoOpRecord(), 0, "01140000"),
    (BeginTransactionRecord(name="Bootstrap records"), 0, "01170001001212426f6f747374726170207265636f726473"),
    (
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        0,
        "010c00116d657461646174612e76657273696f6e001e00",
    ),
    (
        ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
        0,
        "01040004" + "01146d696e2e696e73796e632e7265706c69636173023100",
    ),
    (
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=13, fenced=-1),
        0,
        "0111000000000100000000" + "0000000d010001ff",
    ),
    (
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=13, cordoned_log_dirs=[]),
        3,
        "0111030000000100000000" + "0000000d01030101",
    ),
]


@pytest.mark.parametrize(("record", "version", "text"), GOLDEN)
def test_a_framed_record_has_kafkas_bytes(record: object, version: int, text: str) -> None:
    assert frame_record(record, version).hex() == text
    assert unframe_versioned(bytes.fromhex(text)) == (record, version)


def test_every_type_number_leads_to_the_class_that_has_it() -> None:
    assert [schema_of(record_class(key)).key for key in RECORD_TYPES] == list(RECORD_TYPES)


def test_record_versions_follow_the_metadata_version() -> None:
    classes = (RegisterBrokerRecord, PartitionRecord, PartitionChangeRecord, RegisterControllerRecord)
    assert [version_of(each, 30) for each in classes] == [4, 2, 2, 0]
    assert [version_of(each, 21) for each in classes] == [3, 1, 1, 0]
    assert [version_of(each, 7) for each in classes] == [1, 0, 0, 0]


@pytest.mark.parametrize("text", ["", "01", "0114", "02140000", "01060000", "0114000000", "010c00ff"])
def test_anything_else_is_malformed(text: str) -> None:
    with pytest.raises(Malformed):
        unframe_record(bytes.fromhex(text))
