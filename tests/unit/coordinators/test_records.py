"""Records are those of Apache Kafka 4.3.1: the bytes below were written by it, for the same operations."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.coordinators.decision import Moment, StateRecord
from penstock.model.ids import Epoch, Millis, Offset, Uuid
from penstock.protocol.codec import encode
from penstock.protocol.disk.metadata_topics import TopicRecord
from penstock.protocol.messages.offset_commit import OffsetCommitRequest
from penstock.protocol.schema import schema_of
from tests.unit.coordinators.classic.script import Script

TOPIC_ID = Uuid(bytes.fromhex("e94133226094442f90fdd68291ea7df9"))
OFFSET_KEY = "00010006676f6c64656e00017400000000"
GROUP_KEY = "0002000e676f6c64656e2d636c6173736963"
MEMBER = "69312d38336265656134662d326236622d343764332d616262632d653432626235656138653739"


def stored(record: StateRecord) -> tuple[str, str | None]:
    """Key and value as they are in the log."""
    key = schema_of(type(record.key)).key.to_bytes(2, "big") + encode(record.key, 0)
    if record.value is None:
        return key.hex(), None
    value = record.value_version.to_bytes(2, "big") + encode(record.value, record.value_version)
    return key.hex(), value.hex()


def script(at: int, **properties: Any) -> Script:
    made = Script(**properties)
    made.now = Moment(Millis(at), 0)
    made.image.apply(TopicRecord(name="t", topic_id=TOPIC_ID), Offset(1), Epoch(1))
    made._new_id = lambda: "83beea4f-2b6b-47d3-abbc-e42bb5ea8e79"  # type: ignore[method-assign]
    made.shard = made.replayed()
    return made


@pytest.mark.parametrize(
    ("at", "version", "said", "expected"),
    [
        (
            0x1A1E203E5AC, 9, {"committed_leader_epoch": 3, "committed_metadata": "note"},
            "0004000000000000000700000003056e6f7465000001a1e203e5ac010010e94133226094442f90fdd68291ea7df9",
        ),
        (
            0x1A1E203E5B0, 2, {"retention_time_ms": 86_400_000, "committed_metadata": "old"},
            "0001000000000000000700036f6c64000001a1e203e5b0000001a1e72a41b0",
        ),
        (
            0x1A1E203E5B4, 8, {"committed_metadata": None},
            "00040000000000000007ffffffff01000001a1e203e5b4010010e94133226094442f90fdd68291ea7df9",
        ),
        (
            0x1A1E203E5C4, 10, {"committed_leader_epoch": 1, "committed_metadata": "id", "topic_id": TOPIC_ID},
            "0004000000000000000700000001036964000001a1e203e5c4010010e94133226094442f90fdd68291ea7df9",
        ),
    ],
)  # fmt: skip
def test_offsets_are_written_as_kafka_writes_them(at: int, version: int, said: dict[str, Any], expected: str) -> None:
    made = script(at)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(
        name="t",
        topic_id=said.pop("topic_id", Uuid(bytes(16))),
        partitions=[
            OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=0,
                committed_offset=7,
                **{name: value for name, value in said.items() if name != "retention_time_ms"},
            )
        ],
    )
    retention_time_ms = said.get("retention_time_ms", -1)
    request = OffsetCommitRequest(group_id="golden", retention_time_ms=retention_time_ms, topics=[topic])
    made.ask("admin", request, version)
    assert [stored(record) for record in made.log] == [(OFFSET_KEY, expected)]


def test_a_group_is_written_as_kafka_writes_it() -> None:
    # The node that wrote these was a millisecond late with the first rebalance.
    made = script(0x1A1E203E5CA, group_initial_rebalance_delay_ms=3_001)
    for step in ("a join v=5 instance=i1", "wait 3001", "a sync v=4 a=x", "wait 523", "a leave v=5"):
        verb, _, options = step.partition(" ")
        made.do(f"{verb} {options} group=golden-classic" if verb == "a" else step)
    made._carry_out([made.shard.decide_delete("golden-classic", made.now)])
    assert [stored(record) for record in made.log] == [
        (GROUP_KEY, "0003000000000000ffffffff000001a1e203e5ca00000000"),
        (
            GROUP_KEY,
            f"00030008636f6e73756d657200000001000572616e67650027{MEMBER}000001a1e203f18300000001"
            f"0027{MEMBER}000269310008636c69656e742d61000a2f3132372e302e302e310000ea6000002710"
            "00000011000100000001000174ffffffff00000000" + "0000000178",
        ),
        (GROUP_KEY, "00030008636f6e73756d657200000002ffffffff000001a1e203f38e00000000"),
        (GROUP_KEY, None),
    ]
