"""An agent that was away while its files were rotated, with `paths` that match only the live name."""

from __future__ import annotations

import gzip
import json
import logging
import os
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.faults.agent.tailing import Recording, append, numbered, tailing, until

KB_OF_LINES = 40
"""So many numbered lines are more than 1 KB."""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def rotate(log: Path, *, packed: bool = False) -> None:
    """As logrotate does it: each moves up by one, the live one becomes the first, the time of a file is kept."""
    numbers = [int(each.name.split(".")[2]) for each in log.parent.glob(f"{log.name}.*")]
    for number in sorted(numbers, reverse=True):
        for suffix in ("", ".gz"):
            older = log.with_name(f"{log.name}.{number}{suffix}")
            if older.exists():
                older.rename(log.with_name(f"{log.name}.{number + 1}{suffix}"))
    first = log.with_name(f"{log.name}.1")
    log.rename(first)
    log.touch()
    if packed:
        pack(first)


def pack(path: Path) -> Path:
    times, found = path.stat(), path.with_name(f"{path.name}.gz")
    found.write_bytes(gzip.compress(path.read_bytes()))
    os.utime(found, ns=(times.st_atime_ns, times.st_mtime_ns))
    path.unlink()
    return found


def copytruncate(log: Path) -> None:
    shutil.copyfile(log, log.with_name(f"{log.name}.1"))
    os.truncate(log, 0)


def in_order(channel: Recording, *lines: list[bytes]) -> None:
    """Exactly these, each once, in the order in which they were written."""
    assert channel.counts == Counter(line for each in lines for line in each)
    assert channel.lines == [line for each in lines for line in each]


@pytest.mark.parametrize("packed", [False, True])
async def test_three_thousand_lines_across_rotations_while_it_is_away(logs: Path, state: Path, packed: bool) -> None:
    log, channel, lines = logs / "access.log", Recording(), numbered("line", 0, 3000)
    append(log, lines[:700])
    async with tailing(logs / "*.log", state, channel) as life:
        await channel.wait_for(*lines[:700])
        await life.all_read()
    append(log, lines[700:1000])
    for begin in (1000, 1700, 2400):
        rotate(log, packed=packed)
        append(log, lines[begin : begin + 700])
    async with tailing(logs / "*.log", state, channel) as life:
        await until(lambda: life.channel.lines[-1] == lines[-1])
        await life.all_read()
    in_order(channel, lines)
    assert {portion.origin.path for portion in channel.portions} == {str(log)}


async def once_read(logs: Path, state: Path, lines: list[bytes], channel: Recording, **settings: Any) -> None:
    """A first life, in which these lines of the live file are read."""
    append(logs / "access.log", lines)
    async with tailing(logs / "access.log", state, channel, **settings) as life:
        await channel.wait_for(*lines)
        await life.all_read()


SIZES = pytest.mark.parametrize("size", [3, KB_OF_LINES])


@SIZES
async def test_a_half_read_file_is_found_by_its_inode_whatever_its_name_is(logs: Path, state: Path, size: int) -> None:
    channel = Recording()
    first, late, second = (numbered(name, 0, size) for name in ("first", "late", "second"))
    await once_read(logs, state, first, channel)
    append(logs / "access.log", late)
    (logs / "access.log").rename(logs / "kept for the auditors")
    append(logs / "access.log", second)
    async with tailing(logs / "*.log", state, channel) as life:
        await channel.wait_for(*second)
        await life.all_read()
        assert life.input.status().missed == 0
    in_order(channel, first, late, second)


