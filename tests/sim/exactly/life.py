"""A whole life of a query: drivers die, sleep and are replaced; then calm, in which one of them reads what is left."""

from __future__ import annotations

from collections import Counter

from tests.sim.exactly.driver import Driver
from tests.sim.exactly.world import INPUT, SLEEP_MAX_MS, TIMEOUTS_MS, SinkWorld
from tests.sim.transactions.world import INTERVAL_MS

TROUBLE_MS = 12_000
VANISHES = 0.1
"""In how many lives somebody takes the ledger away."""
CALM_MS = SLEEP_MAX_MS + TIMEOUTS_MS[-1] + 4 * INTERVAL_MS + 30_000


class Supervisor:
    """Starts a driver where there seems to be none. It may be wrong: who does not answer may be asleep."""

    def __init__(self, world: SinkWorld) -> None:
        self.world = world
        self.driver: Driver | None = None
        self._names = 0

    def look(self) -> None:
        world = self.world
        driver = self.driver
        mistaken = not world.calm and world.rng.random() < 0.05
        if driver is None or driver.over or mistaken:
            # A program that starts its query anew is the same process; where one seemed to be dead there is another.
            same = driver is not None and driver.over and not driver.dead and not driver.superseded
            if driver is None or not same or world.rng.random() < 0.5:
                self._names += 1
            self.driver = Driver(world, f"run{self._names}")
            self.driver.start()
        if not self.done:
            world.after(world.rng.randint(100, 600), self.look)

    @property
    def done(self) -> bool:
        if self.world.torn or self.world.forgotten:
            return True
        last = max(self.world.offsets, default=-1)
        return last >= 0 and self.world.offsets[last][1] == INPUT and last in self.world.commits


def live(seed: int) -> SinkWorld:
    """Raises when a record is shown twice or never; the world has the story then."""
    world = SinkWorld(seed)
    try:
        _live(world)
    except Exception as broken:
        broken.world = world  # type: ignore[attr-defined]  # for whoever tells the story
        raise
    return world


def _live(world: SinkWorld) -> None:
    supervisor = Supervisor(world)
    world.trouble(TROUBLE_MS)
    supervisor.look()
    if world.rng.random() < VANISHES:
        world.after(world.rng.randrange(TROUBLE_MS), world.ledger_vanishes)
    world.run(TROUBLE_MS)
    world.calm_down()
    world.run(TROUBLE_MS + CALM_MS)
    twice = {value: times for value, times in world.shown().items() if times > 1}
    assert not twice, f"shown more than once: {twice}"
    assert supervisor.done, "not all of it is read"
    if world.torn:
        world.count("torn")
    elif world.forgotten:
        assert world.vanished, "the ledger has all that it ever had"
        world.count("forgotten")
    else:
        missing = set(range(INPUT)) - set(world.shown())
        assert not missing, f"never shown: {missing}"
        world.count("whole")
    world.check_at_rest()


def counted(worlds: list[SinkWorld]) -> Counter[str]:
    total: Counter[str] = Counter()
    for world in worlds:
        total.update(world.counts)
        total["drivers"] += world.drivers
    return total
