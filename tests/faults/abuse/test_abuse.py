"""Floods, broken bytes and crowds at a secured node: nobody gets in, and those who stand go on.

In `make soak PART=abuse`: 10,000 connections that never finish, 100,000 mutations, 2,000 clients of three nodes that
come back at once, with bounds on the latency of others. What was measured is printed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
import urllib.request
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock import Admin
from tests.compat.processes import free_ports
from tests.faults.abuse.standing import TOPIC, Standing, state_of
from tests.faults.counts import SOAKING
from tests.faults.node import NodeProcess
from tests.patience import at_most, until, within

CALM_S = 30.0
GROWTH_BYTES_MAX = 150 << 20
"""2,000 strangers, which is all that a listener has at a time, are 17 KB each in their handshakes; the rest is what
Python and OpenSSL keep of what was in use at the fullest."""
P99_FACTOR_MAX = 2.0
P99_FLOOR_MS = 5.0
"""Below this a p99 is noise of the machine."""
BACK_S = 20.0
STRANGER_S = 10.0
"""How long a node waits for a login."""
SEED = int(os.environ.get("PENSTOCK_SEED", "4711"))

pytestmark = pytest.mark.timeout(3_600 if SOAKING else 180)


class Secured:
    """`penstock dev --secure` with its admin port, one node or three."""

    def __init__(self, directory: Path, nodes: int) -> None:
        (self._admin_port,) = free_ports(1)
        flags = ("--secure", "--nodes", str(nodes)) if nodes > 1 else ("--secure",)
        settings = () if nodes > 1 else (f"penstock.admin.listener=127.0.0.1:{self._admin_port}",)
        self.process = NodeProcess(directory, *settings, flags=flags)
        self.config = directory / "security" / "admin.properties"
        self.client = {"client_config": str(self.config)}

    @property
    def bootstrap(self) -> str:
        (found,) = re.findall(r"^bootstrap\.servers=(.*)$", self.config.read_text(), re.MULTILINE)
        return str(found)

    @property
    def settings(self) -> dict[str, Any]:
        return {"bootstrap_servers": self.bootstrap, **self.client}

    def rss_bytes(self) -> int:
        """Of the largest node."""
        first = psutil.Process(self.process.pid)
        return max(each.memory_info().rss for each in (first, *first.children(recursive=True)))

    def count(self, name: str) -> int:
        """A counter of the clients' listener, over its mechanisms."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._admin_port}/metrics", timeout=within(10)) as page:
            text = page.read().decode()
        line = rf"^kafka_server_socket_server_metrics_{name}{{[^}}]*CLIENTS[^}}]*}} (\S+)$"
        found = re.findall(line, text, re.MULTILINE)
        assert found, name
        return int(sum(map(float, found)))


@contextlib.asynccontextmanager
async def secured(tmp_path: Path, nodes: int = 1) -> AsyncIterator[Secured]:
    made = Secured(tmp_path / "data", nodes)
    await asyncio.to_thread(made.process.start)
    try:
        async with Admin(**made.settings) as admin:
            await admin.create_topic(TOPIC, partitions=3, replication=nodes)
        yield made
        assert made.process.stop() == 0, "the node is well enough to stop cleanly"
        assert "Traceback" not in made.process.words(), made.process.words()[-4_000:]
    finally:
        made.process.kill()


