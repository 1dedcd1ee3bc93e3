"""A call to a disk that does not come back is noticed, with its file, wherever it was made."""

from __future__ import annotations

import asyncio
import os
import threading
from functools import partial
from pathlib import Path
from typing import Any

from penstock.model.ids import Millis
from penstock.server.loops.crossing import two_loops
from penstock.server.loops.hang_watch import LOOK_S, HangWatch, Unanswered, path_of
from penstock.server.loops.ports import ThreadOffload
from penstock.storage.files import DiskFiles
from penstock.storage.flushing import SyncTogether, pinned
from penstock.storage.removal import TreeRemoval
from penstock.testing.sim.world import World
from tests.patience import until


class LoopClock:
    def __init__(self, world: World) -> None:
        self._world = world

    def monotonic_ms(self) -> float:
        return self._world.scheduler.now * 1_000

    def now_ms(self) -> Millis:
        return Millis(0)


class Waiting:
    """An offload with calls that may not have come back."""

    def __init__(self) -> None:
        self.calls: list[Unanswered] = []

    def unanswered(self) -> list[Unanswered]:
        return self.calls


class Watched:
    """Two loops and a watch with a timeout, in virtual time."""

    def __init__(self, timeout_ms: int = 30_000) -> None:
        self.world = World(1)
        self.data, self.control = (self.world.new_loop(name, name) for name in ("data", "control"))
        sides = two_loops(to_control=self.control.call_soon, to_data=self.data.call_soon)
        self.offload, self.told = Waiting(), list[tuple[str, str | None, int]]()
        self.watch = HangWatch(
            LoopClock(self.world), sides, lambda: timeout_ms, [self.offload, object()],
            held_at=lambda: self.data.held_by or None,
            on_hang=lambda path, ms: self.told.append(("thread", path, round(ms / 1_000))),
            on_held=lambda path, ms: self.told.append(("loop", path, round(ms / 1_000))),
        )  # fmt: skip
        self.control.call_soon(self.watch.start)

    def run(self, until_s: float) -> None:
        self.world.scheduler.run(lambda: False, deadline=until_s)


def test_a_loop_that_is_held_too_long_is_told_of_with_the_file_and_again() -> None:
    watched = Watched()
    watched.data.call_later(5, watched.data.hold, 75.0, "/d/t-0/1.log")
    watched.run(34)
    assert watched.told == []
    watched.run(90)
    assert [(kind, path) for kind, path, _ in watched.told] == [("loop", "/d/t-0/1.log")] * 2
    assert [30 <= seconds <= 31 or 60 <= seconds <= 61 for _, _, seconds in watched.told] == [True, True]
    assert watched.watch.held_ms <= LOOK_S * 1_000


def test_a_loop_that_comes_back_in_time_is_not_told_of() -> None:
    watched = Watched()
    for at in (5, 40):
        watched.data.call_later(at, watched.data.hold, at + 28.0, "/d/f")
    watched.run(100)
    assert watched.told == []


def test_a_process_that_stood_still_takes_no_disk_for_hanging() -> None:
    """Stopped by a signal, or with its whole machine: the clock went on, and nobody could have answered."""
    watched = Watched()
    watched.world.loop.call_later(9.5, setattr, watched.offload, "calls", [Unanswered(9_500.0, "/d/f")])
    for loop in (watched.data, watched.control):
        watched.world.loop.call_later(10, loop.pause)
    # The one that watches may be the first to go on.
    watched.world.loop.call_later(100, watched.control.resume)
    watched.world.loop.call_later(101, watched.data.resume)
    watched.run(110)
    assert watched.told == []
    watched.run(140)
    assert [kind for kind, _, _ in watched.told] == ["thread"]


def test_what_was_answered_while_a_process_stood_still_is_heard_of_before_anybody_is_told() -> None:
    """Also where a single look, counted with all that may count of it, is as long as the timeout."""
    watched = Watched(2_000)
    watched.world.loop.call_later(9.5, setattr, watched.offload, "calls", [Unanswered(9_500.0, "/d/f")])
    for loop in (watched.data, watched.control):
        watched.world.loop.call_later(10, loop.pause)
    watched.world.loop.call_later(15, watched.control.resume)
    # The thread and the other loop go on a moment later, and answer.
    watched.world.loop.call_later(15.01, watched.data.resume)
    watched.world.loop.call_later(15.01, setattr, watched.offload, "calls", [])
    watched.run(30)
    assert watched.told == []


