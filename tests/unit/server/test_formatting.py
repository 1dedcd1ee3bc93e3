from __future__ import annotations

from random import Random

import pytest

from penstock.kernels import scan_batches
from penstock.model.config import BrokerSettings
from penstock.model.ids import Millis, NodeId, Offset, Uuid
from penstock.server.controller.initial_controllers import InitialController, voters_of
from penstock.server.formatting import AlreadyFormatted, Formatted, format_directories
from penstock.server.quorum.snapshot_file import CheckpointWriter, read_checkpoint
from penstock.storage.meta_properties import read_meta_properties
from penstock.testing.memory_files import MemoryFiles
from tests.walks.control_plane import PROPERTIES

NOW = Millis(1_700_000_000_000)
CLUSTER = "4L6g3nShT-eMCtK--X86sw"
VOTERS = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"

# What kafka-storage 4.3.1 format --standalone wrote, with its times and ids.
KAFKA_VOTERS = bytes.fromhex(
    "00000000000000000000009a0000000002919af7f5002000000002000001a1e1386d7e000001a1e1386d7effffffffff"
    "ffffffffffffffffff000000032a0000000800000003160000000001a1e1386d7300001e00000208000000050a000000"
    "010000820100000408000000066e00000200000001c82b9cc94cf546fbb0b18cbb577b1fbb020b434f4e54524f4c4c45"
    "520a3132372e302e302e31991900000000010000000000000000000000030000003f0000000002b675b31e0020000000"
    "00000001a1e1386d8e000001a1e1386d8effffffffffffffffffffffffffff000000011a000000080000000406000000"
    "00"
)


def format_(files: MemoryFiles, *directories: str, cluster_id: str | None = None, **said: bool) -> Formatted:
    settings = BrokerSettings.load({**PROPERTIES, "log.dirs": ",".join(directories)})
    return format_directories(
        files, directories, directories[0], cluster_id, NodeId(1), settings, Random(1), now=NOW, **said
    )


def test_the_voter_snapshot_is_byte_equal_to_kafkas() -> None:
    found = read_checkpoint("kafka", KAFKA_VOTERS)
    assert found.kraft_version == 1
    assert found.voters is not None
    header, footer = (batch.base_timestamp for _, batch in scan_batches(KAFKA_VOTERS))
    writer = CheckpointWriter(0, Millis(header))  # type: ignore[arg-type]
    written = writer.header(found.last_contained_timestamp, found.kraft_version, found.voters)
    writer._now = Millis(footer)
    assert written + writer.footer() == KAFKA_VOTERS


def test_every_directory_gets_an_id_of_its_own_and_the_bootstrap_records() -> None:
    files = MemoryFiles()
    done = format_(files, "/a", "/b")
    assert done.made == ("/a", "/b")
    ids = set()
    for directory in ("/a", "/b"):
        meta = read_meta_properties(files, directory)
        assert meta is not None
        assert (meta.cluster_id, meta.node_id) == (done.cluster_id, 1)
        ids.add(meta.directory_id)
        records = read_checkpoint(directory, files.read(f"{directory}/bootstrap.checkpoint")).records
        assert [(record.name, record.feature_level) for record in records] == [
            ("metadata.version", 30),
            ("eligible.leader.replicas.version", 1),
            ("group.version", 1),
            ("transaction.version", 2),
        ]
    assert ids == set(done.directory_ids.values())
    assert len(ids) == 2


def test_only_the_metadata_directory_names_the_voters() -> None:
    files = MemoryFiles()
    done = format_(files, "/a", "/b")
    voters = read_checkpoint("/a", files.read(f"/a/{VOTERS}")).voters
    assert voters is not None
    (voter,) = voters.voters
    assert (voter.voter_id, voter.voter_directory_id) == (1, done.directory_ids["/a"])
    assert [(each.name, each.host, each.port) for each in voter.endpoints] == [("CONTROLLER", "127.0.0.1", 9093)]
    assert not files.exists(f"/b/{VOTERS}")


