"""Inputs that cannot wait go on while brokers are away, through the disk, and nothing changes its place."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from penstock.testing import EmbeddedBroker
from tests.patience import until
from tests.walks.agent.scene import feed, lines, records_of, running, settings_of, values_of

SPOOLED = """
[spool]
size = "{size}"
after = "200ms"
[inputs.one]
type = "feed"
topic = "one"
"""
MB = 1 << 20


@pytest.fixture(autouse=True)
def _feeds_spool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.agent.agent.SPOOLED", frozenset({"feed"}))
    monkeypatch.setattr("penstock.agent.settings.reading.SPOOLED", frozenset({"feed"}))


def spool_files(folder: Path) -> list[Path]:
    return sorted((folder / ".penstock-agent" / "walk" / "spool").glob("*/*.frames"))


async def test_events_go_through_the_spool_and_arrive_once_and_in_order(tmp_path: Path, node: EmbeddedBroker) -> None:
    more = SPOOLED.format(size="100 MB")
    async with running(settings_of(tmp_path, node.bootstrap_servers, more, output='memory = "1 MB"')) as agent:
        source = await feed()
        await source.put(lines(0, 100))
        await until(lambda: source.all_done)
        node.stop()
        for first in range(100, 6_000, 100):
            await source.put(lines(first, 100, 1_000))
        await until(lambda: source.all_done)
        status = agent.status()
        assert status.outlet.spooling
        assert status.outlet.spool_bytes > 0
        assert status.outlet.memory_used_bytes == 0
        node.start()
        await source.put(lines(6_000, 100))
        await until(lambda: source.all_done and not agent.status().outlet.spooling)
        await until(lambda: agent.status().outlet.spool_bytes == 0)
        await source.put(lines(6_100, 100))
        await until(lambda: source.all_done)
    found = [int(value) for value in await values_of(node.bootstrap_servers, "one", 6_200)]
    assert found == list(range(6_200))
    assert spool_files(tmp_path) == []


async def test_what_was_spooled_survives_the_agent_and_keeps_its_time(tmp_path: Path, node: EmbeddedBroker) -> None:
    settings = settings_of(tmp_path, node.bootstrap_servers, SPOOLED.format(size="100 MB"), flush_within="300ms")
    node.stop()
    async with running(settings):
        source = await feed()
        await source.put(lines(0, 1_000))
        await until(lambda: source.all_done)
        await source.put(lines(1_000, 1_000))
    assert source.all_done, "the end puts the rest into the spool"
    assert len(spool_files(tmp_path)) >= 1
    node.start()
    async with running(settings) as agent:
        source = await feed()
        await source.put(lines(2_000, 1_000))
        await until(lambda: source.all_done and agent.status().outlet.spool_bytes == 0)
    found = await records_of(node.bootstrap_servers, "one", 3_000)
    assert [record.value for record in found] == lines(0, 3_000)
    assert found[0].timestamp < found[-1].timestamp


async def test_a_full_spool_is_back_pressure_and_told(tmp_path: Path, node: EmbeddedBroker) -> None:
    noise = random.Random(1)
    settings = settings_of(tmp_path, node.bootstrap_servers, SPOOLED.format(size="1 MB"), output='memory = "1 MB"')
    async with running(settings) as agent:
        source = await feed()
        await source.put(lines(0, 1))
        await until(lambda: source.all_done)
        node.stop()

        async def put_all() -> None:
            for number in range(60):
                await source.put([b"%d " % number + noise.randbytes(100_000)])

        putting = asyncio.ensure_future(put_all())
        await until(lambda: "has reached its size" in agent.status().outlet.last_error)
        assert not putting.done()
        assert agent.status().outlet.spool_bytes <= MB
        node.start()
        await putting
        await until(lambda: source.all_done and agent.status().outlet.spool_bytes == 0)
    found = await values_of(node.bootstrap_servers, "one", 61)
    assert [int(value.split(b" ")[0]) for value in found] == [0, *range(60)]


async def test_inputs_that_can_wait_do_not_use_it(
    tmp_path: Path, node: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.agent.agent.SPOOLED", frozenset())
    async with running(settings_of(tmp_path, node.bootstrap_servers, SPOOLED.format(size="100 MB"))) as agent:
        source = await feed()
        node.stop()
        await source.put(lines(0, 100))
        await until(lambda: agent.status().outlet.silent_ms > 500)
        assert source.done == []
        assert spool_files(tmp_path) == []
        node.start()
        await until(lambda: source.all_done)


async def test_the_spool_of_an_input_that_is_gone_is_sent_too(tmp_path: Path, node: EmbeddedBroker) -> None:
    settings = settings_of(tmp_path, node.bootstrap_servers, SPOOLED.format(size="100 MB"), flush_within="100ms")
    node.stop()
    async with running(settings):
        source = await feed()
        await source.put(lines(0, 1_000))
        await until(lambda: source.all_done)
    node.start()
    other = SPOOLED.format(size="100 MB").replace("inputs.one", "inputs.other")
    async with running(settings_of(tmp_path, node.bootstrap_servers, other)) as agent:
        await until(lambda: agent.status().outlet.spool_bytes == 0)
    assert await values_of(node.bootstrap_servers, "one", 1_000) == lines(0, 1_000)