@pytest.mark.parametrize(
    "name",
    [
        "access.log.1",
        "access.log.0",
        "access.log-20261117",
        "access.log-20261117-1794934277",
        "access.log.2026-11-17",
        "access.log.2026-11-17_10-30-00",
        "access-20261117.log",
        "access.2026-11-17.log",
        "access.log.old",
    ],
)
@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
async def test_every_name_that_rotation_gives_is_known(logs: Path, state: Path, name: str, suffix: str) -> None:
    """What was there in between was never seen by anybody; the file that had been read is gone."""
    channel = Recording()
    first, between, second = (numbered(name, 0, KB_OF_LINES) for name in ("first", "between", "second"))
    await once_read(logs, state, first, channel)
    (logs / "access.log").unlink()
    append(logs / "access.log", between)
    content = (logs / "access.log").read_bytes()
    packed = {"": content, ".gz": gzip.compress(content), ".zst": zstandard.compress(content)}[suffix]
    (logs / f"{name}{suffix}").write_bytes(packed)
    (logs / "access.log").unlink()
    append(logs / "access.log", second)
    async with tailing(logs / "access.log", state, channel) as life:
        await channel.wait_for(*second)
        await life.all_read()
    in_order(channel, first, between, second)


@SIZES
async def test_copytruncate_while_it_is_away(logs: Path, state: Path, size: int) -> None:
    log, channel = logs / "access.log", Recording()
    first, late, second = (numbered(name, 0, size) for name in ("first", "late", "second"))
    await once_read(logs, state, first, channel)
    append(log, late)
    copytruncate(log)
    append(log, second)
    async with tailing(log, state, channel) as life:
        await channel.wait_for(*second)
        await life.all_read()
        assert life.input.status().missed == 0
    in_order(channel, first, late, second)


async def test_copytruncate_while_it_runs_leaves_nothing_in_the_copy(logs: Path, state: Path) -> None:
    """The last lines before the copy are written and gone from the live file between two looks."""
    log, channel, written = logs / "access.log", Recording(), list[bytes]()
    async with tailing(log, state, channel) as life:
        for number in range(5):
            lines, late = numbered(f"day {number}", 0, KB_OF_LINES), numbered(f"late {number}", 0, 3)
            append(log, lines)
            await channel.wait_for(*lines)
            await until(lambda: not life.input._followed.disturbed)  # type: ignore[attr-defined]  # its inside
            append(log, late)
            copytruncate(log)
            await channel.wait_for(*late)
            written += lines + late
    in_order(channel, written)


async def test_several_rotations_between_two_looks(logs: Path, state: Path) -> None:
    log, channel, written = logs / "access.log", Recording(), list[bytes]()
    append(log, [b"the first"])
    async with tailing(log, state, channel):
        await channel.wait_for(b"the first")
        written.append(b"the first")
        for number in range(3):
            for part in range(4):
                lines = numbered(f"day {number}.{part}", 0, KB_OF_LINES)
                append(log, lines)
                written += lines
                rotate(log)
            await channel.wait_for(*written)
    in_order(channel, written)


@pytest.mark.parametrize("from_end", [False, True])
async def test_what_is_beside_a_file_at_its_first_sight_is_never_read(logs: Path, state: Path, from_end: bool) -> None:
    log, channel = logs / "access.log", Recording()
    old, older = numbered("old", 0, KB_OF_LINES), numbered("older", 0, KB_OF_LINES)
    append(log, numbered("first", 0, KB_OF_LINES))
    append(logs / "access.log.1", old)
    append(logs / "access.log.2", older)
    pack(logs / "access.log.2")
    written = [] if from_end else numbered("first", 0, KB_OF_LINES)
    async with tailing(logs / "*.log", state, channel, from_end=from_end) as life:
        await until(lambda: life.input.status().files == 1)
        await life.all_read()
    for number in range(3):
        lines = numbered(f"day {number}", 0, KB_OF_LINES)
        append(log, lines)
        written += lines
        rotate(log)
        pack(logs / "access.log.2")
        async with tailing(logs / "*.log", state, channel, from_end=from_end) as life:
            await channel.wait_for(*written)
            await life.all_read()
            assert life.input.status().missed == 0
    in_order(channel, written)


async def test_a_copy_beside_an_untouched_file_is_left_alone(logs: Path, state: Path) -> None:
    log, channel, lines = logs / "access.log", Recording(), numbered("line", 0, 3)
    await once_read(logs, state, lines, channel)
    shutil.copyfile(log, logs / "access.log.old")
    async with tailing(log, state, channel) as life:
        await until(lambda: life.input.status().files == 1)
        append(log, [b"more"])
        await channel.wait_for(b"more")
    in_order(channel, lines, [b"more"])


