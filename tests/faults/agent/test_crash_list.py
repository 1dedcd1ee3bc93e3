"""Every case in which agents are known to lose or double lines. Nothing is lost; what may come twice is said."""

from __future__ import annotations

import asyncio
import gzip
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard

from penstock.agent.settings import read_agent
from penstock.testing import broker
from tests.faults.agent.tailing import Recording, append, numbered, start_tail, tailing
from tests.patience import Patience, until, within
from tests.walks.agent.scene import running, settings_of, values_of

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


def once(channel: Recording, *lines: list[bytes]) -> None:
    """Exactly these, each once."""
    assert channel.counts == Counter(line for each in lines for line in each)


# The 50-of-50 inode reuse.


async def test_inode_reuse_50_of_50_while_it_runs(logs: Path, state: Path) -> None:
    log, written = logs / "app.log", list[bytes]()
    async with tailing(logs / "*.log", state) as life:
        for number in range(50):
            log.unlink(missing_ok=True)
            lines = numbered(f"life {number}", 0, 5)
            append(log, lines)
            written += lines
            await life.channel.wait_for(*lines)
        once(life.channel, written)


def uses_inodes_again(folder: Path) -> bool:
    """Not every file system does."""
    inodes = set()
    for _ in range(10):
        probe = folder / "probe"
        probe.touch()
        inodes.add(probe.stat().st_ino)
        probe.unlink()
    return len(inodes) == 1


async def test_inode_reuse_50_of_50_while_it_is_away(logs: Path, state: Path) -> None:
    """The new file is larger than the old position, so that its size tells nothing."""
    log, channel, written, inodes = logs / "app.log", Recording(), list[bytes](), list[int]()
    for number in range(50):
        log.unlink(missing_ok=True)
        lines = numbered(f"life {number:02}", 0, 5 + number)
        append(log, lines)
        inodes.append(log.stat().st_ino)
        written += lines
        async with tailing(log, state, channel):
            await channel.wait_for(*lines)
    once(channel, written)
    if uses_inodes_again(logs):
        assert len(set(inodes)) < 25, "this machine gives the inode of a deleted file to the next one"


# Rename and create.


async def test_rename_and_create(logs: Path, state: Path) -> None:
    log, written = logs / "app.log", list[bytes]()
    async with tailing(logs / "app.log*", state) as life:
        for number in range(10):
            lines = numbered(f"day {number}", 0, KB_OF_LINES)
            append(log, lines)
            written += lines
            if number % 2:
                await life.channel.wait_for(*lines)
            os.rename(log, logs / f"app.log.{number}")
        await life.channel.wait_for(*written)
        once(life.channel, written)


async def test_rename_out_of_what_is_followed(logs: Path, state: Path) -> None:
    log = logs / "app.log"
    first, late, second = numbered("first", 0, 10), numbered("late", 0, 10), numbered("second", 0, 10)
    append(log, first)
    async with tailing(log, state) as life:
        await life.channel.wait_for(*first)
        os.rename(log, logs / "old")
        append(logs / "old", late)
        append(log, second)
        await life.channel.wait_for(*late, *second)
        once(life.channel, first, late, second)


async def test_rename_and_create_while_it_is_away(logs: Path, state: Path) -> None:
    log, channel = logs / "app.log", Recording()
    first, late, second = (numbered(name, 0, KB_OF_LINES) for name in ("first", "late", "second"))
    append(log, first)
    async with tailing(logs / "app.log*", state, channel):
        await channel.wait_for(*first)
    append(log, late)
    os.rename(log, logs / "app.log.1")
    append(log, second)
    async with tailing(logs / "app.log*", state, channel):
        await channel.wait_for(*late, *second)
    once(channel, first, late, second)
    assert {portion.origin.path for portion in channel.portions} == {str(log)}


# Copytruncate.


@pytest.mark.parametrize("lines", [3, KB_OF_LINES, 5000])
async def test_copytruncate(logs: Path, state: Path, lines: int) -> None:
    log, written = logs / "app.log", list[bytes]()
    async with tailing(logs / "app.log*", state) as life:
        for number in range(4):
            some = numbered(f"day {number}", 0, lines)
            append(log, some)
            written += some
            # What comes between the copy and the truncation is lost to everybody.
            await life.channel.wait_for(*some)
            shutil.copyfile(log, logs / f"app.log.{number}")
            os.truncate(log, 0)
        more = numbered("more", 0, lines)
        append(log, more)
        await life.channel.wait_for(*more)
        await until(lambda: life.input.status().files == 5)
        once(life.channel, written, more)


