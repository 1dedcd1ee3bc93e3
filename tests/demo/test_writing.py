"""The writer writes what it counts, through every rotation, and nothing else."""

from __future__ import annotations

import gzip
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.demo.rotating import KEPT, RotatingLog
from penstock.demo.traffic import number_of
from penstock.demo.writing import Count
from tests.patience import Patience, within

PATIENCE_S = 30.0


def read(folder: Path) -> list[bytes]:
    """All lines of a log, oldest first."""
    found: list[bytes] = []
    packed = sorted(folder.glob("access.log.*.gz"), key=lambda path: -int(path.suffixes[-2][1:]))
    for path in [*packed, folder / "access.log.1", folder / "access.log"]:
        if path.exists():
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            found += data.split(b"\n")[:-1]
    return found


def written(folder: Path, *arguments: str, until_rotations: int = 3) -> Count:
    """The count of a writer that was stopped after some rotations."""
    writer = subprocess.Popen(
        [
            sys.executable, "-P", "-m", "penstock.demo.writing", str(folder / "web"), "--seconds", "20",
            "--lines-per-s", "2000", "--rotate-every-s", "0.3", "--broken-share", "0.01", *arguments,
        ]
    )  # fmt: skip
    patience = Patience(PATIENCE_S)
    try:
        while (count := Count.load(folder / "count.json")) is None or count.rotations < until_rotations:
            assert writer.poll() is None
            assert not patience.over()
            time.sleep(0.02)
    finally:
        writer.terminate()
    assert writer.wait(within(PATIENCE_S)) == 0
    found = Count.load(folder / "count.json")
    assert found is not None
    return found


def test_every_line_that_is_counted_is_in_the_log_once_and_in_order(tmp_path: Path) -> None:
    count = written(tmp_path)
    lines = read(tmp_path / "web")
    assert [number_of(line) for line in lines] == list(range(count.lines))
    assert (count.done, sum(len(line) + 1 for line in lines)) == (True, count.bytes)
    assert set(count.broken) <= set(range(count.lines))


def test_a_line_that_is_to_be_lost_is_counted_and_missing(tmp_path: Path) -> None:
    count = written(tmp_path, "--lose", "50", until_rotations=1)
    numbers = [number_of(line) for line in read(tmp_path / "web")]
    assert sorted({*range(count.lines)} - {*numbers}) == [50]


def test_numbers_begin_where_they_are_told_to(tmp_path: Path) -> None:
    count = written(tmp_path, "--first", "1000", until_rotations=1)
    assert [number_of(line) for line in read(tmp_path / "web")] == list(range(1000, 1000 + count.lines))


def test_rotation_renames_then_compresses_and_forgets_the_oldest(tmp_path: Path) -> None:
    log = RotatingLog(tmp_path / "access.log")
    for number in range(KEPT + 3):
        log.write(f"{number}\n".encode())
        log.rotate()
    log.close()
    old = {f"access.log.{number}.gz" for number in range(2, KEPT + 1)}
    assert {path.name for path in tmp_path.iterdir()} == {"access.log", "access.log.1", *old}
    assert read(tmp_path) == [str(number).encode() for number in range(3, KEPT + 3)]


def test_whoever_has_the_file_open_reads_it_to_its_end_after_a_rotation(tmp_path: Path) -> None:
    log = RotatingLog(tmp_path / "access.log")
    log.write(b"one\n")
    with (tmp_path / "access.log").open("rb") as reader:
        log.rotate()
        log.write(b"two\n")
        assert reader.read() == b"one\n"
    log.close()
    assert (tmp_path / "access.log").read_bytes() == b"two\n"


@pytest.mark.parametrize("text", ["", "{}"])
def test_a_count_that_is_not_there_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "count.json"
    if not text:
        assert Count.load(path) is None
    else:
        path.write_text(text)
        assert Count.load(path) == Count()
