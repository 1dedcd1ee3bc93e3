"""Another file while the agent runs: what is the same goes on, what is not is stopped and started in order."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.agent.agent import Reloaded
from penstock.agent.errors import CannotReload
from penstock.testing import EmbeddedBroker
from tests.patience import until
from tests.walks.agent.feeding import FEEDS, Feed
from tests.walks.agent.scene import feed, lines, running, settings_of, values_of

ONE = '[inputs.one]\ntype = "feed"\ntopic = "one"\n'
TWO = '[inputs.two]\ntype = "feed"\ntopic = "two"\n'


async def test_an_input_that_is_the_same_goes_on(tmp_path: Path, node: EmbeddedBroker) -> None:
    here = node.bootstrap_servers
    async with running(settings_of(tmp_path, here, ONE + TWO)) as agent:
        one, two = await feed("one"), await feed("two")
        going = asyncio.ensure_future(put_on(one))
        await two.put(lines(0, 10))
        reloaded = await agent.reload(settings_of(tmp_path, here, ONE + TWO.replace('"two"\n', '"deux"\n')))
        assert reloaded == Reloaded(("two",), ("two",), ("one",))
        assert two.all_done
        assert two.closed
        await until(lambda: FEEDS["two"] is not two)
        await FEEDS["two"].put(lines(10, 10))
        assert await agent.reload(settings_of(tmp_path, here, ONE)) == Reloaded((), ("two",), ("one",))
        assert FEEDS["one"] is one
        await going
        await until(lambda: one.all_done)
        assert agent.status().reloads == 2
        assert list(agent.status().inputs) == ["one"]
    assert await values_of(here, "one", 5_000) == lines(0, 5_000)
    assert await values_of(here, "two", 10) == lines(0, 10)
    assert await values_of(here, "deux", 10) == lines(10, 10)


async def put_on(source: Feed) -> None:
    for first in range(0, 5_000, 50):
        await source.put(lines(first, 50))
        await asyncio.sleep(0.001)


async def test_another_output_takes_over_without_losing_or_repeating_anything(
    tmp_path: Path, node: EmbeddedBroker
) -> None:
    here = node.bootstrap_servers
    async with running(settings_of(tmp_path, here, ONE)) as agent:
        one = await feed("one")
        going = asyncio.ensure_future(put_on(one))
        for compression in ("zstd", "none", "gzip"):
            changed = settings_of(tmp_path, here, ONE, output=f'compression = "{compression}"\nmemory = "1 MB"')
            assert await agent.reload(changed) == Reloaded((), (), ("one",))
            assert agent.status().outlet.memory_limit_bytes == 1 << 20
        await going
        await until(lambda: one.all_done)
    assert await values_of(here, "one", 5_000) == lines(0, 5_000)


async def test_an_output_that_never_answers_is_left_for_one_that_does(tmp_path: Path, node: EmbeddedBroker) -> None:
    settings = settings_of(tmp_path, "127.0.0.1:1", ONE, flush_within="200ms")
    async with running(settings) as agent:
        one = await feed("one")
        await one.put(lines(0, 100))
        await agent.reload(replace(settings, bootstrap=node.bootstrap_servers))
        await until(lambda: one.all_done)
    assert await values_of(node.bootstrap_servers, "one", 100) == lines(0, 100)


async def test_what_needs_a_restart_is_refused_and_nothing_changes(tmp_path: Path, node: EmbeddedBroker) -> None:
    settings = settings_of(tmp_path, node.bootstrap_servers, ONE)
    async with running(settings) as agent:
        one = await feed("one")
        for changed in (replace(settings, name="other"), replace(settings, state_dir=tmp_path / "other", inputs={})):
            with pytest.raises(CannotReload, match="restart it"):
                await agent.reload(changed)
        await one.put(lines(0, 10))
        await until(lambda: one.all_done)
        assert agent.settings == settings
