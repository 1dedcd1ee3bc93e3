"""Work off the loop takes virtual time, and what a power cut takes was not synced."""

from __future__ import annotations

from random import Random

import pytest

from penstock.testing.sim.disk import Disk, SimOffload
from penstock.testing.sim.world import World


@pytest.mark.parametrize("seed", range(20))
def test_a_power_cut_never_takes_what_was_synced(seed: int) -> None:
    disk = Disk(Random(seed))
    disk.makedirs("/d")
    file = disk.open("/d/f", create=True)
    file.pwritev([b"synced"], 0)
    file.sync()
    disk.sync_dir("/d")
    disk.sync_dir("/")
    file.pwritev([b" and not"], 6)
    disk.cut_power()
    found = disk.read("/d/f")
    assert b"synced and not".startswith(found)
    assert found.startswith(b"synced")


@pytest.mark.parametrize("seed", range(10))
def test_a_call_takes_time_and_gives_what_the_work_gave(seed: int) -> None:
    world = World(seed)
    loop = world.new_loop("one", "one")
    offload = SimOffload(loop, Disk(Random(seed)), Random(seed))

    async def work() -> tuple[int, float]:
        return await offload.call(divmod, 7, 2), loop.time()  # type: ignore[return-value]

    async def broken() -> None:
        await offload.call(divmod, 7, 0)

    done, failing = loop.create_task(work()), loop.create_task(broken())
    world.scheduler.run(lambda: done.done() and failing.done(), deadline=1)
    assert done.result()[0] == (3, 1)
    assert done.result()[1] > 0
    with pytest.raises(ZeroDivisionError):
        failing.result()


def hanging(world: World) -> Disk:
    """A disk with `/d/f` and `/e/g`, the first of which hangs for 5 s."""
    disk = Disk(Random(world.seed))
    disk.scheduler = world.scheduler
    for directory, name in (("/d", "f"), ("/e", "g")):
        disk.makedirs(directory)
        disk.open(f"{directory}/{name}", create=True)
    disk.hang("/d/", 5)
    return disk


def test_a_file_operation_on_a_hanging_disk_holds_its_loop_and_no_other() -> None:
    world = World(1)
    disk = hanging(world)
    touching, other = world.new_loop("one", "one"), world.new_loop("two", "two")
    ticks: list[tuple[str, float]] = []
    touching.call_later(1, disk.exists, "/e/g")
    touching.call_later(2, disk.read, "/d/f")
    touching.call_later(3, lambda: ticks.append(("one", world.scheduler.now)))
    other.call_later(3, lambda: ticks.append(("two", world.scheduler.now)))
    world.scheduler.run(lambda: len(ticks) == 2, deadline=10)
    assert ticks == [("two", 3), ("one", 5)]
    assert (touching.longest_hold_s, other.longest_hold_s) == (3, 0)


def test_a_loop_that_is_paused_and_held_runs_when_both_are_over() -> None:
    world = World(1)
    disk, loop = hanging(world), world.new_loop("one", "one")
    ran: list[float] = []
    loop.call_later(1, disk.read, "/d/f")
    loop.call_later(2, lambda: ran.append(world.scheduler.now))
    world.loop.call_later(3, loop.pause)
    world.loop.call_later(7, loop.resume)
    world.scheduler.run(lambda: bool(ran), deadline=10)
    assert ran == [7]


@pytest.mark.parametrize("seed", range(10))
def test_work_in_a_thread_comes_back_when_the_disk_answers_and_holds_no_loop(seed: int) -> None:
    world = World(seed)
    disk, loop = hanging(world), world.new_loop("one", "one")
    offload = SimOffload(loop, disk, Random(seed))

    async def at(path: str) -> float:
        await offload.call(disk.open(path).sync) if path == "/e/g" else await offload.call(disk.read, path)
        return world.scheduler.now

    waiting, free = loop.create_task(at("/d/f")), loop.create_task(at("/e/g"))
    world.scheduler.run(lambda: waiting.done() and free.done(), deadline=10)
    assert waiting.result() >= 5
    assert free.result() < 1
    assert loop.longest_hold_s == 0


def test_a_copy_of_a_disk_is_what_it_was_when_it_was_made() -> None:
    disk = Disk(Random(1))
    disk.makedirs("/d")
    disk.write_atomic("/d/f", b"old")
    copy = disk.copy()
    disk.write_atomic("/d/f", b"new")
    disk.write_atomic("/d/later", b"")
    for _ in range(2):
        disk.restore(copy)
        assert (disk.listdir("/d"), disk.read("/d/f")) == (["f"], b"old")
        disk.write_atomic("/d/f", b"changed")


def test_a_disk_that_was_replaced_is_empty_and_its_open_files_are_dead() -> None:
    disk = Disk(Random(1))
    disk.makedirs("/d")
    file = disk.open("/d/f", create=True)
    disk.wipe()
    assert disk.listdir("/") == []
    with pytest.raises(OSError, match="opened before the crash"):
        file.size()


def test_whoever_looks_from_outside_meets_no_failure_and_the_disk_stays_broken() -> None:
    disk = Disk(Random(1))
    disk.makedirs("/data")
    disk.write_atomic("/data/file", b"there")
    disk.break_down("/data", full=False)
    with disk.looked_at():
        assert disk.open("/data/file").pread(5, 0) == b"there"
    with pytest.raises(OSError, match="Input/output error"):
        disk.open("/data/file")


def test_a_disk_hangs_until_its_last_part_answers_and_one_that_takes_its_place_does_not() -> None:
    world = World(1)
    disk = hanging(world)
    disk.hang("/e/", 7)
    assert disk.hangs_for_s == 7
    world.scheduler.run(lambda: False, deadline=6)
    assert disk.hangs_for_s == 1
    disk.wipe()
    assert not disk.hanging


def test_a_disk_that_takes_the_place_of_a_full_one_has_room() -> None:
    disk = Disk(Random(1))
    disk.break_down("/d", full=True)
    disk.wipe()
    disk.makedirs("/d")
    assert disk.isdir("/d")
