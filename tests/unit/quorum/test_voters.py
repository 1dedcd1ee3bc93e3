"""Control records of the quorum, judged by a directory that Apache Kafka 4.3.1 formatted and the log it began."""

from __future__ import annotations

from penstock.model.ids import NodeId, Uuid, uuid_parse
from penstock.protocol.codec import decode, encode
from penstock.protocol.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER, control_batch
from penstock.protocol.disk.raft_records import SnapshotFooterRecord, SnapshotHeaderRecord, VotersRecord
from penstock.quorum.state import ReplicaKey
from penstock.quorum.voters import Voter, VoterEndpoint, VoterSet, leader_change, quorum_records

DIRECTORY = uuid_parse("KuALfnzyTMKp0cxtLZtYuQ")
VOTERS = VoterSet([Voter(ReplicaKey(NodeId(1), DIRECTORY), (VoterEndpoint("CONTROLLER", "127.0.0.1", 39193),), 0, 1)])

# 00000000000000000000-0000000000.checkpoint as `kafka-storage format --standalone` wrote it.
CHECKPOINT = bytes.fromhex(
    "00000000000000000000009a000000000287912c14002000000002000001a1e13920d8000001a1e13920d8ffffffffff"
    "ffffffffffffffffff000000032a0000000800000003160000000001a1e13920bc00001e00000208000000050a000000"
    "010000820100000408000000066e000002000000012ae00b7e7cf24cc2a9d1cc6d2d9b58b9020b434f4e54524f4c4c45"
    "520a3132372e302e302e31991900000000010000000000000000000000030000003f0000000002f289ee800020000000"
    "00000001a1e13920e7000001a1e13920e7ffffffffffffffffffffffffffff000000011a000000080000000406000000"
    "00"
)


def test_the_checkpoint_of_a_formatted_directory_has_kafkas_bytes() -> None:
    header = (SNAPSHOT_HEADER, encode(SnapshotHeaderRecord(last_contained_log_timestamp=0x1A1E13920BC), 0))
    footer = (SNAPSHOT_FOOTER, encode(SnapshotFooterRecord(), 0))
    made = control_batch(
        [header, *quorum_records(1, VOTERS)], base_offset=0, leader_epoch=0, timestamp=0x1A1E13920D8
    ) + control_batch([footer], base_offset=3, leader_epoch=0, timestamp=0x1A1E13920E7)
    assert made.hex() == CHECKPOINT.hex()


def test_a_leader_change_has_kafkas_bytes() -> None:
    _, value = leader_change(NodeId(1), VOTERS, [NodeId(1)])
    assert value.hex() == "00000000000102000000010002000000010000"


def test_voters_survive_their_record() -> None:
    record, _ = decode(VotersRecord, 0, encode(VOTERS.to_record(), 0))
    assert VoterSet.of_record(record) == VOTERS


def test_a_node_votes_only_with_the_disk_it_had() -> None:
    assert VOTERS.has(ReplicaKey(NodeId(1), DIRECTORY))
    assert VOTERS.has(ReplicaKey(NodeId(1)))
    assert not VOTERS.has(ReplicaKey(NodeId(1), Uuid(b"x" * 16)))
    assert not VOTERS.has(ReplicaKey(NodeId(2), DIRECTORY))


def test_a_majority_is_more_than_half() -> None:
    assert [VoterSet(Voter(ReplicaKey(NodeId(n))) for n in range(size)).majority for size in (1, 2, 3, 4, 5)] == [
        1,
        2,
        2,
        3,
        3,
    ]
