"""The disk and its double in memory."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.model.ids import Millis
from penstock.model.ports import Files
from penstock.storage.files import DiskFiles
from penstock.storage.reading import FileSpan
from penstock.testing.memory_files import MemoryFiles

Made = tuple[Files, str]


@pytest.fixture(params=["disk", "memory"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Made:
    if request.param == "disk":
        return DiskFiles(max_open=4), str(tmp_path)
    files = MemoryFiles()
    files.makedirs("/tmp/somewhere")
    return files, "/tmp/somewhere"


def test_both_read_back_what_was_written(made: Made) -> None:
    files, root = made
    file = files.open(f"{root}/a", create=True)
    assert file.pwritev((b"hello ", memoryview(b"world"), bytearray(b"!")), 2) == 12
    assert file.pread(100, 0) == b"\0\0hello world!"
    assert file.pread(5, 8) == b"world"
    assert file.pread(5, 99) == b""
    assert (file.size(), files.size(f"{root}/a")) == (14, 14)
    file.truncate(7)
    assert files.read(f"{root}/a") == b"\0\0hello"


def test_nobody_but_the_owner_can_read_what_is_stored(tmp_path: Path) -> None:
    """A log directory may lie where others can look, as in Kafka's packages."""
    files, root = DiskFiles(), str(tmp_path / "logs")
    files.makedirs(root)
    files.open(f"{root}/a.log", create=True).close()
    files.write_atomic(f"{root}/bootstrap.checkpoint", b"keys")
    files.lock(f"{root}/.lock").close()
    modes = {name: stat.S_IMODE(os.stat(f"{root}/{name}").st_mode) for name in (*os.listdir(root), ".")}
    assert modes == {"a.log": 0o600, "bootstrap.checkpoint": 0o600, ".lock": 0o600, ".": 0o700}


def test_both_keep_names_as_a_disk_does(made: Made) -> None:
    files, root = made
    with pytest.raises(FileNotFoundError):
        files.open(f"{root}/absent")
    with pytest.raises(FileNotFoundError):
        files.read(f"{root}/absent")
    with pytest.raises(FileNotFoundError):
        files.remove(f"{root}/absent")
    files.makedirs(f"{root}/x/y")
    files.write_atomic(f"{root}/x/b", b"1")
    files.write_atomic(f"{root}/x/b", b"22")
    files.rename(f"{root}/x/b", f"{root}/x/c")
    assert files.listdir(f"{root}/x") == ["c", "y"]
    assert (files.isdir(f"{root}/x/y"), files.isdir(f"{root}/x/c"), files.exists(f"{root}/x/b")) == (True, False, False)
    files.rename(f"{root}/x", f"{root}/z")
    assert files.read(f"{root}/z/c") == b"22"
    files.rmtree(f"{root}/z")
    assert not files.exists(f"{root}/z")


def test_both_know_file_times_and_space(made: Made) -> None:
    files, root = made
    files.write_atomic(f"{root}/a", b"")
    files.set_mtime_ms(f"{root}/a", Millis(1_234_567))
    assert files.mtime_ms(f"{root}/a") == 1_234_567
    total, usable = files.usage(root)
    assert total >= usable > 0


def test_both_give_a_lock_to_one_only(made: Made) -> None:
    files, root = made
    held = files.lock(f"{root}/.lock")
    with pytest.raises(BlockingIOError):
        files.lock(f"{root}/.lock")
    held.close()
    files.lock(f"{root}/.lock").close()


def test_more_files_than_descriptors_work_as_if_there_were_enough(tmp_path: Path) -> None:
    files = DiskFiles(max_open=8)
    opened = [files.open(f"{tmp_path}/{i}", create=True) for i in range(50)]
    for i, file in enumerate(opened):
        file.pwritev((b"%03d" % i,), 0)
    assert files.open_count <= 8
    assert [file.pread(3, 0) for file in opened] == [b"%03d" % i for i in range(50)]
    assert files.open_count <= 8


def test_a_file_in_use_is_closed_last(tmp_path: Path) -> None:
    files = DiskFiles(max_open=8)
    hot = files.open(f"{tmp_path}/hot", create=True)
    descriptor = hot.fileno()
    for i in range(60):
        hot.pwritev((b"x",), i)
        files.open(f"{tmp_path}/{i}", create=True)
    assert hot.fileno() == descriptor


def test_a_span_reads_on_after_its_file_was_closed_renamed_and_removed(tmp_path: Path) -> None:
    files = DiskFiles(max_open=8)
    file = files.open(f"{tmp_path}/a", create=True)
    file.pwritev((b"0123456789",), 0)
    span = FileSpan(file, 2, 6)
    for i in range(30):
        files.open(f"{tmp_path}/other{i}", create=True)
    file.close()
    os.rename(tmp_path / "a", tmp_path / "b")
    os.unlink(tmp_path / "b")
    assert (span.read(), span.read(1), span.read(1, 3), span.read(4, 99), len(span)) == (
        b"234567", b"34567", b"345", b"67", 6,
    )  # fmt: skip


def test_a_sync_in_flight_outlives_eviction(tmp_path: Path) -> None:
    files = DiskFiles(max_open=8)
    file = files.open(f"{tmp_path}/a", create=True)
    pinned = file.pin()
    file.close()
    os.unlink(tmp_path / "a")
    pinned.sync()


