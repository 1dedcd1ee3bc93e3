"""What goes wrong between machines."""

from __future__ import annotations

from collections.abc import Coroutine
from random import Random
from typing import TYPE_CHECKING, Any

from penstock.testing.sim.plan import several_nodes
from penstock.testing.sim.trouble import Mishap, for_good

if TYPE_CHECKING:
    from penstock.testing.sim.trouble import Trouble

Aftermath = Coroutine[Any, Any, None] | None
Pairs = list[tuple[str, str]]


def _cut(trouble: Trouble, pairs: Pairs, words: str) -> Coroutine[Any, Any, None]:
    network = trouble.world.network
    trouble.tell("network", words)
    for source, target in pairs:
        network.block(source, target)

    async def heal() -> None:
        await trouble.a_while()
        trouble.tell("network", f"over: {words}")
        network.unblock(pairs)

    return heal()


def isolate(trouble: Trouble, random: Random) -> Aftermath:
    hosts = trouble.hosts()
    alone = random.choice(hosts)
    pairs = [pair for other in hosts if other != alone for pair in ((alone, other), (other, alone))]
    return _cut(trouble, pairs, f"{alone} is cut off from the others")


def one_way(trouble: Trouble, random: Random) -> Aftermath:
    hosts = trouble.hosts()
    deaf = random.choice(hosts)
    others = [other for other in hosts if other != deaf]
    if random.random() < 0.5:
        others = [random.choice(others)]
    if random.random() < 0.5:
        return _cut(trouble, [(other, deaf) for other in others], f"{deaf} hears nothing from {', '.join(others)}")
    return _cut(trouble, [(deaf, other) for other in others], f"{', '.join(others)} hear nothing from {deaf}")


def split(trouble: Trouble, random: Random) -> Aftermath:
    hosts = trouble.hosts()
    random.shuffle(hosts)
    at = random.randrange(1, len(hosts))
    left, right = hosts[:at], hosts[at:]
    pairs = [pair for one in left for other in right for pair in ((one, other), (other, one))]
    return _cut(trouble, pairs, f"{', '.join(sorted(left))} | {', '.join(sorted(right))}")


def slow_link(trouble: Trouble, random: Random) -> Aftermath:
    source, target = random.sample(trouble.hosts(), 2)
    extra_s = random.choice((0.02, 0.2, 1.0))
    trouble.tell("network", f"{source} to {target} takes {extra_s} s more")
    trouble.world.network.slow(source, target, extra_s)
    return for_good()


def cut_connections(trouble: Trouble, random: Random) -> Aftermath:
    """Connections that stand are lost, each for itself."""
    network = trouble.world.network
    rate = random.choice((0.1, 0.5, 1.0))
    trouble.tell("network", "connections are lost")
    for end in network.open_ends():
        if not end.peer.loop.dead and random.random() < rate / 2:
            network.reset(end)
    return for_good()


MISHAPS = (
    Mishap("nodes cut off", isolate, possible=several_nodes),
    Mishap("one-way cuts", one_way, possible=several_nodes),
    Mishap("splits", split, possible=several_nodes),
    Mishap("slow links", slow_link, possible=several_nodes),
    Mishap("connections cut", cut_connections),
)