def test_a_process_that_is_always_late_finds_a_disk_that_hangs() -> None:
    watched = Watched(2_000)
    watched.offload.calls = [Unanswered(0.0, "/d/f")]
    watched.run(1.5)
    for second in range(1, 40, 5):
        watched.world.loop.call_later(second, watched.control.pause)
        watched.world.loop.call_later(second + 4.9, watched.control.resume)
    watched.run(40)
    assert ("thread", "/d/f") in [(kind, path) for kind, path, _ in watched.told]


def test_a_call_of_a_thread_is_told_of_once() -> None:
    watched = Watched()
    watched.offload.calls = [Unanswered(2_000.0, "/d/f")]
    watched.run(31)
    assert watched.told == []
    watched.run(80)
    assert watched.told == [("thread", "/d/f", 30)]
    watched.offload.calls = [Unanswered(81_000.0, "/e/g")]
    watched.run(120)
    assert watched.told[1:] == [("thread", "/e/g", 30)]


def test_a_call_that_goes_from_file_to_file_does_not_hang_until_it_stays_at_one() -> None:
    """A directory of thousands of segments that is removed, or thousands of files that are synced in one round."""
    watched = Watched()
    for second in range(1, 100):
        watched.world.loop.call_later(second, setattr, watched.offload, "calls", [Unanswered(0.0, f"/d/{second}.log")])
    watched.run(125)
    assert watched.told == []
    watched.run(140)
    assert watched.told == [("thread", "/d/99.log", 30)]


def test_a_call_that_goes_on_does_not_hide_one_that_hangs() -> None:
    watched = Watched()
    for second in range(1, 50):
        calls = [Unanswered(0.0, f"/d/{second}.log"), Unanswered(1_000.0, "/e/g")]
        watched.world.loop.call_later(second, setattr, watched.offload, "calls", calls)
    watched.run(45)
    assert watched.told == [("thread", "/e/g", 30)]


def test_a_file_is_found_in_whatever_a_call_is_given(tmp_path: Path) -> None:
    files = DiskFiles(max_open=8)
    file = files.open(str(tmp_path / "f"), create=True)
    assert path_of(file.sync) == file.path
    assert path_of(pinned(file).sync) == file.path
    assert path_of(partial(files.read, "/d/f")) == "/d/f"
    assert path_of(SyncTogether([pinned(file)])) == file.path
    assert path_of(TreeRemoval(files, "/d/t-0")) == "/d/t-0"
    assert path_of([pinned(file)]) == file.path
    assert path_of(len) is None


def test_an_offload_knows_the_calls_that_have_not_come_back() -> None:
    async def main() -> None:
        offload, gate = ThreadOffload(), threading.Event()

        def hanging(_path: str) -> None:
            gate.wait()

        assert offload.unanswered() == []
        calls: list[Any] = [offload.call(hanging, path) for path in ("/d/first", "/d/second")]
        await until(lambda: len(offload._threads.running()) == 2)
        assert {each.path for each in offload.unanswered()} == {"/d/first", "/d/second"}
        gate.set()
        await asyncio.gather(*calls)
        assert offload.unanswered() == []
        offload.close()

    asyncio.run(main())


def test_the_stack_of_a_loop_that_hangs_names_the_file(tmp_path: Path) -> None:
    """A FIFO that nobody writes to is a file whose open does not come back."""
    from random import Random

    from penstock.model.ports import Ports
    from penstock.server.loops.control_thread import ControlThread

    path = str(tmp_path / "fifo")
    os.mkfifo(path)

    async def main() -> str | None:
        nothing: Any = None
        quarters = ControlThread(Random(1), lambda _loop: Ports(nothing, nothing, nothing, nothing))
        seen: list[str | None] = []

        def look() -> None:
            while (found := quarters.held_at()) != path:
                seen.append(found)
            seen.append(found)
            os.close(os.open(path, os.O_WRONLY))

        looking = threading.Thread(target=look)
        looking.start()
        DiskFiles(max_open=8).open(path, writable=False)
        looking.join()
        quarters.close()
        return seen[-1]

    assert asyncio.run(main()) == path