def test_a_write_of_many_buffers_and_a_short_write_are_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = DiskFiles(max_open=8).open(f"{tmp_path}/a", create=True)
    assert file.pwritev([b"ab"] * 3_000, 0) == 6_000
    assert file.pread(9_999, 0) == b"ab" * 3_000

    def stingy(write: Callable[..., int]) -> Callable[..., int]:
        return lambda fd, buffers, position: write(fd, [bytes(buffers[0])[:3]], position)

    monkeypatch.setattr(os, "pwritev", stingy(os.pwritev))
    file.pwritev((b"0123", b"456789"), 0)
    assert file.pread(10, 0) == b"0123456789"


@pytest.mark.parametrize("taken", [0, 3, 10])
def test_a_short_write_of_one_buffer_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    file = DiskFiles(max_open=8).open(f"{tmp_path}/a", create=True)
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, position: whole(fd, bytes(data)[:taken], position))
    assert file.pwritev((memoryview(b"0123456789"),), 2) == 10
    assert file.pread(12, 0) == b"\0\0" + b"0123456789"


def test_a_disk_that_takes_nothing_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = DiskFiles(max_open=8).open(f"{tmp_path}/a", create=True)
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    monkeypatch.setattr(os, "pwritev", lambda *_: 0)
    with pytest.raises(OSError, match="accepted no bytes"):
        file.pwritev((b"0123456789",), 0)


# -- what memory forgets


def memory() -> MemoryFiles:
    files = MemoryFiles()
    files.makedirs("/d")
    files.sync_dir("/")
    return files


def test_unsynced_bytes_are_gone_after_a_crash_and_synced_ones_are_not() -> None:
    files = memory()
    file = files.open("/d/a", create=True)
    file.pwritev((b"safe",), 0)
    file.sync()
    files.sync_dir("/d")
    file.pwritev((b"SAFE lost",), 0)
    file.truncate(2)
    file.pwritev((b"xyz",), 2)
    files.crash()
    assert files.read("/d/a") == b"safe"
    with pytest.raises(OSError, match="before the crash"):
        file.pread(1, 0)


def test_a_part_of_the_unsynced_tail_may_survive() -> None:
    files = memory()
    file = files.open("/d/a", create=True)
    file.pwritev((b"safe",), 0)
    file.sync()
    files.sync_dir("/d")
    file.pwritev((b"123456",), 4)
    files.crash(lambda path, unsynced: {("/d/a", 6): 2}[path, unsynced])
    assert files.read("/d/a") == b"safe12"


def test_unsynced_names_are_gone_after_a_crash() -> None:
    files = memory()
    files.open("/d/old", create=True).sync()
    files.sync_dir("/d")
    files.rename("/d/old", "/d/new")
    files.open("/d/other", create=True).sync()
    files.crash()
    assert files.listdir("/d") == ["old"]
    files.remove("/d/old")
    files.crash(keep_names=True)
    assert files.listdir("/d") == []


def test_a_kill_loses_nothing_but_the_locks() -> None:
    files = memory()
    files.lock("/d/.lock")
    files.open("/d/a", create=True).pwritev((b"kept",), 0)
    files.kill()
    files.lock("/d/.lock")
    assert files.read("/d/a") == b"kept"


def test_a_full_disk_takes_what_fits_and_has_room_again_after_a_removal() -> None:
    files = MemoryFiles(capacity_bytes=10)
    files.makedirs("/d")
    file = files.open("/d/a", create=True)
    file.pwritev((b"12345678",), 0)
    with pytest.raises(OSError, match="No space left") as full:
        file.pwritev((b"abcd",), 8)
    assert full.value.errno == errno.ENOSPC
    assert files.read("/d/a") == b"12345678ab"
    files.remove("/d/a")
    assert files.usage("/d") == (10, 10)


def test_a_fault_hits_writes_under_its_path_only() -> None:
    files = memory()
    files.makedirs("/e")
    sick, well = files.open("/d/a", create=True), files.open("/e/a", create=True)
    files.fail("/d", errno.EROFS)
    with pytest.raises(OSError, match="Read-only"):
        sick.pwritev((b"x",), 0)
    with pytest.raises(OSError, match="Read-only"):
        files.write_atomic("/d/b", b"")
    assert sick.pread(1, 0) == b""
    well.pwritev((b"x",), 0)
    files.fail("/d", errno.EIO, reads=True)
    with pytest.raises(OSError, match="Input/output"):
        sick.pread(1, 0)
    files.heal("/d")
    sick.pwritev((b"x",), 0)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A directory in its place can be opened; only the read fails, and that call has no name."""
    with pytest.raises(OSError, match="Is a directory") as refused:
        DiskFiles().read(str(tmp_path))
    assert refused.value.filename == str(tmp_path)


def test_a_file_that_is_open_and_fails_is_named(tmp_path: Path) -> None:
    """A disk that fails under an open file, and a full one: the calls are told a descriptor and no name."""
    files = DiskFiles(max_open=8)
    in_its_place, full = files.open(str(tmp_path), writable=False), files.open("/dev/full")
    failing: list[tuple[str, Callable[[], object]]] = [
        (str(tmp_path), lambda: in_its_place.pread(1, 0)),
        (str(tmp_path), lambda: in_its_place.pin().pread(1, 0)),
        (str(tmp_path), lambda: in_its_place.truncate(0)),
        ("/dev/full", lambda: full.pwritev((b"1",), 0)),
        ("/dev/full", lambda: full.pwritev((b"1", b"2"), 0)),
        ("/dev/full", lambda: full.pin().pwritev((b"1",), 0)),
        ("/dev/full", lambda: full.sync()),
    ]
    for path, call in failing:
        with pytest.raises(OSError, match="Errno") as refused:
            call()
        assert refused.value.filename == path
