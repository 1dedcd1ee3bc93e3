"""What a tail does besides surviving: where it begins, what it waits for, what it tells."""

from __future__ import annotations

import asyncio
import gzip
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from penstock.agent.multiline import Multiline
from penstock.agent.portion import TRUNCATED
from tests.faults.agent.tailing import Recording, append, numbered, tailing
from tests.patience import until


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_from_the_end_is_for_what_is_there_at_the_very_first_start(logs: Path, state: Path) -> None:
    async def work() -> None:
        channel = Recording()
        (logs / "old.log").write_bytes(b"old\nhalf ")
        (logs / "old.log.1.gz").write_bytes(gzip.compress(b"older\n"))
        async with tailing(logs / "*", state, channel, from_end=True) as life:
            await until(lambda: life.input.status().files == 2)
            with (logs / "old.log").open("ab") as file:
                file.write(b"a line\n")
            append(logs / "new.log", [b"new"])
            await channel.wait_for(b"half a line", b"new")
        append(logs / "made while away.log", [b"away"])
        append(logs / "old.log", [b"more"])
        async with tailing(logs / "*", state, channel, from_end=True):
            await channel.wait_for(b"away", b"more")
        assert sorted(channel.lines) == sorted([b"half a line", b"new", b"away", b"more"])

    run(work)


def test_positions_marks_and_places_are_those_of_the_file(logs: Path, state: Path) -> None:
    async def work() -> None:
        log, lines = logs / "a.log", [b"short", b"x" * 100, b"", b"end"]
        append(log, lines)
        async with tailing(log, state, line_bytes_max=16) as life:
            await until(lambda: life.channel.count == 4)
            portion = life.channel.portions[0]
            assert portion.values == [b"short", b"x" * 16, b"", b"end"]
            assert list(portion.positions or ()) == [0, 6, 107, 108]
            assert portion.marks == {1: TRUNCATED}
            assert portion.origin.path == str(log)
            assert life.input.status().truncated == 1

    run(work)


def test_only_what_has_no_gap_before_it_is_safe(logs: Path, state: Path) -> None:
    async def work() -> None:
        log, lines, channel = logs / "a.log", numbered("line", 0, 1000), Recording(acknowledging=False)
        append(log, lines)
        async with tailing(log, state, channel, read_bytes=4096) as life:
            await until(lambda: channel.count == 1000)
            for index in (0, 1, 5):
                channel.dones[index]()
            (file,) = life.input.status(details=True).details
            first_two = [line for portion in channel.portions[:2] for line in portion.values]
            assert file.safe_bytes == sum(len(line) + 1 for line in first_two)
        again = Recording()
        async with tailing(log, state, again):
            await again.wait_for(*lines[-1:])
        assert first_two + again.lines == lines

    run(work)


def test_lines_that_belong_together_wait_for_each_other_and_for_no_longer_than_they_should(
    logs: Path, state: Path
) -> None:
    async def work() -> None:
        log, channel = logs / "a.log", Recording()
        way = Multiline(mode="halt_before", condition=r"^\d", timeout_ms=30)
        append(log, [b"1 one", b" more", b"2 two"])
        async with tailing(log, state, channel, multiline=way) as life:
            await channel.wait_for(b"1 one\n more", b"2 two")
            append(log, [b"3 three", b" and"])
            log.rename(logs / "gone")
            await channel.wait_for(b"3 three\n and")
            await life.all_read()
        assert channel.lines == [b"1 one\n more", b"2 two", b"3 three\n and"]

    run(work)


def test_an_event_that_is_not_complete_is_read_again_after_a_restart(logs: Path, state: Path) -> None:
    async def work() -> None:
        log, channel = logs / "a.log", Recording()
        way = Multiline(mode="halt_before", condition=r"^\d", timeout_ms=3_600_000)
        append(log, [b"1 one", b" more", b"2 two"])
        async with tailing(log, state, channel, multiline=way):
            await channel.wait_for(b"1 one\n more")
        append(log, [b" goes on", b"3 three"])
        async with tailing(log, state, channel, multiline=way):
            await channel.wait_for(b"2 two\n goes on")
        assert channel.lines == [b"1 one\n more", b"2 two\n goes on"]

    run(work)


