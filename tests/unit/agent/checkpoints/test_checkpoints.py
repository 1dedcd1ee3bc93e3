"""Positions on disk: what was saved is there, what is broken is said."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from penstock.agent.checkpoints import Checkpoints, CheckpointsBroken, CheckpointsUnwritable, Row


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "checkpoints.db"


def test_what_was_saved_is_there_in_the_next_life(path: Path) -> None:
    async def work() -> None:
        rows = [Row("1", "/a", 10, {"inode": 7, "anchors": [[1, 2, "x"]]}), Row("2", "/b\udcff", 2**62)]
        first = Checkpoints(path)
        await first.save("one", rows)
        await first.save("two", [Row("1", "/other", 5)])
        await first.save("one", [Row("1", "/a", 20)], forgotten=["2"])
        assert await first.inputs() == ["one", "two"]
        await first.close()
        second = Checkpoints(path)
        assert await second.load("one") == [Row("1", "/a", 20)]
        assert await second.load("two") == [Row("1", "/other", 5)]
        await second.forget("two")
        await second.forget("one", ["1"])
        assert await second.inputs() == []
        await second.close()

    run(work)


def test_calls_may_overlap(path: Path) -> None:
    async def work() -> None:
        checkpoints = Checkpoints(path)
        await asyncio.gather(*(checkpoints.save("in", [Row(str(key % 10), "", key)]) for key in range(100)))
        assert [row.position for row in await checkpoints.load("in")] == list(range(90, 100))
        await checkpoints.close()

    run(work)


def test_who_is_cancelled_leaves_no_half_of_a_transaction(path: Path) -> None:
    async def work() -> None:
        checkpoints = Checkpoints(path)
        await checkpoints.open()
        saving = asyncio.ensure_future(checkpoints.save("in", [Row(str(key), "", key) for key in range(1000)]))
        await asyncio.sleep(0)
        saving.cancel()
        assert len(await checkpoints.load("in")) in (0, 1000)
        await checkpoints.close()

    run(work)


def broken(path: Path) -> str:
    said = ""

    async def work() -> None:
        nonlocal said
        checkpoints = Checkpoints(path)
        with pytest.raises(CheckpointsBroken) as failure:
            await checkpoints.open()
        said = str(failure.value)
        await checkpoints.close()

    run(work)
    return said


def test_a_file_that_is_no_database_is_left_alone_and_named(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"these are my holiday photographs " * 100)
    said = broken(path)
    assert str(path) in said
    assert "move it away" in said
    assert path.read_bytes().startswith(b"these are my")


def test_a_database_of_another_program_is_left_alone_and_named(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE photographs (name TEXT)")
    other.close()
    assert "another program" in broken(path)


def test_a_database_of_a_newer_version_is_left_alone_and_named(path: Path) -> None:
    async def work() -> None:
        checkpoints = Checkpoints(path)
        await checkpoints.save("in", [Row("1")])
        await checkpoints.close()

    run(work)
    with sqlite3.connect(path) as newer:
        newer.execute("PRAGMA user_version = 9")
    newer.close()
    assert "newer penstock" in broken(path)


def test_a_broken_page_is_told_and_not_taken_for_positions(path: Path) -> None:
    async def work() -> None:
        checkpoints = Checkpoints(path)
        await checkpoints.save("in", [Row(f"{key:05}", "/some/path" * 10, key) for key in range(2000)])
        await checkpoints.close()
        content = bytearray(path.read_bytes())
        content[5000:9000] = b"\xff" * 4000
        path.write_bytes(content)
        again = Checkpoints(path)
        with pytest.raises(CheckpointsBroken, match="is broken"):
            await again.load("in")
        await again.close()

    run(work)


def test_a_place_that_cannot_be_written_to_may_become_one_that_can(path: Path) -> None:
    async def work() -> None:
        path.parent.write_bytes(b"a file where the folder should be")
        checkpoints = Checkpoints(path)
        with pytest.raises(CheckpointsUnwritable):
            await checkpoints.save("in", [Row("1", "", 5)])
        path.parent.unlink()
        await checkpoints.save("in", [Row("1", "", 5)])
        assert await checkpoints.load("in") == [Row("1", "", 5)]
        await checkpoints.close()

    run(work)


def test_a_lock_of_another_program_is_waited_out_or_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.agent.checkpoints.store.BUSY_S", 0.05)

    async def work() -> None:
        checkpoints = Checkpoints(path)
        await checkpoints.save("in", [Row("1", "", 1)])
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CheckpointsUnwritable, match="locked"):
            await checkpoints.save("in", [Row("1", "", 2)])
        other.execute("ROLLBACK")
        other.close()
        await checkpoints.save("in", [Row("1", "", 3)])
        assert await checkpoints.load("in") == [Row("1", "", 3)]
        await checkpoints.close()

    run(work)
