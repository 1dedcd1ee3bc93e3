"""Faults by chance, with and without a spool: nothing is lost, repeated or reordered while the agent lives."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from penstock.testing import EmbeddedBroker, broker
from tests.faults.counts import SOAKING
from tests.patience import until
from tests.walks.agent.feeding import Feed
from tests.walks.agent.scene import feed, running, settings_of, values_of

INPUTS = """
[spool]
size = "50 MB"
after = "100ms"
[inputs.one]
type = "feed"
topic = "shared"
[inputs.two]
type = "feed"
topic = "shared"
"""
SEEDS = range(1, 31 if SOAKING else 3)
ROUNDS = 20 if SOAKING else 8


@pytest.mark.parametrize("spooled", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
async def test_whatever_happens_every_input_keeps_its_order(
    tmp_path: Path, seed: int, spooled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.agent.agent.SPOOLED", frozenset({"feed"} if spooled else ()))
    chance = random.Random(seed)
    with broker({"num.partitions": 1}) as node:
        settings = settings_of(tmp_path, node.bootstrap_servers, INPUTS, output='memory = "1 MB"')
        async with running(settings) as agent:
            sources = [await feed("one"), await feed("two")]
            putting = [
                asyncio.ensure_future(put(source, name, chance)) for source, name in zip(sources, b"ab", strict=True)
            ]
            for _ in range(ROUNDS):
                await trouble(node, chance)
            await asyncio.gather(*putting)
            await until(lambda: all(source.all_done for source in sources))
            await until(lambda: agent.status().outlet.spool_bytes == 0)
            sent = sum(report.events_out for report in agent.status().inputs.values())
        found = await values_of(node.bootstrap_servers, "shared", sent)
    for name in b"ab":
        own = [int(value[1:]) for value in found if value[0] == name]
        assert own == list(range(len(own)))
    assert len(found) == sent == sum(source.put_count for source in sources) * 20


async def put(source: Feed, name: int, chance: random.Random) -> None:
    for number in range(300):
        await source.put([b"%c%d" % (name, number * 20 + row) + b" " * 500 for row in range(20)])
        if not chance.randrange(4):
            await asyncio.sleep(chance.random() * 0.03)


async def trouble(node: EmbeddedBroker, chance: random.Random) -> None:
    match chance.randrange(5):
        case 0:
            node.stop()
            await asyncio.sleep(chance.random() * 0.4)
            node.start()
        case 1:
            with node.paused():
                await asyncio.sleep(chance.random() * 0.4)
        case 2:
            code = chance.choice(["NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT", "NOT_LEADER_OR_FOLLOWER"])
            node.fail(api="Produce", code=code, times=chance.randrange(1, 6))
        case 3:
            node.disconnect(api="Produce", times=chance.randrange(1, 4), served=bool(chance.randrange(2)))
    await asyncio.sleep(chance.random() * 0.1)
