"""Files that are dropped into a folder are taken once and put away."""

from __future__ import annotations

import asyncio
import gzip
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.agent.checkpoints import Checkpoints
from penstock.agent.inputs.spooldir.input import SpoolDirInput
from penstock.agent.inputs.spooldir.settings import DELETE, MOVE, SpoolDirSettings
from tests.faults.agent.tailing import Life, Recording, append, environment, numbered
from tests.patience import until


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    folder = tmp_path / "drop"
    folder.mkdir()
    return folder


@asynccontextmanager
async def taking(drop: Path, channel: Recording, **given: Any) -> AsyncIterator[Life]:
    checkpoints = Checkpoints(drop.parent / "positions.db")
    quick = {"settle_ms": 10, "discover_ms": 5, "errors": drop.parent / "errors"}
    settings = SpoolDirSettings(directory=drop, **(quick | given))
    life = Life(SpoolDirInput(settings, channel, environment(drop.parent, checkpoints)), checkpoints, channel)
    try:
        yield life
        assert not life.task.done() or life.task.exception() is None
    finally:
        await life.end()


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())


def test_each_file_is_taken_once_oldest_first_and_renamed(drop: Path) -> None:
    async def work() -> None:
        channel = Recording()
        for number in (2, 1, 3):
            path = drop / f"{number}.log"
            append(path, numbered(f"file {number}", 0, 10))
            os.utime(path, (number, number))
        async with taking(drop, channel):
            await until(lambda: len(list(drop.glob("*.done"))) == 3)
        assert channel.lines == [line for number in (1, 2, 3) for line in numbered(f"file {number}", 0, 10)]
        async with taking(drop, channel) as life:
            append(drop / "4.log", [b"four"])
            await until(lambda: (drop / "4.log.done").exists())
            assert life.input.status().errors == 0
        assert channel.count == 31

    run(work)


def test_a_name_that_is_taken_gets_a_number(drop: Path, tmp_path: Path) -> None:
    async def work() -> None:
        channel, done = Recording(), tmp_path / "done"
        async with taking(drop, channel, done=MOVE, done_directory=done):
            for number in range(3):
                append(drop / "same.log", [b"%d" % number])
                await until(lambda n=number: len(os.listdir(done)) == n + 1 if done.exists() else False)
        assert sorted(os.listdir(done)) == ["same.log", "same.log.1", "same.log.2"]
        assert channel.lines == [b"0", b"1", b"2"]

    run(work)


def test_files_in_folders_below_and_compressed_ones_are_deleted_when_they_are_done(drop: Path) -> None:
    async def work() -> None:
        channel, lines = Recording(), numbered("line", 0, 5000)
        (drop / "below" / "deeper").mkdir(parents=True)
        packed = gzip.compress(b"".join(line + b"\n" for line in lines) + b"no end")
        (drop / "below" / "deeper" / "a.gz").write_bytes(packed)
        (drop / "below" / "skipped.tmp").write_bytes(b"not this\n")
        async with taking(drop, channel, done=DELETE, subdirectories=True, exclude=("*.tmp",), read_bytes=4096):
            await until(lambda: not (drop / "below" / "deeper" / "a.gz").exists())
        assert channel.lines == [*lines, b"no end"]
        assert (drop / "below" / "skipped.tmp").exists()

    run(work)


def test_nothing_is_put_away_before_it_is_acknowledged(drop: Path) -> None:
    async def work() -> None:
        channel = Recording(acknowledging=False)
        append(drop / "a.log", [b"a"])
        append(drop / "b.log", [b"b"])
        async with taking(drop, channel):
            await until(lambda: channel.count == 2)
            assert sorted(os.listdir(drop)) == ["a.log", "b.log"]
            channel.dones.pop()()
            await until(lambda: sorted(os.listdir(drop)) == ["a.log", "b.log.done"])
            channel.acknowledge()
            await until(lambda: sorted(os.listdir(drop)) == ["a.log.done", "b.log.done"])

    run(work)