async def test_what_is_excluded_or_another_inputs_is_left_to_them(logs: Path, state: Path) -> None:
    log, channel, first = logs / "access.log", Recording(), numbered("first", 0, KB_OF_LINES)
    await once_read(logs, state, first, channel)
    log.unlink()
    for name in ("access.log.1", "access-20261117.log", "access.log"):
        append(logs / name, numbered(name, 0, KB_OF_LINES))
    claims = {"claimed": lambda: (str(logs / "access-2*.log"),)}
    async with tailing(log, state, channel, exclude=("*.1",), clock=claims) as life:
        await channel.wait_for(*numbered("access.log", 0, KB_OF_LINES))
        await life.all_read()
    in_order(channel, first, numbered("access.log", 0, KB_OF_LINES))


async def test_patterns_that_match_each_others_rotations_read_each_file_once(logs: Path, state: Path) -> None:
    paths = (str(logs / "access.log"), str(logs / "access.log.1"), str(logs / "*.gz"))
    log, channel, written = logs / "access.log", Recording(), list[bytes]()
    for number in range(4):
        for part in range(3):
            lines = numbered(f"day {number}.{part}", 0, KB_OF_LINES)
            append(log, lines)
            written += lines
            rotate(log)
            if (logs / "access.log.2").exists():
                pack(logs / "access.log.2")
        # What was empty when it was last seen is not known again once it is compressed.
        append(log, [b"the first of %d" % number])
        written.append(b"the first of %d" % number)
        async with tailing(paths, state, channel) as life:  # type: ignore[arg-type]  # several
            await channel.wait_for(*written)
            await life.all_read()
            assert life.input.status().missed == 0
    assert channel.counts == Counter(written)


async def test_what_may_be_its_compressed_copy_is_judged_before_a_file_is_told_as_gone(
    logs: Path, state: Path, tmp_path: Path
) -> None:
    """The copy is found by its own name. It waits for a second look, and its original is given up before that."""
    log, channel = logs / "access.log", Recording()
    first, second = numbered("first", 0, 3), numbered("second", 0, 3)
    await once_read(logs, state, first[:1], channel)
    append(log, first[1:])
    # Another name keeps the inode, so no other file is given it.
    os.link(log, tmp_path / "in another folder")
    rotate(log, packed=True)
    append(log, second)
    paths, slow = (str(log), str(logs / "*.gz")), {"discover_ms": 200, "rotate_wait_ms": 1000}
    async with tailing(paths, state, channel, **slow) as life:  # type: ignore[arg-type]  # several
        await channel.wait_for(*first, *second)
        await until(lambda: not life.input._followed.disturbed)  # type: ignore[attr-defined]  # its inside
        assert life.input.status().missed == 0
    in_order(channel, first, second)


async def test_what_was_rotated_and_compressed_later_is_read_once(logs: Path, state: Path) -> None:
    log, channel = logs / "access.log", Recording()
    first, second = numbered("first", 0, 2000), numbered("second", 0, KB_OF_LINES)
    await once_read(logs, state, first[:1000], channel)
    append(log, first[1000:])
    rotate(log)
    append(log, second)
    for _ in range(2):
        async with tailing(log, state, channel) as life:
            await channel.wait_for(*first, *second)
            await until(lambda: not life.input._followed.disturbed)  # type: ignore[attr-defined]  # its inside
            if (logs / "access.log.1").exists():
                # Its time is that of now, as a compressor may leave it.
                (logs / "access.log.1.gz").write_bytes(gzip.compress((logs / "access.log.1").read_bytes()))
                (logs / "access.log.1").unlink()
                rotate(log)
                append(log, second[:1])
                await until(lambda: channel.counts[second[0]] == 2)
    in_order(channel, first, second, second[:1])


