"""Events from an input to a topic: all of them, once, in order, and done when they are there."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from penstock.agent.agent import Agent
from penstock.agent.errors import StateInUse
from penstock.testing import EmbeddedBroker
from tests.patience import until, within
from tests.walks.agent.feeding import FEEDS
from tests.walks.agent.scene import feed, lines, records_of, running, settings_of, values_of


async def test_events_arrive_once_and_in_order_and_are_done(tmp_path: Path, node: EmbeddedBroker) -> None:
    async with running(settings_of(tmp_path, node.bootstrap_servers)) as agent:
        source = await feed()
        for first in range(0, 5_000, 100):
            await source.put(lines(first, 100))
        await until(lambda: source.all_done)
        report = agent.status().inputs["one"]
        assert (report.events_in, report.events_out, report.retried, report.waiting_bytes) == (5_000, 5_000, 0, 0)
        assert agent.status().outlet.brokers_reachable
    found = await records_of(node.bootstrap_servers, "one", 5_000)
    assert [record.value for record in found] == lines(0, 5_000)
    assert dict(found[0].headers) == {"host": b"here", "path": b"/the/file"}
    assert source.closed


async def test_a_stop_waits_for_what_is_under_way(tmp_path: Path, node: EmbeddedBroker) -> None:
    async with running(settings_of(tmp_path, node.bootstrap_servers)):
        source = await feed()
        await source.put(lines(0, 10))
        await until(lambda: source.all_done)
        node.fail(api="Produce", code="NOT_ENOUGH_REPLICAS", times=3)
        await source.put(lines(10, 10))
    assert source.all_done
    assert await values_of(node.bootstrap_servers, "one", 20) == lines(0, 20)


async def test_a_stop_without_brokers_ends_in_time_and_tells_nobody_that_it_is_done(tmp_path: Path) -> None:
    async with running(settings_of(tmp_path, "127.0.0.1:1", flush_within="100ms")) as agent:
        source = await feed()
        await source.put(lines(0, 10))
        await until(lambda: "no broker answers" in agent.status().outlet.last_error)
        assert not agent.status().outlet.brokers_reachable
    assert source.closed
    assert source.done == []


async def test_asking_to_stop_twice_ends_the_waiting(tmp_path: Path) -> None:
    async with running(settings_of(tmp_path, "127.0.0.1:1")) as agent:
        source = await feed()
        await source.put(lines(0, 10))
        agent.stop()
        agent.stop()
        await until(lambda: source.closed, timeout_s=30)


async def test_an_input_that_fails_is_started_again_and_told(
    tmp_path: Path, node: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.agent.supervision.RESTART_FIRST_MS", 10)
    more = '[inputs.one]\ntype = "feed"\ntopic = "one"\nfails = 2\n'
    async with running(settings_of(tmp_path, node.bootstrap_servers, more)) as agent:
        await until(lambda: "one" in FEEDS and FEEDS["one"].lives == 3)
        await until(lambda: agent.status().inputs["one"].state == "running")
        assert agent.status().inputs["one"].restarts == 2
        assert "the source is not there" in agent.teller.last_error
        source = await feed()
        await source.put(lines(0, 5))
        await until(lambda: source.all_done)
    assert await values_of(node.bootstrap_servers, "one", 5) == lines(0, 5)


async def test_an_agent_whose_inputs_have_ended_ends(tmp_path: Path, node: EmbeddedBroker) -> None:
    more = '[inputs.one]\ntype = "feed"\ntopic = "one"\nends = true\n'
    async with asyncio.timeout(within(20)):
        await Agent(settings_of(tmp_path, node.bootstrap_servers, more)).run()


async def test_a_second_agent_on_the_same_state_is_refused(tmp_path: Path, node: EmbeddedBroker) -> None:
    settings = settings_of(tmp_path, node.bootstrap_servers)
    async with running(settings):
        with pytest.raises(StateInUse, match=f"pid {os.getpid()}"):
            await Agent(settings).run()
    async with running(settings):
        pass
