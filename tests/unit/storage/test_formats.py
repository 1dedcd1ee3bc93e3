"""Files byte by byte, against contents worked out by hand."""

from __future__ import annotations

import pytest

from penstock.kernels import crc32c
from penstock.model.errors import Corrupt
from penstock.model.ids import Epoch, Millis, NodeId, Offset, TopicPartition, Uuid, uuid_parse
from penstock.storage.checkpoints import EpochStart, LeaderEpochCheckpoint, OffsetCheckpoint
from penstock.storage.clean_shutdown import read_clean_shutdown
from penstock.storage.log import Log
from penstock.storage.meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from penstock.storage.names import Kind, parse_partition_directory, parse_segment_file, partition_directory
from penstock.storage.offset_index import OffsetIndex
from penstock.storage.partition_metadata import read_partition_metadata
from penstock.storage.producer_snapshot import ProducerRecord, decode_snapshot, encode_snapshot
from penstock.storage.settings import PlainLogSettings
from penstock.storage.time_index import TimeIndex
from penstock.testing.memory_files import MemoryFiles

from .batches import batch, header_of, marker, sized

D = "/data/orders-0"
NAME = TopicPartition("orders", 0)
TOPIC_ID = uuid_parse("AAAAAAAAAAAAAAAAAAAAKg")
NOW = Millis(10_000)


