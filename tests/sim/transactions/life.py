"""A whole life of a world: trouble, then calm, in which everything that was begun must end."""

from __future__ import annotations

from collections import Counter

from tests.sim.transactions.producer import Producer
from tests.sim.transactions.world import INTERVAL_MS, STALL_MAX_MS, TIMEOUTS_MS, World

TROUBLE_MS = 9_000
CALM_MS = STALL_MAX_MS + TIMEOUTS_MS[-1] + 2 * INTERVAL_MS + 2_000
"""Whoever stalls when the trouble ends goes on before it is out of time."""
AFTERWARDS_MS = 2_000


def populate(world: World) -> None:
    """One to three ids; some have two producers, of which one is fenced whenever the other begins."""
    rng = world.rng
    for number in range(rng.randint(1, 3)):
        for twin in range(2 if rng.random() < 0.3 else 1):
            producer = Producer(world, f"p{number}{'ab'[twin]}", f"id-{number}", rng.choice(TIMEOUTS_MS), world.places)
            world.producers.append(producer)
            delay_ms = rng.randrange(500)
            world.after(delay_ms, lambda producer=producer: producer.start(per_transaction=world.speaks_new()))  # type: ignore[misc]


def live(seed: int) -> World:
    """Raises when an oracle is broken; the world has the story then."""
    world = World(seed)
    try:
        _live(world)
    except Exception as broken:
        broken.world = world  # type: ignore[attr-defined]  # for whoever tells the story
        raise
    return world


def _live(world: World) -> None:
    populate(world)
    world.trouble(TROUBLE_MS)
    world.run(TROUBLE_MS)
    world.heal()
    for producer in world.producers:
        producer.stops = True
    world.run(TROUBLE_MS + CALM_MS)
    world.check_at_rest()
    _check_that_life_goes_on(world)


def _check_that_life_goes_on(world: World) -> None:
    """Producers that are alone with their ids commit one transaction after the other, and nobody refuses them."""
    fresh = [
        Producer(world, f"q{number}", name, TIMEOUTS_MS[-1], world.places)
        for number, name in enumerate(sorted({producer.id for producer in world.producers}))
    ]
    world.producers = fresh
    for producer in fresh:
        # Without room in records for the next producer id an epoch per transaction ends at the last one.
        producer.start(per_transaction=world.transaction_version >= 1 and world.speaks_new())
    world.run(world.time + AFTERWARDS_MS)
    for producer in fresh:
        assert producer.fatal is None, f"{producer} was told {producer.fatal} although it is alone"
        assert producer.done > 1, f"{producer} has ended {producer.done} transactions"
        producer.stops = True
    world.run(world.time + CALM_MS)
    world.check_at_rest()


def told(world: World, lines: int = 40) -> str:
    """The end of its story."""
    return "\n".join(f"{time:>7} {what}" for time, what in world.story[-lines:])


def counted(worlds: list[World]) -> Counter[str]:
    """What happened in all of them."""
    total: Counter[str] = Counter()
    for world in worlds:
        total.update(world.counts)
        total["transactions"] += sum(producer.done for producer in world.producers)
        total["records"] += len(world.log)
    return total
