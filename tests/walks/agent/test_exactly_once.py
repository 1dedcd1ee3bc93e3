"""Records and their positions in one transaction: whatever fails, a line is in its topic exactly once."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from penstock.agent.errors import AgentFenced, PositionsVanished
from penstock.client.consumer import Consumer
from penstock.testing import EmbeddedBroker
from tests.faults.agent.tailing import append, numbered
from tests.patience import until, within
from tests.walks.agent.scene import committed_values, feed, lines, running, settings_of

EXACTLY = "exactly_once = true\nmachine_id = \"m1\"\n"

TAIL = """
[inputs.app]
type = "tail"
paths = ["{paths}"]
topic = "app"
poll_min = "5ms"
discover = "50ms"
rotate_wait = "200ms"
"""


async def test_lines_are_committed_with_their_positions(tmp_path: Path, node: EmbeddedBroker) -> None:
    log = tmp_path / "logs" / "app.log"
    log.parent.mkdir()
    written = numbered("a", 0, 500)
    append(log, written)
    settings = settings_of(tmp_path, node.bootstrap_servers, TAIL.format(paths=log), top=EXACTLY)
    async with running(settings) as agent:
        await until(lambda: agent.status().inputs["app"].events_out == 500)
    more = numbered("b", 0, 500)
    append(log, more)
    async with running(settings) as agent:
        await until(lambda: agent.status().inputs["app"].events_out == 500)
    assert await committed_values(node.bootstrap_servers, "app", 1000) == written + more