def test_voters_in_the_configuration_are_not_written() -> None:
    files = MemoryFiles()
    fixed = {key: value for key, value in PROPERTIES.items() if key != "controller.quorum.bootstrap.servers"}
    settings = BrokerSettings.load({**fixed, "log.dirs": "/a", "controller.quorum.voters": "1@127.0.0.1:9093"})
    format_directories(files, ["/a"], "/a", None, NodeId(1), settings, Random(1), now=NOW)
    assert not files.exists(f"/a/{VOTERS}")


def test_the_controllers_of_a_new_cluster_know_each_other_by_directory() -> None:
    controllers = [
        InitialController(NodeId(at), "127.0.0.1", 9_092 + at, Uuid(bytes(15 * [7] + [at]))) for at in (1, 2, 3)
    ]
    voters = voters_of(controllers, "CONTROLLER")
    for node_id in (1, 2, 3):
        files = MemoryFiles()
        settings = BrokerSettings.load({**PROPERTIES, "node.id": str(node_id), "log.dirs": "/a,/b"})
        done = format_directories(
            files, ["/a", "/b"], "/a", CLUSTER, NodeId(node_id), settings, Random(1), now=NOW, voters=voters
        )
        assert done.directory_ids["/a"] == controllers[node_id - 1].directory_id
        assert done.directory_ids["/b"] != done.directory_ids["/a"]
        written = read_checkpoint("/a", files.read(f"/a/{VOTERS}"))
        assert written.voters == voters
        assert written.kraft_version == 1


def test_one_that_joins_later_or_is_only_a_broker_names_nobody() -> None:
    joining, broker = MemoryFiles(), MemoryFiles()
    format_(joining, "/a", standalone=False)
    roles = {"process.roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:9092", "log.dirs": "/a"}
    settings = BrokerSettings.load({**PROPERTIES, **roles})
    format_directories(broker, ["/a"], "/a", None, NodeId(1), settings, Random(1), now=NOW)
    for files in (joining, broker):
        assert read_meta_properties(files, "/a") is not None
        assert not files.exists(f"/a/{VOTERS}")


def test_formatting_again_changes_nothing_and_formats_new_directories() -> None:
    files = MemoryFiles()
    first = format_(files, "/a")
    again = format_(files, "/a", "/b")
    assert again.cluster_id == first.cluster_id
    assert again.made == ("/b",)
    assert again.directory_ids["/a"] == first.directory_ids["/a"]


def test_a_formatted_directory_is_refused_on_request_and_another_clusters_always() -> None:
    files = MemoryFiles()
    format_(files, "/a")
    with pytest.raises(AlreadyFormatted, match="ignore-formatted"):
        format_(files, "/a", ignore_formatted=False)
    with pytest.raises(AlreadyFormatted, match="belongs to cluster"):
        format_(files, "/a", cluster_id="4L6g3nShT-eMCtK--X86sw")


def test_a_given_cluster_id_is_taken() -> None:
    assert format_(MemoryFiles(), "/a", cluster_id="4L6g3nShT-eMCtK--X86sw").cluster_id == "4L6g3nShT-eMCtK--X86sw"


def test_a_formatted_directory_survives_a_power_cut() -> None:
    files = MemoryFiles()
    done = format_(files, "/deep/down/a")
    files.crash()
    meta = read_meta_properties(files, "/deep/down/a")
    assert meta is not None
    assert meta.cluster_id == done.cluster_id
    assert files.exists(f"/deep/down/a/{VOTERS}")


def test_offsets_in_a_checkpoint_run_from_zero() -> None:
    files = MemoryFiles()
    format_(files, "/a")
    ends = Offset(0)
    for _, header in scan_batches(files.read("/a/bootstrap.checkpoint")):
        assert header.base_offset == ends
        ends = Offset(header.last_offset + 1)
    assert ends == 6
