"""The spool on a disk that is well, full, torn or damaged."""

from __future__ import annotations

import asyncio
import errno
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.agent.errors import SpoolFailed, SpoolFull
from penstock.agent.portion import Parcel
from penstock.agent.spool import segments
from penstock.agent.spool.frames import HEAD_BYTES, BadFrame, Load, pack, read_head, unpack
from penstock.agent.spool.spool import Spool, SpoolQueue

MB = 1 << 20


def load(number: int, size: int = 0) -> Load:
    headers = ((("host", b"here"),),) * 2
    values = [b"%d" % number, random.Random(number).randbytes(size)]
    return Load([Parcel("t", values, [b"k", None], list(headers), [1, 2])], "dead")


def spool_in(folder: Path, cap_bytes: int = 100 * MB) -> tuple[Spool, list[str]]:
    told: list[str] = []
    return Spool(folder, cap_bytes, told.append), told


async def numbers(queue: SpoolQueue, *, free: bool = True) -> list[int]:
    """What is in a queue, in order."""
    found: list[int] = []
    while (read := await queue.read()) is not None:
        loads, segment, frames = read
        found += [int(each.parcels[0].values[0]) for each in loads]
        if free:
            await queue.free(segment, frames)
    return found


values = st.lists(st.binary(max_size=20), min_size=1, max_size=4)


