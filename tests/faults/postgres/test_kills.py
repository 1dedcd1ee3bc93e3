"""Agents and servers are killed while transactions run: the topic ends at the table, exactly once without doubles."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from penstock.testing import EmbeddedBroker
from tests.faults.counts import rounds
from tests.faults.postgres.scene import CUSTOMERS, Database, Load, Mirror, agent_file
from tests.faults.postgres.server import PostgresServer
from tests.patience import Patience

EXACTLY = 'exactly_once = true\nmachine_id = "this-one"'
TRANSACTIONS_BETWEEN = 60


def started(file: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.faults.agent.run_agent", str(file), *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def ended(agent: subprocess.Popen[bytes], sent: signal.Signals) -> None:
    agent.send_signal(sent)
    words = agent.communicate()[1].decode()
    assert agent.returncode in (0, -sent), words


def in_order(mirror: Mirror) -> None:
    """Records of the log are in the order of commits, and none of them is twice."""
    commits, places = [], Counter[object]()
    for record in mirror.records:
        if record.value is None:
            continue
        event = json.loads(record.value)
        if event["op"] == "r":
            places[("r", record.key)] += 1
            continue
        commit, lsn = map(int, json.loads(event["source"]["sequence"]))
        commits.append(commit)
        places[(event["op"], record.key, commit, lsn)] += 1
    assert commits == sorted(commits)
    assert {place for place, times in places.items() if times > 1} == set()


@pytest.mark.parametrize("exactly", [True, pytest.param(False, marks=pytest.mark.soak)], ids=["exactly", "at-least"])
async def test_an_agent_that_is_killed_again_and_again(
    postgres: PostgresServer, node: EmbeddedBroker, tmp_path: Path, exactly: bool
) -> None:
    database = Database(postgres, f"kills_{exactly}".lower())
    database.do(CUSTOMERS)
    database.do(
        "INSERT INTO customers SELECT n, 'name ' || n, n, now(), NULL, repeat('x', 9000)"
        " FROM generate_series(1, 2000) n"
    )
    file = agent_file(tmp_path, node.bootstrap_servers, database, top=EXACTLY if exactly else "")
    load, chance = Load(database, seed=5), random.Random(7)
    topic = f"{database.name}.customers"
    mirror = Mirror(node.bootstrap_servers, topic, committed=exactly)
    for _ in rounds(fast=2, full=50):
        agent, before = started(file), len(mirror.records)
        # Killed before it has begun, while it reads rows, while it follows.
        wanted = before + chance.choice((0, 1, 500, 2_100))
        patience = Patience(15)

        def enough(agent: subprocess.Popen[bytes] = agent, wanted: int = wanted, patience: Patience = patience) -> bool:
            for _ in range(5):
                load.transaction()
            assert agent.poll() is None, agent.communicate()[1].decode()
            return len(mirror.records) >= wanted or patience.over()

        await mirror.until(enough, 60)
        ended(agent, signal.SIGKILL)
        for _ in range(TRANSACTIONS_BETWEEN):
            load.transaction()
    agent = started(file)
    try:
        await mirror.equals(database, "customers", 60)
    finally:
        ended(agent, signal.SIGTERM)
    if exactly:
        in_order(mirror)
    database.drop_slot(database.name)
    database.close()


async def test_a_server_that_is_killed_again_and_again(
    postgres: PostgresServer, node: EmbeddedBroker, tmp_path: Path
) -> None:
    database = Database(postgres, "server_kills")
    database.do(CUSTOMERS)
    file = agent_file(tmp_path, node.bootstrap_servers, database, top=EXACTLY)
    load, agent = Load(database, seed=3), started(file)
    mirror = Mirror(node.bootstrap_servers, f"{database.name}.customers", committed=True)
    try:
        for _ in rounds(fast=1, full=20):
            wanted = len(mirror.records) + 100

            def enough(wanted: int = wanted) -> bool:
                load.transaction()
                return len(mirror.records) >= wanted

            await mirror.until(enough, 60)
            await asyncio.to_thread(postgres.kill)
            await asyncio.to_thread(postgres.start)
            database.again()
        await mirror.equals(database, "customers", 60)
    finally:
        ended(agent, signal.SIGTERM)
    in_order(mirror)
    database.drop_slot(database.name)
    database.close()


@pytest.mark.soak
async def test_long_transactions_beside_short_ones(
    postgres: PostgresServer, node: EmbeddedBroker, tmp_path: Path
) -> None:
    database = Database(postgres, "long_ones")
    database.do(CUSTOMERS)
    file = agent_file(tmp_path, node.bootstrap_servers, database, top=EXACTLY)
    load, other = Load(database, seed=9), postgres.connect(database.name)
    other.autocommit = False
    mirror = Mirror(node.bootstrap_servers, f"{database.name}.customers", committed=True)
    for number in rounds(fast=1, full=5):
        agent = started(file)
        with other.cursor() as cursor:
            cursor.execute(
                "INSERT INTO customers (id, name, body) SELECT n, 'long', repeat('y', 500)"
                " FROM generate_series(%s, %s) n",
                (100_000 * (number + 1), 100_000 * (number + 1) + 50_000),
            )
        for _ in range(200):
            load.transaction()
        other.commit()
        wanted = len(mirror.records) + 20_000
        await mirror.until(lambda wanted=wanted: len(mirror.records) >= wanted, 60)
        ended(agent, signal.SIGKILL)
    agent = started(file)
    try:
        await mirror.equals(database, "customers", 120)
    finally:
        ended(agent, signal.SIGTERM)
    in_order(mirror)
    other.close()
    database.drop_slot(database.name)
    database.close()
