"""From the file to every end each line is there once, whatever is killed or sleeps on its way; and faults are found."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections.abc import Iterator

import pytest

from penstock.blocking import Admin, Consumer, Producer
from penstock.cli.failures import FENCED
from penstock.demo.processes import DemoFailed
from penstock.spark.naming import DECISIONS_TOPIC
from penstock.spark.pipeline.reading import read_flow
from penstock.spark.topic_sink.transactions.ledger import history_key, standing_key
from penstock.spark.topic_sink.transactions.names import PREFIX
from tests.faults.counts import SOAKING, rounds
from tests.faults.exactly.chain import DRIVER, VICTIMS, Chain
from tests.faults.spark.tables import read_committed
from tests.patience import wait_for, within

SEED = int(os.environ.get("PENSTOCK_SEED", "1"))


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    made = Chain(tmp_path_factory.mktemp("chain"))
    try:
        made.begin()
        yield made
    finally:
        made.end()


@pytest.mark.timeout(7_200 if SOAKING else 400)
def test_each_line_is_once_at_each_end_whatever_is_killed(chain: Chain) -> None:
    chance = random.Random(SEED)
    wait_for("the first lines to be everywhere", chain.arrived, timeout_s=120, pause_s=0.5)
    # A few in a test are all different, and the driver, which takes longest to come back, is the last of them.
    few = [*chance.sample(VICTIMS[:-1], 2), DRIVER]
    for number in rounds(len(few), 100):
        victim = chance.choice(VICTIMS) if SOAKING else few[number]
        print(f"{number}: {victim}", flush=True)
        chain.strike(victim, chance)
    chain.write(200)
    chain.settle()
    assert chain.faults() == []


def test_an_agent_that_sleeps_while_another_goes_on_ends_and_doubles_nothing(chain: Chain) -> None:
    chain.write(300)
    sleeper, successor = chain.agent, chain.an_agent("successor")
    os.kill(sleeper.pid, signal.SIGSTOP)
    chain.agent = successor
    chain.start(successor)
    for _ in range(2):
        chain.write(150)
        wait_for("the successor to have sent them", lambda: shown(chain) >= chain.written, timeout_s=60, pause_s=0.1)
    os.kill(sleeper.pid, signal.SIGCONT)
    chain.write(200)
    try:
        assert sleeper.wait(within(60)), "it still runs"
        with pytest.raises(DemoFailed, match=f"ended with code {FENCED};"):
            sleeper.check()
    finally:
        sleeper.end(1)
    chain.settle()
    assert chain.faults() == []


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_driver_that_sleeps_while_another_goes_on_doubles_nothing(chain: Chain) -> None:
    chain.write(300)
    sleeper, successor = chain.pipeline, chain.a_pipeline("second")
    chain.put_to_sleep(sleeper)
    chain.pipeline = successor
    successor.start()
    for _ in range(2):
        chain.write(200)
        chain.settle()
    chain.wake(sleeper)
    chain.write(200)
    chain.settle()
    sleeper.end(30)
    chain.write(200)
    chain.settle()
    assert chain.faults() == []


def test_a_decision_that_is_lost_is_found(chain: Chain) -> None:
    query = query_of(chain, "copy")
    ledger = last_by_key(chain, DECISIONS_TOPIC)
    standing = json.loads(ledger[standing_key(query).encode()])
    last = standing["decision"]["sequence"]
    key = history_key(query, last - 1, standing["history"]).encode()
    tell_ledger(chain, key, None)
    found = chain.faults()
    assert f"copy: decision {last - 1} is not in the ledger: what it listed cannot be proven" in found
    assert all(each.startswith("copy: ") for each in found)
    tell_ledger(chain, key, ledger[key])
    assert chain.faults() == []


def test_a_zombie_task_that_commits_is_found(chain: Chain) -> None:
    query = query_of(chain, "copy")
    with Admin(bootstrap_servers=chain.node.address) as admin:
        pool = [each.id for each in admin.list_transactions(pattern=f"{PREFIX}{query}-[^d].*")]
        asyncio.run(commit_as(chain, sorted(pool)[0]))
    found = chain.faults()
    assert found[0] == "copy: 1 lines too often, such as [0]"
    assert any("copy" in each and "no decision" in each for each in found[1:]), found


async def commit_as(chain: Chain, transactional_id: str) -> None:
    """What a task does, and its driver after it, but for the decision."""
    from penstock.client.producer import Producer

    async with Producer(chain.node.address, transactional_id=transactional_id) as zombie:
        await zombie.begin()
        zombie.send("copy", b'{"n":0,"k":0}', partition=0)
        await zombie.commit()


def shown(chain: Chain) -> int:
    return len(read_committed(chain.node.address, "lines", 2))


def query_of(chain: Chain, sink: str) -> str:
    flow = read_flow(chain.folder / "pipeline.toml")
    found = flow.sink(sink)
    assert found is not None
    with open(f"{flow.checkpoint(found)}/metadata", encoding="utf-8") as metadata:
        return str(json.load(metadata)["id"])


def tell_ledger(chain: Chain, key: bytes, value: bytes | None) -> None:
    with Producer(bootstrap_servers=chain.node.address) as producer:
        producer.send(DECISIONS_TOPIC, value, key=key, partition=0).result(within(30))


def last_by_key(chain: Chain, topic: str) -> dict[bytes, bytes]:
    """Of a topic of one partition."""
    with Consumer(topic, bootstrap_servers=chain.node.address, offset_reset="earliest") as consumer:
        end = consumer.end_offsets((topic, 0))[topic, 0]
        found: dict[bytes, bytes] = {}
        while consumer.position((topic, 0)) < end:
            found |= {each.key or b"": each.value or b"" for each in consumer.poll(timeout_ms=500)}
    return found