@contextlib.asynccontextmanager
async def begun(module: str, *arguments: object) -> AsyncIterator[Process]:
    """Behind the others where the processor is short: whoever attacks from elsewhere takes nothing of ours."""
    process = await asyncio.create_subprocess_exec(
        "nice", "-n", "19", sys.executable, "-m", module, *map(str, arguments), stdin=PIPE, stdout=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def told(process: Process) -> dict[str, Any]:
    assert process.stdout is not None
    line = await process.stdout.readline()
    assert line, f"it ended with {await process.wait()}"
    found: dict[str, Any] = json.loads(line)
    return found


def attack(node: Secured, way: str, count: int, stay_s: int = 60) -> contextlib.AbstractAsyncContextManager[Process]:
    return begun("tests.faults.abuse.attacker", way, node.process.port, count, stay_s, SEED)


class Bystanders:
    """Those who stand at a node, and what an attack does to them and to its memory."""

    def __init__(self, node: Secured) -> None:
        self.node, self.standing = node, Standing(node.settings)
        self.grown_bytes = 0
        self.before_ms = self.during_ms = 0.0

    @contextlib.asynccontextmanager
    async def watched(self, calm_s: float) -> AsyncIterator[Bystanders]:
        standing = self.standing
        async with standing.running():
            await until(lambda: standing.acknowledged > 50, timeout_s=60)
            since = len(standing.latencies_ms)
            await asyncio.sleep(calm_s)  # how long it is measured is what is chosen here
            await until(lambda: len(standing.latencies_ms) > since + 10, timeout_s=60)
            self.before_ms = standing.p99_ms(since)
            since, logins = len(standing.latencies_ms), self.node.count("successful_authentication_total")
            watch = asyncio.create_task(self._watch(self.node.rss_bytes()))
            try:
                yield self
            finally:
                watch.cancel()
            self.during_ms = standing.p99_ms(since)
            assert self.node.count("successful_authentication_total") == logins, "only those who stand have logged in"
        assert standing.read == standing.acknowledged

    async def _watch(self, before: int) -> None:
        while True:
            self.grown_bytes = max(self.grown_bytes, self.node.rss_bytes() - before)
            await asyncio.sleep(0.2)

    def judge(self, outcome: dict[str, Any]) -> None:
        waits = f"p99 {self.before_ms:.1f} ms before, {self.during_ms:.1f} ms during"
        print(f"\n{waits}; memory +{self.grown_bytes >> 20} MB; {outcome}")
        assert outcome["in"] == 0, "nobody gets in"
        assert self.grown_bytes < GROWTH_BYTES_MAX, f"memory grew by {self.grown_bytes >> 20} MB"


def assert_hardly_slower(bystanders: Bystanders) -> None:
    bound_ms = max(P99_FACTOR_MAX * bystanders.before_ms, P99_FLOOR_MS)
    assert bystanders.during_ms <= bound_ms, "those who stand wait longer"


def test_those_who_stand_go_on_while_others_do_harm(tmp_path: Path) -> None:
    """All of it at once, in small numbers."""

    async def main() -> None:
        async with secured(tmp_path) as node:
            bystanders = Bystanders(node)
            async with (
                bystanders.watched(calm_s=0.2),
                attack(node, "strangers", 100, stay_s=2) as strangers,
                attack(node, "mutations", 200) as mutations,
            ):
                came, tried = await asyncio.gather(told(strangers), told(mutations))
            bystanders.judge(came)
            bystanders.judge(tried)
            assert (came["opened"], tried["tried"]) == (100, 200)
            assert tried["told that it is refused"] > 0
            assert node.count("failed_authentication_total") > 0
            await come_back(node, 60)

    asyncio.run(main())


@pytest.mark.soak
def test_ten_thousand_connections_that_never_finish_a_handshake(tmp_path: Path) -> None:
    async def main() -> None:
        async with secured(tmp_path) as node:
            bystanders = Bystanders(node)
            async with bystanders.watched(CALM_S), attack(node, "strangers", 10_000) as strangers:
                outcome = await told(strangers)
            bystanders.judge(outcome)
            # Those for whom there was no place are turned away at once, the others when their time is up.
            assert outcome["opened"] + outcome.get("hung up", 0) + outcome.get("no answer", 0) == 10_000
            assert outcome["ended by the node"] == outcome["opened"]
            assert outcome["longest_s"] < within(2 * STRANGER_S)
            assert_hardly_slower(bystanders)

    asyncio.run(main())


@pytest.mark.soak
def test_a_hundred_thousand_mutations_before_a_login(tmp_path: Path) -> None:
    async def main() -> None:
        async with secured(tmp_path) as node:
            bystanders = Bystanders(node)
            async with bystanders.watched(CALM_S), attack(node, "mutations", 100_000) as mutations:
                outcome = await told(mutations)
            bystanders.judge(outcome)
            assert outcome["tried"] == 100_000
            assert_hardly_slower(bystanders)

    asyncio.run(main())


@pytest.mark.soak
def test_two_thousand_clients_that_come_back_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with secured(tmp_path, nodes=3) as node:
            await come_back(node, 2_000)

    asyncio.run(main())


async def come_back(node: Secured, count: int) -> None:
    """A crowd that comes back at once finds everything as it was."""
    standing = Standing(node.settings)
    async with standing.running():
        await until(lambda: standing.read > 50, timeout_s=60)
        async with begun("tests.faults.abuse.crowd", node.config, count) as crowd:
            first = await told(crowd)
            state, since = await state_of(node.settings), len(standing.latencies_ms)
            assert crowd.stdin is not None
            crowd.stdin.write(b"again\n")
            async with at_most(6 * BACK_S):
                back = await told(crowd)
            print(
                f"\n{count} clients came in {first['came_s']:.1f} s, again in {back['came_s']:.1f} s with "
                f"{back['tries']} tries; p99 of others {standing.p99_ms():.1f} ms, {standing.p99_ms(since):.1f} ms "
                f"meanwhile; memory {node.rss_bytes() >> 20} MB"
            )
            assert back["stood"] == count, "nobody was cut before"
            assert back["came_s"] < within(BACK_S)
            assert await state_of(node.settings) == state, "no election, no broker fenced, no rebalance"
    assert standing.read == standing.acknowledged
