"""What an application gets: records with their place."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from types import ModuleType

import pytest

from penstock.kernels import BadRecord, ConsumerRecord, Record, _pure

RECORDS = [
    Record(10, 1_000, b"k", b"v", (("h", b"1"), ("n", None))),
    Record(11, 1_005, None, b""),
    Record(14, 990, b"", None),
]


def test_records_come_with_topic_partition_and_epoch(client_twin: ModuleType) -> None:
    payload = _pure.encode_records(RECORDS, 10, 1_000)
    made = client_twin.ConsumerRecord
    found = client_twin.decode_consumer_records(payload, 3, 10, 1_000, None, "orders", 4, 7, 0)
    assert found == [
        made("orders", 4, offset, timestamp, 0, key, value, headers, 7)
        for offset, timestamp, key, value, headers in RECORDS
    ]
    assert all(type(record) is made for record in found)


def test_records_before_the_position_are_left_out(client_twin: ModuleType) -> None:
    payload = _pure.encode_records(RECORDS, 10, 1_000)
    for first, offsets in ((11, [11, 14]), (12, [14]), (15, [])):
        found = client_twin.decode_consumer_records(memoryview(payload), 3, 10, 1_000, None, "t", 0, -1, first)
        assert [record.offset for record in found] == offsets


def test_append_time_has_its_own_type(client_twin: ModuleType) -> None:
    payload = _pure.encode_records(RECORDS, 10, 1_000)
    found = client_twin.decode_consumer_records(payload, 3, 10, 1_000, 5_000, "t", 0, -1, 0)
    assert {(record.timestamp, record.timestamp_type) for record in found} == {(5_000, 1)}


def test_a_broken_record_is_refused_even_before_the_position(client_twin: ModuleType) -> None:
    payload = bytes(_pure.encode_records(RECORDS, 10, 1_000))
    for broken, count in ((payload[:-1], 3), (payload + b"\x00", 3), (payload, 4), (payload, 2), (payload, -1)):
        with pytest.raises(BadRecord):
            client_twin.decode_consumer_records(broken, count, 10, 1_000, None, "t", 0, -1, 1 << 40)


def test_a_record_is_a_value(client_twin: ModuleType) -> None:
    made = client_twin.ConsumerRecord
    record = made(topic="t", partition=1, offset=2, timestamp=3, key=b"k")
    assert record == made("t", 1, 2, 3, 0, b"k", None, (), -1)
    assert hash(record) == hash(made("t", 1, 2, 3, 0, b"k", None, (), -1))
    assert record != made("t", 1, 2, 3, 0, b"k", None, (), 0)
    assert record != ("t", 1, 2, 3, 0, b"k", None, (), -1)
    assert repr(record) == (
        "ConsumerRecord(topic='t', partition=1, offset=2, timestamp=3, timestamp_type=0, key=b'k', value=None, "
        "headers=(), leader_epoch=-1)"
    )
    with pytest.raises(AttributeError):
        record.offset = 5
    match record:
        case made(topic, partition, offset):
            assert (topic, partition, offset) == ("t", 1, 2)
    with pytest.raises(TypeError):
        made("t", 1, 2)


def test_a_pickled_record_comes_back_in_the_twin_that_serves(client_twin: ModuleType) -> None:
    fields = ("t", 1, 2, 3, 1, b"k", b"v", (("h", None),), 5)
    record = client_twin.ConsumerRecord(*fields)
    assert pickle.loads(pickle.dumps(record)) == ConsumerRecord(*fields)
    assert copy.copy(record) == ConsumerRecord(*fields)


def test_a_record_crosses_to_a_process_without_the_compiled_twin() -> None:
    record = ConsumerRecord("t", 1, 2, 3, value=b"v")
    program = f"import pickle; print(pickle.loads({pickle.dumps(record)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PENSTOCK_PURE": "1"}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == repr(record)