@pytest.mark.parametrize("lines", [3, KB_OF_LINES])
async def test_copytruncate_while_it_is_away(logs: Path, state: Path, lines: int) -> None:
    """What was not read before the copy is read from the copy."""
    log, channel = logs / "app.log", Recording()
    first, late, second = (numbered(name, 0, lines) for name in ("first", "late", "second"))
    append(log, first)
    async with tailing(logs / "app.log*", state, channel):
        await channel.wait_for(*first)
    append(log, late)
    shutil.copyfile(log, logs / "app.log.1")
    os.truncate(log, 0)
    append(log, second)
    async with tailing(logs / "app.log*", state, channel):
        await channel.wait_for(*late, *second)
    once(channel, first, late, second)


async def test_a_copy_beside_its_original_is_not_sent_again(logs: Path, state: Path) -> None:
    log, lines, more = logs / "app.log", numbered("line", 0, 200), numbered("more", 0, 5)
    append(log, lines)
    async with tailing(logs / "app.log*", state) as life:
        await life.channel.wait_for(*lines)
        shutil.copyfile(log, logs / "app.log.bak")
        await until(lambda: life.input.status().files == 2)
        append(log, more)
        await life.channel.wait_for(*more)
        once(life.channel, lines, more)


# Truncate, then regrow past the offset.


@pytest.mark.parametrize("size", [3, KB_OF_LINES])
async def test_truncate_then_regrow_past_the_offset(logs: Path, state: Path, size: int) -> None:
    log, channel = logs / "app.log", Recording()
    first, second, third = numbered("first", 0, size), numbered("second", 0, size + 50), numbered("third", 0, size + 90)
    append(log, first)
    async with tailing(log, state, channel):
        await channel.wait_for(*first)
        # In one go: nobody sees it small.
        with log.open("r+b") as file:
            file.write(b"".join(line + b"\n" for line in second))
        await channel.wait_for(*second)
    with log.open("r+b") as file:
        file.write(b"".join(line + b"\n" for line in third))
    async with tailing(log, state, channel):
        await channel.wait_for(*third)
    once(channel, first, second, third)


# Partial last line.


async def test_partial_last_line(logs: Path, state: Path) -> None:
    log, channel = logs / "app.log", Recording()
    log.write_bytes(b"whole\nhal")
    async with tailing(log, state, channel):
        await channel.wait_for(b"whole")
    async with tailing(log, state, channel):
        with log.open("ab") as file:
            file.write(b"f\n")
        await channel.wait_for(b"half")
    assert channel.lines == [b"whole", b"half"]


async def test_partial_last_line_of_a_file_that_was_rotated_away(logs: Path, state: Path) -> None:
    log = logs / "app.log"
    log.write_bytes(b"whole\nrest")
    async with tailing(log, state) as life:
        await life.channel.wait_for(b"whole")
        log.unlink()
        await life.channel.wait_for(b"rest")
        assert life.channel.lines == [b"whole", b"rest"]


# Files under 1 KB.


async def test_files_under_1_kb(logs: Path, state: Path) -> None:
    channel, written = Recording(), list[bytes]()
    async with tailing(logs / "*", state, channel):
        for number in range(20):
            # The same first line in all of them: few bytes prove nothing.
            lines = [b"started", *numbered(f"job {number}", 0, number % 3)]
            append(logs / f"job-{number}", lines)
            written += lines
        await until(lambda: len(channel.lines) == len(written))
    async with tailing(logs / "*", state, channel) as life:
        append(logs / "job-3", [b"one more"])
        await channel.wait_for(b"one more")
        await until(lambda: life.input.status().files == 20)
    once(channel, written, [b"one more"])


async def test_small_files_that_come_and_go_with_the_same_content(logs: Path, state: Path) -> None:
    log = logs / "app.log"
    async with tailing(logs / "*.log", state) as life:
        for number in range(10):
            append(log, [b"started"])
            await until(lambda number=number: len(life.channel.lines) > number)
            log.unlink()
        assert life.channel.lines == [b"started"] * 10


# Equal headers.


async def test_equal_headers(logs: Path, state: Path) -> None:
    header = [b"# " + b"=" * 70 + b" %d" % number for number in range(30)]
    channel, own = Recording(), list[bytes]()
    async with tailing(logs / "*.log", state, channel):
        for number in range(4):
            lines = numbered(f"file {number}", 0, 30 + number)
            append(logs / f"{number}.log", [*header, *lines])
            own += lines
            await channel.wait_for(*lines)
    once(channel, own, header * 4)


