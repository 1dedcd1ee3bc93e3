"""A disk whose power is cut forgets what was not synced, and nothing else."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.cluster.disks import Disk, disks_allowed


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    if not disks_allowed():
        pytest.skip("mounting a disk takes root")
    made = Disk(tmp_path / "image", tmp_path / "mounted")
    made.make()
    yield made
    made.close()


def test_a_power_cut_takes_what_was_not_synced_and_leaves_the_rest(disk: Disk) -> None:
    file = os.open(disk.path / "file", os.O_RDWR | os.O_CREAT)
    os.pwrite(file, b"synced", 0)
    os.fsync(file)
    os.pwrite(file, b"forgotten", 6)
    disk.cut_power()
    with pytest.raises(OSError, match="Input/output error") as refused:
        os.fsync(file)
    assert refused.value.errno == errno.EIO
    os.close(file)
    disk.repair()
    assert (disk.path / "file").read_bytes().rstrip(b"\0") == b"synced"


def test_a_full_disk_takes_nothing_until_there_is_room(disk: Disk) -> None:
    disk.fill()
    with pytest.raises(OSError, match="No space left"):
        (disk.path / "more").write_bytes(bytes(1 << 16))
    disk.make_room()
    (disk.path / "more").write_bytes(bytes(1 << 16))
