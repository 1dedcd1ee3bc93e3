"""The comparison of replicas sees what differs, and only that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat.batches import Record, encode_batch
from tests.faults.cluster.replicas import assert_identical, assert_metadata_identical


def batch(base: int, *values: str) -> bytes:
    encoded = bytearray(encode_batch([Record(value.encode()) for value in values], base_timestamp_ms=1))
    encoded[:8] = base.to_bytes(8, "big")
    return bytes(encoded)


ONE, TWO, THREE = batch(0, "a", "b"), batch(2, "c"), batch(3, "d")


def node(home: Path, committed: int, *segments: tuple[int, bytes], name: str = "t-0") -> Path:
    """A data directory with one partition."""
    (home / name).mkdir(parents=True)
    for base, data in segments:
        (home / name / f"{base:020}.log").write_bytes(data)
    (home / "replication-offset-checkpoint").write_text(f"0\n1\nt 0 {committed}\n")
    return home


def test_the_same_batches_may_lie_in_other_segments(tmp_path: Path) -> None:
    one = node(tmp_path / "1", 3, (0, ONE + TWO))
    two = node(tmp_path / "2", 3, (0, ONE), (2, TWO))
    assert assert_identical({1: one, 2: two}, "t", 0) == 3


def test_what_is_not_committed_may_differ(tmp_path: Path) -> None:
    one = node(tmp_path / "1", 3, (0, ONE + TWO + THREE))
    two = node(tmp_path / "2", 2, (0, ONE + TWO))
    assert assert_identical({1: one, 2: two}, "t", 0) == 3


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (ONE + batch(2, "x"), "differs between nodes 1 and 2"),
        (ONE, "differs between nodes 1 and 2"),
        (batch(0, "a") + batch(1, "b") + TWO, "differs between nodes 1 and 2"),
        (ONE + TWO[:-1], "ends inside a batch"),
    ],
    ids=["another value", "too short", "other batches", "torn"],
)
def test_what_is_committed_may_not_differ(tmp_path: Path, other: bytes, words: str) -> None:
    one = node(tmp_path / "1", 3, (0, ONE + TWO))
    two = node(tmp_path / "2", 3, (0, other))
    with pytest.raises(AssertionError, match=words):
        assert_identical({1: one, 2: two}, "t", 0)


def test_a_replica_that_retention_has_emptied_agrees_with_one_that_it_has_not(tmp_path: Path) -> None:
    one = node(tmp_path / "1", 3, (0, ONE + TWO))
    emptied = node(tmp_path / "2", 3, (3, b""))
    assert assert_identical({1: one, 2: emptied}, "t", 0) == 3
    short = node(tmp_path / "3", 3, (2, b""))
    with pytest.raises(AssertionError, match="differs between nodes 1 and 3"):
        assert_identical({1: one, 3: short}, "t", 0)


def test_all_may_not_be_shorter_than_what_is_committed(tmp_path: Path) -> None:
    nodes = {number: node(tmp_path / str(number), 4, (0, ONE + TWO)) for number in (1, 2)}
    with pytest.raises(AssertionError, match="ends at 3, committed are 4"):
        assert_identical(nodes, "t", 0)


def in_epoch(epoch: int, data: bytes) -> bytes:
    return data[:12] + epoch.to_bytes(4, "big") + data[16:]


def metadata(home: Path, base: int, *batches: bytes) -> Path:
    return node(home, 0, (base, b"".join(batches)), name="__cluster_metadata-0")


def test_metadata_logs_agree_where_they_overlap(tmp_path: Path) -> None:
    whole = metadata(tmp_path / "1", 0, ONE, TWO, THREE)
    behind_a_snapshot = metadata(tmp_path / "2", 2, TWO)
    assert_metadata_identical({1: whole, 2: behind_a_snapshot}, 3)
    other = metadata(tmp_path / "3", 0, ONE, batch(2, "x"))
    with pytest.raises(AssertionError, match="__cluster_metadata differs between nodes 1 and 3"):
        assert_metadata_identical({1: whole, 3: other}, 2)
    with pytest.raises(AssertionError, match="ends at 3 at most, committed are 4"):
        assert_metadata_identical({3: other}, 4)


def test_what_a_stopped_leader_kept_for_itself_may_differ_from_what_its_successor_wrote(tmp_path: Path) -> None:
    old = metadata(tmp_path / "1", 0, ONE, TWO, THREE)
    new = metadata(tmp_path / "2", 0, ONE, in_epoch(5, batch(2, "x")), in_epoch(5, batch(3, "y")))
    assert_metadata_identical({1: old, 2: new}, 2)
    with pytest.raises(AssertionError, match="__cluster_metadata differs between nodes 1 and 2"):
        assert_metadata_identical({1: old, 2: new}, 3)


def test_logs_that_meet_again_in_one_epoch_may_not_have_parted_before(tmp_path: Path) -> None:
    one = metadata(tmp_path / "1", 0, ONE, TWO, in_epoch(5, THREE))
    two = metadata(tmp_path / "2", 0, ONE, in_epoch(4, batch(2, "x")), in_epoch(5, THREE))
    with pytest.raises(AssertionError, match="__cluster_metadata differs between nodes 1 and 2"):
        assert_metadata_identical({1: one, 2: two}, 0)