def test_what_is_no_file_is_told_and_harms_no_other(logs: Path, state: Path) -> None:
    async def work() -> None:
        os.mkfifo(logs / "pipe.log")
        (logs / "folder.log").mkdir()
        paths = (str(logs / "pipe.log"), str(logs / "folder.log"), str(logs / "*.log"))
        append(logs / "a.log", [b"a"])
        async with tailing(paths, state) as life:  # type: ignore[arg-type]  # several
            await life.channel.wait_for(b"a")
            await until(lambda: life.input.status().errors == 2)
            assert life.input.status().files == 1

    run(work)


def test_a_file_that_cannot_be_opened_is_tried_again(logs: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = str(logs / "refused.log")
    real, allowed = os.open, list[bool]()

    def guarded(path: Any, *given: Any, **more: Any) -> int:
        if path == refused and not allowed:
            raise PermissionError(13, "Permission denied")
        return real(path, *given, **more)

    monkeypatch.setattr(os, "open", guarded)

    async def work() -> None:
        append(logs / "refused.log", [b"refused"])
        append(logs / "a.log", [b"a"])
        async with tailing(logs / "*.log", state) as life:
            await life.channel.wait_for(b"a")
            await until(lambda: "permission denied" in life.input.status().last_error)
            allowed.append(True)
            await life.channel.wait_for(b"refused")

    run(work)


def test_a_disk_that_fails_is_told_and_tried_again(logs: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, failing = os.pread, [True]

    def guarded(descriptor: int, length: int, position: int) -> bytes:
        if failing and os.readlink(f"/proc/self/fd/{descriptor}").endswith("bad.log"):
            raise OSError(5, "Input/output error")
        return real(descriptor, length, position)

    monkeypatch.setattr(os, "pread", guarded)

    async def work() -> None:
        append(logs / "bad.log", [b"bad"])
        append(logs / "a.log", [b"a"])
        async with tailing(logs / "*.log", state) as life:
            await life.channel.wait_for(b"a")
            await until(lambda: "input/output error" in life.input.status().last_error)
            failing.clear()
            await life.channel.wait_for(b"bad")

    run(work)


def test_what_is_gone_for_a_day_is_forgotten(logs: Path, state: Path) -> None:
    async def work() -> None:
        now = [0.0]
        log, channel = logs / "a.log", Recording()
        append(log, [b"a"])

        def clock() -> float:
            now[0] += 1
            return now[0]

        async with tailing(logs / "*.log", state, channel, clock={"monotonic_ms": clock}) as life:
            await channel.wait_for(b"a")
            log.unlink()
            await until(lambda: life.input.status().files == 0)
            followed = life.input._followed  # type: ignore[attr-defined]  # sweeps are ten minutes apart
            followed.forget_the_long_gone()
            assert len(followed.catalogue) == 1
            now[0] += 23 * 3600 * 1000
            followed.forget_the_long_gone()
            assert len(followed.catalogue) == 1
        async with tailing(logs / "*.log", state, channel, clock={"monotonic_ms": clock}) as life:
            followed = life.input._followed  # type: ignore[attr-defined]  # as above
            await until(lambda: len(followed.catalogue) == 1)
            now[0] += 1.1 * 3600 * 1000
            followed.forget_the_long_gone()
            assert len(followed.catalogue) == 0

    run(work)


def test_a_hard_link_is_the_same_file(logs: Path, state: Path) -> None:
    async def work() -> None:
        append(logs / "a.log", [b"a"])
        async with tailing(logs / "*.log", state) as life:
            await life.channel.wait_for(b"a")
            os.link(logs / "a.log", logs / "b.log")
            os.symlink(logs / "a.log", logs / "c.log")
            append(logs / "b.log", [b"b"])
            await life.channel.wait_for(b"b")
            (logs / "a.log").unlink()
            append(logs / "b.log", [b"c"])
            await life.channel.wait_for(b"c")
            assert life.channel.lines == [b"a", b"b", b"c"]

    run(work)