async def test_rotated_files_that_are_half_read_when_it_stops_are_read_on(logs: Path, state: Path) -> None:
    """Twice: in the first life it stands before a full channel, before the second all of them are compressed."""
    log, channel = logs / "access.log", Recording()
    days = [numbered(f"day {number}", 0, 500) for number in range(4)]
    await once_read(logs, state, days[0], channel)
    for day in days[1:]:
        rotate(log)
        append(log, day)
    channel.open = False
    async with tailing(log, state, channel, read_bytes=4096) as life:
        await until(lambda: life.input.status().files == 4)
        await until(lambda: life.input.status().events > 0)
    channel.open = True
    for path in logs.glob("access.log.*"):
        pack(path)
    async with tailing(log, state, channel) as life:
        await channel.wait_for(*days[-1])
        await life.all_read()
        assert life.input.status().missed == 0
    in_order(channel, *days)


async def test_a_file_that_is_being_drained_when_it_stops_is_found_again(logs: Path, state: Path) -> None:
    log, channel = logs / "access.log", Recording()
    lines, second = numbered("line", 0, 5000), numbered("second", 0, 10)
    append(log, lines)
    async with tailing(log, state, channel, read_bytes=4096) as life:
        await until(lambda: bool(channel.lines))
        channel.open = False
        rotate(log)
        await until(lambda: "rotated" in [file.state for file in life.input.status(details=True).details])
    append(log, second)
    channel.open = True
    async with tailing(log, state, channel) as life:
        await channel.wait_for(*second)
        await life.all_read()
    in_order(channel, lines, second)


async def test_a_link_to_a_file_that_is_rotated_elsewhere(logs: Path, state: Path, tmp_path: Path) -> None:
    """As the logs of containers are: links in one folder, the files and their rotations in another."""
    pods, channel = tmp_path / "pods", Recording()
    pods.mkdir()
    os.symlink(pods / "0.log", logs / "container.log")
    days = [numbered(f"day {number}", 0, KB_OF_LINES) for number in range(4)]
    append(pods / "0.log", days[0][:20])
    async with tailing(logs / "*.log", state, channel):
        await channel.wait_for(*days[0][:20])
    append(pods / "0.log", days[0][20:])
    for number, day in enumerate(days[1:]):
        (pods / "0.log").rename(pods / f"0.log.2026111{number}-101010")
        append(pods / "0.log", day)
    pack(pods / "0.log.20261110-101010")
    async with tailing(logs / "*.log", state, channel) as life:
        await channel.wait_for(*days[-1])
        await life.all_read()
    in_order(channel, *days)
    assert {portion.origin.path for portion in channel.portions} == {str(logs / "container.log")}


# What cannot be found is told.


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "penstock.agent")
    return caplog


async def test_a_half_read_file_that_is_gone_is_told_once(
    logs: Path, state: Path, tmp_path: Path, told: pytest.LogCaptureFixture
) -> None:
    log, channel, first, second = logs / "access.log", Recording(), numbered("first", 0, 10), numbered("second", 0, 10)
    await once_read(logs, state, first, channel)
    append(log, numbered("late", 0, 10))
    log.rename(tmp_path / "in another folder")
    append(log, second)
    async with tailing(log, state, channel) as life:
        await channel.wait_for(*second)
        await until(lambda: life.input.status().missed == 1)
        assert life.input.status().words == "follows 1 file; 1 went away before all was read, see the log"
    (said,) = told.messages
    size = sum(len(line) + 1 for line in first)
    assert said.startswith(
        f"input in: {log}: is gone before it was read to its end: not read is at most what came after its first"
        f" {size} bytes, from 20"
    )
    async with tailing(log, state, channel) as life:
        await life.all_read()
        append(log, [b"more"])
        await channel.wait_for(b"more")
        assert life.input.status().missed == 0
    assert len(told.messages) == 1
    in_order(channel, first, second, [b"more"])


async def test_a_truncation_without_a_copy_is_told(logs: Path, state: Path, told: pytest.LogCaptureFixture) -> None:
    log, channel, first, second = logs / "access.log", Recording(), numbered("first", 0, 10), numbered("second", 0, 5)
    await once_read(logs, state, first, channel)
    append(log, numbered("late", 0, 10))
    os.truncate(log, 0)
    append(log, second)
    async with tailing(log, state, channel) as life:
        await channel.wait_for(*second)
        await until(lambda: life.input.status().missed == 1)
    assert "was truncated before it was read to its end, and no copy of it was found" in told.messages[0]
    in_order(channel, first, second)