def test_what_is_acknowledged_while_it_ends_is_put_away_at_the_close(drop: Path) -> None:
    async def work() -> None:
        channel = Recording(acknowledging=False)
        append(drop / "a.log", [b"a"])
        async with taking(drop, channel) as life:
            await until(lambda: [file.state for file in life.input.status(details=True).details] == ["waiting"])
            await life.input.stop()
            channel.acknowledge()
        assert os.listdir(drop) == ["a.log.done"]

    run(work)


@pytest.mark.parametrize("packed", [False, True])
def test_a_restart_goes_on_in_the_middle(drop: Path, packed: bool) -> None:
    async def work() -> None:
        lines, channel = numbered("line", 0, 2000), Recording(acknowledging=False)
        content = b"".join(line + b"\n" for line in lines)
        (drop / "a").write_bytes(gzip.compress(content) if packed else content)
        async with taking(drop, channel, read_bytes=4096):
            await until(lambda: channel.count == len(lines))
            # Out of order: only what has no gap before it is safe.
            for index in (0, 1, 2, 7):
                channel.dones[index]()
        done = [value for portion in channel.portions[:3] for value in portion.values]
        again = Recording()
        async with taking(drop, again, read_bytes=4096):
            await until(lambda: (drop / "a.done").exists())
        assert done + again.lines == lines

    run(work)


def test_a_file_that_changes_after_it_was_begun_is_told_and_put_aside(drop: Path, tmp_path: Path) -> None:
    async def work() -> None:
        channel = Recording(open=False)
        append(drop / "a.log", numbered("line", 0, 5000))
        append(drop / "b.log", [b"b"])
        async with taking(drop, channel, read_bytes=4096) as life:
            await until(lambda: life.input.status().events > 0)
            append(drop / "a.log", [b"more"])
            channel.open = True
            await until(lambda: (tmp_path / "errors" / "a.log").exists() and (drop / "b.log.done").exists())
            assert "was changed after it was begun" in life.input.status().last_error
        assert max(Counter(channel.lines).values()) == 1

    run(work)


def test_a_file_that_changed_while_the_agent_was_away_is_put_aside(drop: Path, tmp_path: Path) -> None:
    async def work() -> None:
        channel = Recording(acknowledging=False)
        append(drop / "a.log", numbered("line", 0, 500))
        async with taking(drop, channel, read_bytes=4096):
            await until(lambda: channel.count == 500)
            channel.dones[0]()
        append(drop / "a.log", [b"more"])
        async with taking(drop, channel):
            await until(lambda: (tmp_path / "errors" / "a.log").exists())

    run(work)


def test_broken_files_are_put_aside_and_harm_no_other(drop: Path, tmp_path: Path) -> None:
    async def work() -> None:
        channel = Recording()
        (drop / "cut.gz").write_bytes(gzip.compress(b"cut\n" * 1000)[:-8])
        (drop / "broken.gz").write_bytes(b"\x1f\x8b\x08" + os.urandom(100))
        append(drop / "whole.log", [b"whole"])
        async with taking(drop, channel) as life:
            await until(lambda: sorted(os.listdir(drop)) == ["whole.log.done"])
            assert life.input.status().errors == 2
        assert sorted(os.listdir(tmp_path / "errors")) == ["broken.gz", "cut.gz"]

    run(work)


def test_a_file_that_is_still_being_written_is_waited_for(drop: Path) -> None:
    async def work() -> None:
        channel = Recording()
        async with taking(drop, channel, settle_ms=60_000) as life:
            append(drop / "a.log", [b"a"])
            await until(lambda: life.input.status().files == 1)
            assert channel.count == 0

    run(work)


def test_a_folder_that_is_missing_is_told_and_waited_for(drop: Path) -> None:
    async def work() -> None:
        channel = Recording()
        drop.rmdir()
        async with taking(drop, channel) as life:
            await until(lambda: life.input.status().errors == 1)
            drop.mkdir()
            append(drop / "a.log", [b"a"])
            await until(lambda: (drop / "a.log.done").exists())

    run(work)