async def test_equal_headers_across_a_rotation(logs: Path, state: Path) -> None:
    header = [b"# " + b"=" * 70 + b" %d" % number for number in range(30)]
    log, channel, own = logs / "app.log", Recording(), list[bytes]()
    async with tailing(logs / "app.log*", state, channel):
        for number in range(4):
            lines = numbered(f"day {number}", 0, 10)
            append(log, [*header, *lines])
            own += lines
            await channel.wait_for(*lines)
            os.rename(log, logs / f"app.log.{number}")
    once(channel, own, header * 4)


# Symlink switch.


async def test_symlink_switch(logs: Path, state: Path) -> None:
    link, written = logs / "current", list[bytes]()
    async with tailing(link, state) as life:
        for number in range(5):
            target = logs / f"target-{number}"
            lines = numbered(f"target {number}", 0, 10)
            written += lines
            append(target, lines[:5])
            os.symlink(target, logs / "next")
            os.rename(logs / "next", link)
            if number:
                late = numbered(f"late {number}", 0, 3)
                append(logs / f"target-{number - 1}", late)
                written += late
            append(target, lines[5:])
            await life.channel.wait_for(*written)
        once(life.channel, written)


# Delete while open.


async def test_delete_while_open(logs: Path, state: Path) -> None:
    log, channel = logs / "app.log", Recording()
    lines = numbered("line", 0, 20_000)
    append(log, lines)
    async with tailing(log, state, channel, read_bytes=4096) as life:
        await until(lambda: bool(channel.lines))
        channel.open = False
        with log.open("ab") as writer:
            log.unlink()
            late = numbered("late", 0, 10)
            writer.write(b"".join(line + b"\n" for line in late))
        await until(lambda: "rotated" in [file.state for file in life.input.status(details=True).details])
        channel.open = True
        await channel.wait_for(*lines, *late)
        once(channel, lines, late)


# Compressed rotation.


def zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(content)


PACKINGS = pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".zst", zstd)])