@given(st.lists(st.tuples(values, st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=4))
def test_what_is_packed_is_unpacked(shapes: list[tuple[list[bytes], bool, bool, bool]]) -> None:
    loads = [
        Load(
            [
                Parcel(
                    "topic",
                    each,
                    [None, *each[1:]] if keyed else None,
                    [(("a", value),) for value in each] if headed else None,
                    list(range(len(each))) if timed else None,
                )
            ],
            "dead" if keyed else None,
        )
        for each, keyed, headed, timed in shapes
    ]
    frame = pack(loads)
    head = read_head(frame)
    assert head.records == sum(len(each) for each, _, _, _ in shapes)
    assert unpack(head, frame[HEAD_BYTES:]) == loads


def test_headers_that_all_share_are_kept_once() -> None:
    shared = (("path", b"x" * 100),)
    frame = pack([Load([Parcel("t", [b"v"] * 1_000, None, [shared] * 1_000)])])
    assert len(frame) < 400
    (read,) = unpack(read_head(frame), frame[HEAD_BYTES:])
    assert read.parcels[0].headers == [shared] * 1_000


@given(st.integers(0, 1 << 30), st.integers(0, 255))
def test_a_damaged_frame_is_never_taken_for_a_whole_one(at: int, flip: int) -> None:
    frame = bytearray(pack([load(1, 50)]))
    at %= len(frame)
    frame[at] ^= flip or 1
    with pytest.raises(BadFrame):
        unpack(read_head(bytes(frame)), bytes(frame[HEAD_BYTES:]))


async def test_first_in_first_out_and_the_space_comes_back(tmp_path: Path) -> None:
    spool, told = spool_in(tmp_path / "spool", 8 * MB)
    await spool.open()
    queue = spool.queue("one")
    for number in range(50):
        await queue.append([load(number, 100_000)])
    files = list((tmp_path / "spool" / "one").iterdir())
    assert len(files) > 3
    assert sum(path.stat().st_size for path in files) == spool.used_bytes
    assert await numbers(queue) == list(range(50))
    assert spool.used_bytes == 0
    assert list((tmp_path / "spool" / "one").iterdir()) == []
    assert told == []
    await spool.close()


async def test_reading_and_writing_may_overlap(tmp_path: Path) -> None:
    spool, _ = spool_in(tmp_path / "spool")
    await spool.open()
    queue = spool.queue("one")
    found: list[int] = []
    chance = random.Random(1)
    for number in range(300):
        await queue.append([load(number, chance.randrange(30_000))])
        if not chance.randrange(3) and (read := await queue.read()) is not None:
            found += [int(each.parcels[0].values[0]) for each in read[0]]
            await queue.free(read[1], read[2])
    found += await numbers(queue)
    assert found == list(range(300))
    assert spool.used_bytes == 0
    await spool.close()


async def test_what_is_held_is_not_read_while_it_is_being_written(tmp_path: Path) -> None:
    spool, _ = spool_in(tmp_path)
    await spool.open()
    queue = spool.queue("one")
    for number in range(50):
        writing = asyncio.ensure_future(queue.append([load(number)], held=True))
        while not writing.done():
            assert not queue.unread
            await asyncio.sleep(0)
        await queue.free(writing.result())
    assert spool.used_bytes == 0
    await spool.close()


async def test_another_life_finds_what_was_not_freed(tmp_path: Path) -> None:
    spool, _ = spool_in(tmp_path)
    await spool.open()
    for name in ("one", "two"):
        for number in range(10):
            await spool.queue(name).append([load(number)])
    held = await spool.queue("two").append([load(10)], held=True)
    assert not held.unread
    assert await numbers(spool.queue("one"), free=False) == list(range(10))
    # Nothing is closed: this is what kill -9 leaves.
    again, told = spool_in(tmp_path)
    await again.open()
    assert again.names == ["one", "two"]
    assert again.used_bytes == spool.used_bytes
    assert await numbers(again.queue("one")) == list(range(10))
    assert await numbers(again.queue("two")) == list(range(11))
    assert told == []
    await spool.close()
    await again.close()


@pytest.mark.parametrize("cut", [1, HEAD_BYTES, 40])
async def test_a_torn_end_is_cut_off(tmp_path: Path, cut: int) -> None:
    spool, _ = spool_in(tmp_path)
    await spool.open()
    for number in range(3):
        await spool.queue("one").append([load(number, 100)])
    (path,) = (tmp_path / "one").iterdir()
    os.truncate(path, path.stat().st_size - cut)
    again, told = spool_in(tmp_path)
    await again.open()
    assert await numbers(again.queue("one")) == [0, 1]
    assert told == []
    await spool.close()
    await again.close()


@pytest.mark.parametrize("at", [0, 4, 5, 7, 9, 13, HEAD_BYTES, HEAD_BYTES + 20])
async def test_damage_costs_what_it_hit_and_is_told_and_kept(tmp_path: Path, at: int) -> None:
    spool, _ = spool_in(tmp_path)
    await spool.open()
    for number in range(2):
        third = (await spool.queue("one").append([load(number, 100)])).bytes
    for number in range(2, 5):
        await spool.queue("one").append([load(number, 100)])
    (path,) = (tmp_path / "one").iterdir()
    with path.open("r+b") as file:
        file.seek(third + at)
        file.write(b"\x3f")
    again, told = spool_in(tmp_path)
    await again.open()
    assert await numbers(again.queue("one")) == [0, 1, 3, 4]
    assert len(told) == 1
    assert "are lost" in told[0]
    assert [path.suffix for path in (tmp_path / "one").iterdir()] == [".broken"]
    await spool.close()
    await again.close()


async def test_a_full_disk_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool, _ = spool_in(tmp_path)
    await spool.open()
    queue = spool.queue("one")
    await queue.append([load(0)])
    real = os.pwrite
    broken: list[int] = []

    def half_of_it(descriptor: int, data: Any, at: int) -> int:
        if broken:
            raise OSError(errno.ENOSPC, "No space left on device")
        broken.append(1)
        return real(descriptor, bytes(data)[:10], at)

    with monkeypatch.context() as full:
        full.setattr(segments.os, "pwrite", half_of_it)
        with pytest.raises(SpoolFull, match="make room there"):
            await queue.append([load(1)])
        with pytest.raises(SpoolFull):
            await spool.queue("new").append([load(1)])
    (path,) = (tmp_path / "one").iterdir()
    assert path.stat().st_size == spool.used_bytes
    await queue.append([load(2)])
    assert await numbers(queue) == [0, 2]
    assert await numbers(spool.queue("new")) == []
    await spool.close()


async def test_the_cap_is_the_bytes_on_the_disk(tmp_path: Path) -> None:
    spool, _ = spool_in(tmp_path, MB)
    await spool.open()
    queue = spool.queue("one")
    for number in range(100):
        await queue.append([load(number, 10_000)])
    with pytest.raises(SpoolFull, match="has reached its size, 1 MB"):
        await queue.append([load(100, 100_000)])
    assert MB - 100_000 < sum(path.stat().st_size for path in (tmp_path / "one").iterdir()) <= MB
    read = await queue.read()
    assert read is not None
    await queue.free(read[1], read[2])
    rest = await numbers(queue)
    await queue.append([load(99)])
    assert rest[-1] == 99
    await spool.close()


async def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    spool, _ = spool_in(tmp_path / "file" / "spool")
    with pytest.raises(SpoolFailed, match="cannot be used"):
        await spool.open()
    await spool.close()