async def test_a_rotation_that_is_missing_is_told(logs: Path, state: Path, told: pytest.LogCaptureFixture) -> None:
    log, channel = logs / "access.log", Recording()
    days = [numbered(f"day {number}", 0, KB_OF_LINES) for number in range(5)]
    await once_read(logs, state, days[0], channel)
    for day in days[1:]:
        rotate(log)
        append(log, day)
    (logs / "access.log.2").unlink()
    async with tailing(log, state, channel) as life:
        await channel.wait_for(*days[-1])
        await until(lambda: life.input.status().missed == 1)
    (said,) = told.messages
    assert said.startswith(f"input in: {log}.2: is missing among the rotated files: at most all lines from 20")
    in_order(channel, days[0], days[1], days[3], days[4])


async def test_a_rotation_that_cannot_be_inflated_is_told(
    logs: Path, state: Path, told: pytest.LogCaptureFixture
) -> None:
    log, channel, first, third = logs / "access.log", Recording(), numbered("first", 0, 40), numbered("third", 0, 40)
    await once_read(logs, state, first, channel)
    rotate(log)
    rotate(log)
    (logs / "access.log.1").write_bytes(b"BZh9...")
    (logs / "access.log.1").rename(logs / "access.log.1.bz2")
    append(log, third)
    async with tailing(log, state, channel) as life:
        await channel.wait_for(*third)
        await until(lambda: life.input.status().missed == 1)
    (said,) = told.messages
    assert said.endswith("is compressed in a form that is not understood: its 7 bytes are not read")
    in_order(channel, first, third)


async def test_rotated_files_that_were_read_are_not_missed_when_they_go(
    logs: Path, state: Path, told: pytest.LogCaptureFixture
) -> None:
    log, channel, written = logs / "access.log", Recording(), list[bytes]()
    for number in range(6):
        lines = numbered(f"day {number}", 0, KB_OF_LINES)
        append(log, lines)
        written += lines
        async with tailing(log, state, channel) as life:
            await channel.wait_for(*lines)
            rotate(log)
            await until(lambda: not life.input._followed.disturbed)  # type: ignore[attr-defined]  # its inside
            if number == 3:
                (logs / "access.log.3").unlink()
        if number == 4:
            (logs / "access.log.3").unlink()
    assert told.messages == []
    in_order(channel, written)


async def test_many_that_are_gone_are_told_in_few_words(
    logs: Path, state: Path, told: pytest.LogCaptureFixture
) -> None:
    channel = Recording()
    for number in range(50):
        append(logs / f"{number}.log", [b"line %d" % number])
    async with tailing(logs / "*.log", state, channel):
        await until(lambda: channel.count == 50)
    for path in logs.glob("*.log"):
        path.unlink()
    async with tailing(logs / "*.log", state, channel) as life:
        await until(lambda: life.input.status().missed == 50)
    assert len(told.messages) == 11
    assert told.messages[-1] == "input in: 40 more files are gone before they were read to their end"


async def test_positions_of_earlier_agents_are_gone_on_from(logs: Path, state: Path) -> None:
    """Theirs say nothing of horizons: what is younger than the half-read file is read, nothing else."""
    log, channel = logs / "access.log", Recording()
    days = [numbered(f"day {number}", 0, KB_OF_LINES) for number in range(4)]
    append(logs / "access.log.1", numbered("older", 0, KB_OF_LINES))
    await once_read(logs, state, days[0][:20], channel)
    forget_what_earlier_agents_did_not_know(state / "positions.db")
    append(log, days[0][20:])
    for day in days[1:]:
        rotate(log)
        append(log, day)
    async with tailing(log, state, channel) as life:
        await channel.wait_for(*days[-1])
        await life.all_read()
    in_order(channel, *days)


def forget_what_earlier_agents_did_not_know(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        for key, text in connection.execute("SELECT key, facts FROM positions").fetchall():
            known = {
                name: value
                for name, value in json.loads(text).items()
                if name not in ("size", "real", "ended", "horizon", "settled")
            }
            connection.execute("UPDATE positions SET facts = ? WHERE key = ?", (json.dumps(known), key))
