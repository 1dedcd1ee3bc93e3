"""A call to a disk that does not come back is noticed, with its file, wherever it was made."""

from __future__ import annotations

import asyncio
import os
import threading
from functools import partial
from pathlib import Path
from typing import Any

from penstock.model.ids import Millis
from penstock.server.crossing import two_loops
from penstock.server.hang_watch import LOOK_S, HangWatch, Unanswered, path_of
from penstock.server.ports import ThreadOffload
from penstock.storage.files import DiskFiles
from penstock.storage.flushing import pinned, sync_together
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
    """An offload with one call that may not have come back."""

    def __init__(self) -> None:
        self.call: Unanswered | None = None

    def unanswered(self) -> Unanswered | None:
        return self.call


class Watched:
    """Two loops and a watch with a timeout of 30 s, in virtual time."""

    def __init__(self) -> None:
        self.world = World(1)
        self.data, self.control = (self.world.new_loop(name, name) for name in ("data", "control"))
        sides = two_loops(to_control=self.control.call_soon, to_data=self.data.call_soon)
        self.offload, self.told = Waiting(), list[tuple[str, str | None, int]]()
        self.watch = HangWatch(
            LoopClock(self.world), sides, lambda: 30_000, [self.offload, object()], lambda: self.data.held_by or None,
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
    watched.world.loop.call_later(9.5, setattr, watched.offload, "call", Unanswered(9_500.0, "/d/f"))
    for loop in (watched.data, watched.control):
        watched.world.loop.call_later(10, loop.pause)
    # The one that watches may be the first to go on.
    watched.world.loop.call_later(100, watched.control.resume)
    watched.world.loop.call_later(101, watched.data.resume)
    watched.run(110)
    assert watched.told == []
    watched.run(140)
    assert [kind for kind, _, _ in watched.told] == ["thread"]


def test_a_call_of_a_thread_is_told_of_once() -> None:
    watched = Watched()
    watched.offload.call = Unanswered(2_000.0, "/d/f")
    watched.run(31)
    assert watched.told == []
    watched.run(80)
    assert watched.told == [("thread", "/d/f", 30)]
    watched.offload.call = Unanswered(81_000.0, "/e/g")
    watched.run(120)
    assert watched.told[1:] == [("thread", "/e/g", 30)]


def test_a_file_is_found_in_whatever_a_call_is_given(tmp_path: Path) -> None:
    files = DiskFiles(max_open=8)
    file = files.open(str(tmp_path / "f"), create=True)
    assert path_of(file.sync) == file.path
    assert path_of(pinned(file).sync) == file.path
    assert path_of(partial(files.read, "/d/f")) == "/d/f"
    assert path_of((sync_together,)) is None
    assert path_of([pinned(file)]) == file.path
    assert path_of(len) is None


def test_an_offload_knows_the_oldest_call_that_has_not_come_back() -> None:
    async def main() -> None:
        offload, gate = ThreadOffload(), threading.Event()

        def hanging(_path: str) -> None:
            gate.wait()

        assert offload.unanswered() is None
        calls: list[Any] = [offload.call(hanging, path) for path in ("/d/first", "/d/second")]
        await until(lambda: len(offload._threads.running()) == 2)
        oldest = offload.unanswered()
        assert oldest is not None
        assert oldest.path == "/d/first"
        gate.set()
        await asyncio.gather(*calls)
        assert offload.unanswered() is None
        offload.close()

    asyncio.run(main())


def test_the_stack_of_a_loop_that_hangs_names_the_file(tmp_path: Path) -> None:
    """A FIFO that nobody writes to is a file whose open does not come back."""
    from random import Random

    from penstock.model.ports import Ports
    from penstock.server.control_thread import ControlThread

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