@PACKINGS
@pytest.mark.parametrize("lines", [3, 5000])
async def test_compressed_rotation(
    logs: Path, state: Path, suffix: str, pack: Callable[[bytes], bytes], lines: int
) -> None:
    log, written = logs / "app.log", list[bytes]()
    async with tailing(logs / "app.log*", state) as life:
        for number in range(3):
            some = numbered(f"day {number}", 0, lines)
            written += some
            append(log, some)
            rotated = logs / f"app.log.{number}"
            os.rename(log, rotated)
            packed = pack(rotated.read_bytes())
            with (logs / f"app.log.{number}{suffix}").open("wb") as file:
                file.write(packed[: len(packed) // 2])
                file.flush()
                await asyncio.sleep(0.03)  # the search goes by while half of it is there
                file.write(packed[len(packed) // 2 :])
            rotated.unlink()
        append(log, [b"last"])
        await life.channel.wait_for(*written, b"last")
        await until(lambda: life.input.status().files == 4)
        once(life.channel, written, [b"last"])


@pytest.mark.parametrize("lines", [3, 100])
async def test_compressed_files_that_are_renamed_further_keep_nobody_waiting(
    logs: Path, state: Path, lines: int
) -> None:
    """As logrotate does it with delaycompress: each rotation renames all the older ones too."""
    log, written = logs / "app.log", list[bytes]()
    async with tailing(logs / "app.log*", state) as life:
        for number in range(5):
            # The last lines of a file, its rotation and the first lines of the next one are seen together.
            some, more = numbered(f"day {number}", 0, lines), numbered(f"day {number}", lines, 1)
            written += some + more
            append(log, some)
            for older in range(number, 1, -1):
                os.rename(logs / f"app.log.{older}.gz", logs / f"app.log.{older + 1}.gz")
            first = logs / "app.log.1"
            if first.exists():
                (logs / "app.log.2.gz").write_bytes(gzip.compress(first.read_bytes()))
                first.unlink()
            os.rename(log, first)
            append(log, more)
            await life.channel.wait_for(*some, *more)
            there = set(map(str, logs.iterdir()))
            await until(lambda there=there: {file.path for file in life.input.status(details=True).details} == there)
        once(life.channel, written)


@PACKINGS
@pytest.mark.parametrize("lines", [3, 5000])
async def test_compressed_rotation_while_it_is_away(
    logs: Path, state: Path, suffix: str, pack: Callable[[bytes], bytes], lines: int
) -> None:
    log, channel = logs / "app.log", Recording()
    first, late, second = (numbered(name, 0, lines) for name in ("first", "late", "second"))
    append(log, first)
    async with tailing(logs / "app.log*", state, channel):
        await channel.wait_for(*first)
    append(log, late)
    (logs / f"app.log.1{suffix}").write_bytes(pack(log.read_bytes()))
    log.unlink()
    append(log, second)
    async with tailing(logs / "app.log*", state, channel):
        await channel.wait_for(*late, *second)
    async with tailing(logs / "app.log*", state, channel) as life:
        await until(lambda: life.input.status().files == 2)
    once(channel, first, late, second)


async def test_compressed_files_that_are_broken_harm_no_other(logs: Path, state: Path) -> None:
    packed = bytearray(gzip.compress(os.urandom(100_000)))
    packed[50_000] ^= 0xFF
    (logs / "broken.gz").write_bytes(packed)
    (logs / "cut.gz").write_bytes(gzip.compress(b"line\n" * 1000)[:-9])
    lines = numbered("line", 0, 10)
    (logs / "whole.gz").write_bytes(gzip.compress(b"".join(line + b"\n" for line in lines)))
    async with tailing(logs / "*", state) as life:
        await life.channel.wait_for(*lines)
        await until(lambda: life.input.status().errors >= 2)
        assert not life.task.done()


@PACKINGS
async def test_compressed_files_that_were_empty_or_are_overwritten(
    logs: Path, state: Path, suffix: str, pack: Callable[[bytes], bytes]
) -> None:
    log = logs / f"app.log{suffix}"
    log.touch()
    async with tailing(logs / "*", state) as life:
        await until(lambda: life.input.status().files == 1)
        for number in range(3):
            lines = numbered(f"life {number}", 0, 100)
            with log.open("r+b") as file:
                file.write(pack(b"".join(line + b"\n" for line in lines)))
                file.truncate()
            await life.channel.wait_for(*lines)
        assert max(life.channel.counts.values()) == 1


# Kill -9 between produce and checkpoint.


AGENT_FILE = """
name = "killed"
bootstrap = "{bootstrap}"
state_dir = "{state}"
admin = "off"
[output]
linger = "1ms"
[inputs.app]
type = "tail"
paths = ["{paths}"]
topic = "app"
poll_min = "5ms"
discover = "50ms"
rotate_wait = "200ms"
"""


async def test_kill_9_between_produce_and_checkpoint(logs: Path, state: Path, tmp_path: Path) -> None:
    """Killed while lines are on their way, four times: none is missing, and only what was on its way may come twice."""
    log, file, written = logs / "app.log", tmp_path / "agent.toml", list[bytes]()
    with broker({"num.partitions": 1}) as node:
        text = AGENT_FILE.format(bootstrap=node.bootstrap_servers, state=state, paths=logs / "app.log*")
        file.write_text(text)
        for number in range(4):
            agent = subprocess.Popen([sys.executable, "-m", "tests.faults.agent.run_agent", str(file)])
            try:
                for part in range(20):
                    lines = numbered(f"life {number}.{part}", 0, 200)
                    append(log, lines)
                    written += lines
                    if part == 10:
                        os.rename(log, logs / f"app.log.{number}")
                    if part == 15:
                        await values_of(node.bootstrap_servers, "app", len(written) // 2)
            finally:
                agent.send_signal(signal.SIGKILL)
                agent.wait(within(30))
        async with running(read_agent(file)):
            found: list[bytes] = []
            patience = Patience(30)
            while set(found) != set(written):
                assert not patience.over(), f"{len(set(written) - set(found))} lines are missing"
                found = await values_of(node.bootstrap_servers, "app", len(found))


def _inputs_of(text: str) -> str:
    return text[text.index("[inputs.app]") :]


# Broker away for a while.


async def test_broker_away_for_a_while(logs: Path, state: Path, tmp_path: Path) -> None:
    """Meanwhile the log goes on, is rotated, and what was rotated away first is deleted."""
    log, written = logs / "app.log", list[bytes]()
    text = AGENT_FILE.format(bootstrap="", state=state, paths=log)
    with broker({"num.partitions": 1}) as node:
        settings = settings_of(tmp_path, node.bootstrap_servers, _inputs_of(text), output='memory = "1 MB"')
        async with running(settings) as agent:
            written += numbered("before", 0, 100)
            append(log, written)
            await until(lambda: agent.status().inputs["app"].events_out == 100)
            await asyncio.to_thread(node.stop)
            for number in range(3):
                lines = numbered(f"away {number}", 0, 10_000, width=200)
                append(log, lines)
                written += lines
                await until(lambda n=number: agent.status(details=True).inputs["app"].status.files == n + 1)
                os.rename(log, logs / f"old.{number}")
                # One that was not open yet when it was renamed is found again under its new name.
                await until(
                    lambda: all(file.state == "rotated" or file.path != str(log)
                                for file in agent.status(details=True).inputs["app"].status.details),
                    lambda: str(agent.status(details=True).inputs["app"].status.details),
                )  # fmt: skip
            (logs / "old.0").unlink()
            await asyncio.to_thread(node.start)
            await until(lambda: agent.status().inputs["app"].events_out >= len(written))
        assert Counter(await values_of(node.bootstrap_servers, "app", len(written))) == Counter(written)


# Disk full.


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB of its own."""
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "penstock-test", str(mount)], check=True)
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


def fill(path: Path) -> None:
    """Until there is no room."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


async def test_disk_full(logs: Path, small_disk: Path) -> None:
    """Positions cannot be saved: that is told, reading goes on, and they are saved when there is room again."""
    channel, written = Recording(), list[bytes]()
    async with tailing(logs / "*.log", small_disk, channel) as life:
        append(logs / "0.log", numbered("0", 0, 10))
        written += numbered("0", 0, 10)
        await channel.wait_for(*written)
        await life.all_read()
        filler = small_disk / "filler"
        fill(filler)
        for number in range(1, 200):
            lines = numbered(str(number), 0, 3)
            append(logs / f"{number}.log", lines)
            written += lines
        await channel.wait_for(*written)
        await until(lambda: "disk" in life.input.status().last_error)
        filler.unlink()
    async with tailing(logs / "*.log", small_disk, channel) as life:
        await until(lambda: life.input.status().files == 200)
        append(logs / "7.log", [b"after"])
        await channel.wait_for(b"after")
    once(channel, written, [b"after"])


# 10,000 files.


async def test_10_000_files(logs: Path, state: Path) -> None:
    """All are read, one that is busy holds up none of the others, few are open, and a restart knows them all."""
    for number in range(10_000):
        (logs / f"{number}.log").write_bytes(b"first of %d\n" % number)
    busy = numbered("busy", 0, 50_000)
    append(logs / "0.log", busy)
    channel = Recording()
    # Other tests of this process may have left some behind.
    open_before = len(os.listdir("/proc/self/fd"))
    usual = {"open_files_max": 64, "poll_min_ms": 50, "poll_max_ms": 2000, "discover_ms": 1000}
    async with tailing(logs / "*.log", state, channel, read_bytes=4096, **usual) as life:
        await until(lambda: channel.count >= 60_000)
        assert len(os.listdir("/proc/self/fd")) < open_before + 128
        order = channel.lines
        assert order.index(b"first of 9999") < order.index(busy[-1])
        await life.all_read()
    async with tailing(logs / "*.log", state, channel, **usual) as life:
        await until(lambda: life.input.status().files == 10_000)
        append(logs / "77.log", [b"second of 77"])
        await channel.wait_for(b"second of 77")
    once(channel, [b"first of %d" % number for number in range(10_000)], busy, [b"second of 77"])


# Clock jump.


async def test_clock_jump(logs: Path, state: Path) -> None:
    """The wall clock jumps back and forth by days: rotation, waiting and forgetting go by the other clock."""
    log, written = logs / "app.log", list[bytes]()
    jumps = iter([0, 10**9, -(10**9), 10**11] * 10**6)
    async with tailing(logs / "app.log*", state, clock={"now_ms": lambda: next(jumps)}) as life:
        for number in range(6):
            lines = numbered(f"day {number}", 0, KB_OF_LINES)
            append(log, lines)
            # What the file system says about times is the wall clock's too.
            os.utime(log, ns=(0, abs(next(jumps)) * 10**6))
            written += lines
            os.rename(log, logs / f"app.log.{number}")
        append(log, [b"the last one"])
        with log.open("ab") as file:
            file.write(b"the last one has no end")
        await life.channel.wait_for(b"the last one")
        log.rename(logs / "app.log.last")
        await life.channel.wait_for(*written, b"the last one has no end")
        once(life.channel, written, [b"the last one", b"the last one has no end"])


async def test_back_pressure_reads_no_more(logs: Path, state: Path) -> None:
    log, channel = logs / "app.log", Recording(open=False)
    lines = numbered("line", 0, 10_000)
    append(log, lines)
    life = start_tail(log, state, channel, read_bytes=4096)
    await until(lambda: life.input.status().events > 0)
    assert life.input.status(details=True).details[0].read_bytes <= 4096
    channel.open = True
    await channel.wait_for(*lines)
    await life.end()
    once(channel, lines)
