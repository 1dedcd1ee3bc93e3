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