def hexed(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


def log_of(files: MemoryFiles, **settings: int) -> Log:
    return Log.create(files, D, NAME, TOPIC_ID, PlainLogSettings(**settings), now=NOW)  # type: ignore[arg-type]


def append(log: Log, data: bytearray) -> None:
    log.append(data, header_of(data), epoch=Epoch(0), now=NOW)


def test_index_entries_come_before_the_batch_that_crosses_the_interval() -> None:
    files = MemoryFiles()
    log = log_of(files, index_interval_bytes=1_000)
    # Sizes 400 each: after three batches 1200 > 1000 bytes went by, so the fourth (offsets 3) gets an entry at 1200;
    # from it on it takes three batches again (1200 > 1000), so the next one is the seventh.
    for i in range(8):
        append(log, sized(400, timestamp=1_000 + (i if i != 5 else 900)))
    log.close()
    assert files.read(f"{D}/00000000000000000000.index") == hexed("00000003 000004b0  00000006 00000960")
    # Largest timestamp so far and its offset; at the second entry that is offset 5, newer than all after it, so the
    # closing entry adds nothing.
    assert files.read(f"{D}/00000000000000000000.timeindex") == hexed(
        "00000000000003eb 00000003  000000000000076c 00000005"
    )


def test_a_roll_gives_the_time_index_its_last_entry_and_names_files_after_the_next_offset() -> None:
    files = MemoryFiles()
    log = log_of(files, segment_bytes=1_000, index_interval_bytes=4_096)
    for i in range(3):
        append(log, sized(400, timestamp=1_000 + i))
    log.close()
    # Offset 1 is the newest in the first segment; the third batch would make 1200 bytes and begins another.
    assert files.read(f"{D}/00000000000000000000.timeindex") == hexed("00000000000003e9 00000001")
    assert files.read(f"{D}/00000000000000000000.index") == b""
    assert files.read(f"{D}/00000000000000000002.timeindex") == hexed("00000000000003ea 00000000")
    assert files.listdir(D) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000002.index",
        "00000000000000000002.log",
        "00000000000000000002.snapshot",
        "00000000000000000002.timeindex",
        "00000000000000000003.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    assert files.read(f"{D}/leader-epoch-checkpoint") == b"0\n1\n0 0\n"
    assert files.read(f"{D}/partition.metadata") == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAKg"
    assert read_partition_metadata(files, f"{D}/partition.metadata") == TOPIC_ID


def test_relative_offsets_count_from_the_segments_base() -> None:
    files = MemoryFiles()
    log = log_of(files, index_interval_bytes=10)
    log.truncate_fully(Offset(5_000_000_000))
    append(log, sized(100))
    append(log, batch(3))
    log.close()
    # The second batch holds three offsets: an entry names the last of them.
    assert files.read(f"{D}/00000000005000000000.index") == hexed("00000003 00000064")


def test_an_aborted_transaction_has_34_bytes() -> None:
    files = MemoryFiles()
    log = log_of(files)
    append(log, batch(2, producer=(77, 1, 0), attributes=0x10))
    append(log, batch(1, producer=(88, 0, 0), attributes=0x10))
    append(log, marker(77, 1, aborts=True))
    # Producer 88 is still open at offset 2: that is the last stable offset.
    assert files.read(f"{D}/00000000000000000000.txnindex") == hexed(
        "0000 000000000000004d 0000000000000000 0000000000000003 0000000000000002"
    )


def test_a_producer_snapshot_has_the_last_batch_of_each_producer() -> None:
    files = MemoryFiles()
    log = log_of(files)
    append(log, batch(3, producer=(77, 1, 0), timestamp=500))
    append(log, batch(2, producer=(77, 1, 3), timestamp=600, attributes=0x10))
    log.close()
    body = hexed(
        "00000001000000000000004d 0001 00000004 0000000000000004 00000001 0000000000000259 ffffffff 0000000000000003"
    )
    data = files.read(f"{D}/00000000000000000005.snapshot")
    assert data == hexed("0001") + crc32c(body).to_bytes(4, "big") + body
    assert decode_snapshot(data, "s") == [ProducerRecord(77, 1, 4, 4, 1, 601, -1, 3)]


@pytest.mark.parametrize(
    "broken", [b"", b"\0\1\0\0\0\0\0\0\0\1", b"\0\2" + encode_snapshot([])[2:], encode_snapshot([]) + b"x"]
)
def test_a_broken_snapshot_is_not_believed(broken: bytes) -> None:
    with pytest.raises(Corrupt):
        decode_snapshot(broken, "s")


def test_offset_checkpoints_go_both_ways() -> None:
    files = MemoryFiles()
    files.makedirs("/c")
    checkpoint = OffsetCheckpoint(files, "/c/recovery-point-offset-checkpoint")
    assert checkpoint.read() == {}
    offsets = {TopicPartition("a.b_c-1", 10): Offset(1 << 40), TopicPartition("x", 0): Offset(0)}
    checkpoint.write(offsets)
    assert files.read(checkpoint.path) == b"0\n2\na.b_c-1 10 1099511627776\nx 0 0\n"
    assert checkpoint.read() == offsets


@pytest.mark.parametrize(
    "text", [b"1\n0\n", b"0\n2\na 0 1\n", b"0\n1\na 0\n", b"0\n1\na x 1\n", b"0\nx\n", b"\xff\xfe", b"0\n"]
)
def test_a_checkpoint_that_makes_no_sense_is_named(text: bytes) -> None:
    files = MemoryFiles()
    files.makedirs("/c")
    files.write_atomic("/c/f", text)
    with pytest.raises(Corrupt, match="/c/f"):
        OffsetCheckpoint(files, "/c/f").read()


def test_epoch_checkpoints_go_both_ways() -> None:
    files = MemoryFiles()
    files.makedirs("/c")
    checkpoint = LeaderEpochCheckpoint(files, "/c/leader-epoch-checkpoint")
    entries = [EpochStart(Epoch(0), Offset(0)), EpochStart(Epoch(7), Offset(12))]
    checkpoint.write(entries)
    assert files.read(checkpoint.path) == b"0\n2\n0 0\n7 12\n"
    assert checkpoint.read() == entries


def test_meta_properties_go_both_ways_and_read_javas() -> None:
    files = MemoryFiles()
    files.makedirs("/c")
    meta = MetaProperties("MkU3OEVBNTcwNTJENDM2Qg", NodeId(3), Uuid(b"\x01" * 16))
    assert read_meta_properties(files, "/c") is None
    write_meta_properties(files, "/c", meta)
    assert files.read("/c/meta.properties") == (
        b"#\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\ndirectory.id=AQEBAQEBAQEBAQEBAQEBAQ\nnode.id=3\nversion=1\n"
    )
    assert read_meta_properties(files, "/c") == meta
    files.write_atomic(
        "/c/meta.properties",
        b"#\n#Thu Jan 01 00:00:00 UTC 2026\nnode.id = 3\ndirectory.id:AQEBAQEBAQEBAQEBAQEBAQ\nversion=1\n"
        b"cluster.id=MkU3OEVB\\\n   NTcwNTJENDM2Qg\n",
    )
    assert read_meta_properties(files, "/c") == meta


@pytest.mark.parametrize(("text", "epoch"), [(b'{"version":0,"brokerEpoch":9}', 9), (b"", -1), (b"{}", -1)])
def test_any_clean_shutdown_file_means_a_clean_stop(text: bytes, epoch: int) -> None:
    files = MemoryFiles()
    files.makedirs("/c")
    assert read_clean_shutdown(files, "/c") is None
    files.write_atomic("/c/.kafka_cleanshutdown", text)
    assert read_clean_shutdown(files, "/c") == epoch


def test_names_of_directories() -> None:
    name = TopicPartition("my-topic.x-1", 12)
    unique = "0123456789abcdef" * 2
    assert partition_directory(name) == "my-topic.x-1-12"
    assert parse_partition_directory("my-topic.x-1-12") == (name, Kind.LIVE)
    for kind in (Kind.DELETE, Kind.FUTURE, Kind.STRAY):
        text = partition_directory(name, kind, unique)
        assert text == f"my-topic.x-1-12.{unique}-{kind.value}"
        assert parse_partition_directory(text) == (name, kind)
    assert len(partition_directory(TopicPartition("t" * 249, 5), Kind.DELETE, unique)) == 255
    for other in ("__cluster_metadata-0", "lost+found", "meta.properties", "x-", "-delete"):
        assert parse_partition_directory(other) is None


def test_names_of_segment_files() -> None:
    assert parse_segment_file("00000000000000000042.timeindex") == (42, ".timeindex", "")
    assert parse_segment_file("00000000000000000042.log.swap") == (42, ".log", ".swap")
    for other in ("42.log", "00000000000000000042.tmp", "partition.metadata", "000000000000000000x2.log", ""):
        assert parse_segment_file(other) is None


def filled_index(count: int) -> OffsetIndex:
    files = MemoryFiles()
    files.makedirs("/i")
    index = OffsetIndex(files, "/i/x.index", 1_000)
    index.start_over()
    for i in range(1, count + 1):
        index.append(1_000 + 10 * i, 100 * i)
    return index


@pytest.mark.parametrize("count", [0, 1, 3, 511, 512, 513, 2_000])
def test_a_sealed_index_answers_as_the_one_in_memory(count: int) -> None:
    active, sealed = filled_index(count), filled_index(count)
    sealed.seal()
    for offset in [*range(995, 1_030), *range(990, 1_000 + 10 * count + 30, 7)]:
        assert active.lookup(offset) == sealed.lookup(offset)
        below = (offset - 1_000) // 10
        assert active.lookup(offset) == (
            (1_000 + 10 * min(below, count), 100 * min(below, count)) if below > 0 and count else (1_000, 0)
        )
    for position in range(0, 100 * count + 300, 37):
        assert active.floor(position) == sealed.floor(position)
        assert active.floor(position)[1] == 100 * min(position // 100, count)
    assert active.last() == sealed.last()
    assert len(active) == len(sealed) == count


def test_a_time_index_takes_only_what_is_newer() -> None:
    files = MemoryFiles()
    files.makedirs("/i")
    index = TimeIndex(files, "/i/x.timeindex", 100)
    index.start_over()
    for timestamp, offset in ((500, 101), (500, 105), (400, 106), (700, 110), (900, 120)):
        index.append_if_larger(timestamp, offset)
    assert [index.lookup(at) for at in (499, 500, 699, 700, 5_000)] == [
        (-1, 100), (500, 101), (500, 101), (700, 110), (900, 120),
    ]  # fmt: skip
    index.truncate(110)
    assert (index.last(), len(index)) == ((500, 101), 1)
