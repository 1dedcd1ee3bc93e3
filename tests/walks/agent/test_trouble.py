"""Brokers that refuse, fall silent or go away, and records that can never be sent."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from penstock.client.admin import Admin
from penstock.testing import EmbeddedBroker, broker
from tests.patience import until
from tests.walks.agent.feeding import Feed
from tests.walks.agent.scene import feed, lines, records_of, running, settings_of, values_of

MB = 1 << 20
DEAD_LETTERS = '[inputs.one]\ntype = "feed"\ntopic = "one"\ndead_letters = "dead"\n'
TWO_INPUTS = '[inputs.one]\ntype = "feed"\ntopic = "one"\n[inputs.two]\ntype = "feed"\ntopic = "two"\n'


@pytest.mark.parametrize(
    "error",
    ["NOT_ENOUGH_REPLICAS", "TOPIC_AUTHORIZATION_FAILED", "OUT_OF_ORDER_SEQUENCE_NUMBER", "UNKNOWN_SERVER_ERROR"],
)
async def test_what_brokers_refuse_is_tried_until_they_take_it(
    tmp_path: Path, node: EmbeddedBroker, error: str
) -> None:
    async with running(settings_of(tmp_path, node.bootstrap_servers)) as agent:
        source = await feed()
        await source.put(lines(0, 10))
        await until(lambda: source.all_done)
        node.fail(api="Produce", code=error, times=2)
        for first in range(10, 500, 10):
            await source.put(lines(first, 10))
        await until(lambda: source.all_done)
        assert agent.status().inputs["one"].unsendable == 0
        assert node.faults_left("Produce") == 0
    found = await values_of(node.bootstrap_servers, "one", 500)
    if error == "NOT_ENOUGH_REPLICAS":
        assert found == lines(0, 500)
    # After a refusal for good the producer goes on with what it has; what was refused comes behind that.
    assert sorted(found) == sorted(lines(0, 500))


async def test_memory_is_bounded_while_the_broker_is_silent(tmp_path: Path, node: EmbeddedBroker) -> None:
    settings = settings_of(tmp_path, node.bootstrap_servers, output='memory = "2 MB"')
    async with running(settings) as agent:
        source = await feed()
        await source.put(lines(0, 1))
        await until(lambda: source.all_done)
        with node.paused():
            putting = asyncio.ensure_future(put_all(source, 60))
            await until(lambda: agent.status().outlet.memory_used_bytes > MB)
            await asyncio.sleep(0.2)  # what could be taken in has been taken in by then
            assert not putting.done()
            assert agent.status().outlet.memory_used_bytes <= 2 * MB
            assert not source.offer(lines(0, 100, 1_000))
            assert not source.channel.roomy
        await putting
        await until(lambda: source.all_done)
        assert agent.status().outlet.memory_used_bytes == 0
    assert len(await values_of(node.bootstrap_servers, "one", 6_001)) == 6_001


async def put_all(source: Feed, portions: int) -> None:
    for number in range(portions):
        await source.put(lines(number * 100, 100, 1_000))


async def test_a_flood_does_not_keep_another_input_out(tmp_path: Path, node: EmbeddedBroker) -> None:
    async with running(settings_of(tmp_path, node.bootstrap_servers, TWO_INPUTS, output='memory = "2 MB"')):
        flood, quiet = await feed("one"), await feed("two")
        await quiet.put(lines(0, 1))
        await until(lambda: quiet.all_done)
        with node.paused():
            putting = asyncio.ensure_future(put_all(flood, 60))
            await until(lambda: not flood.channel.roomy)
            assert quiet.offer(lines(1, 10))
        await putting
        await until(lambda: flood.all_done and quiet.all_done)


async def test_a_portion_larger_than_the_memory_passes_alone(tmp_path: Path, node: EmbeddedBroker) -> None:
    async with running(settings_of(tmp_path, node.bootstrap_servers, output='memory = "1 MB"')):
        source = await feed()
        for first in (0, 3_000, 6_000):
            await source.put(lines(first, 3_000, 500))
        await until(lambda: source.all_done)
    assert await values_of(node.bootstrap_servers, "one", 9_000) == lines(0, 9_000, 500)


async def test_a_broker_that_is_away_for_a_while_costs_nothing(tmp_path: Path, node: EmbeddedBroker) -> None:
    async with running(settings_of(tmp_path, node.bootstrap_servers)) as agent:
        source = await feed()
        await source.put(lines(0, 100))
        await until(lambda: source.all_done)
        node.stop()
        for first in range(100, 1_000, 100):
            await source.put(lines(first, 100))
        await until(lambda: not agent.status().outlet.brokers_reachable)
        assert source.done == [0]
        node.start()
        await until(lambda: source.all_done)
        await until(lambda: agent.status().outlet.brokers_reachable)
    assert await values_of(node.bootstrap_servers, "one", 1_000) == lines(0, 1_000)


async def test_an_agent_that_starts_before_its_broker_waits_for_it(tmp_path: Path, node: EmbeddedBroker) -> None:
    node.stop()
    async with running(settings_of(tmp_path, node.bootstrap_servers)) as agent:
        source = await feed()
        await source.put(lines(0, 100))
        await until(lambda: "no broker answers" in agent.status().outlet.last_error)
        node.start()
        await until(lambda: source.all_done)
    assert await values_of(node.bootstrap_servers, "one", 100) == lines(0, 100)


async def test_a_record_that_is_too_large_goes_to_dead_letters_and_the_rest_goes_on(tmp_path: Path) -> None:
    with broker({"num.partitions": 1, "message.max.bytes": 300_000}) as node:
        async with running(settings_of(tmp_path, node.bootstrap_servers, DEAD_LETTERS)) as agent:
            source = await feed()
            # One that no request can carry, and one that only this broker refuses.
            for_nobody, for_this_one = b"A" * 2 * MB, random.Random(1).randbytes(500_000)
            await source.put([*lines(0, 10), for_nobody, *lines(10, 10), for_this_one, *lines(20, 10)])
            await source.put(lines(30, 10))
            await until(lambda: source.all_done)
            report = agent.status().inputs["one"]
            assert (report.dead, report.unsendable, report.events_out) == (2, 0, 40)
        assert sorted(await values_of(node.bootstrap_servers, "one", 40)) == sorted(lines(0, 40))
        dead = await records_of(node.bootstrap_servers, "dead", 2)
        assert sorted(for_nobody.startswith(record.value or b"-") for record in dead) == [False, True]
        for record in dead:
            headers = dict(record.headers)
            assert headers["agent.topic"] == b"one"
            assert b"max.request.size" in headers["agent.error"] or b"MESSAGE_TOO_LARGE" in headers["agent.error"]


async def test_without_a_topic_for_dead_letters_it_is_counted_and_told(tmp_path: Path, node: EmbeddedBroker) -> None:
    async with running(settings_of(tmp_path, node.bootstrap_servers)) as agent:
        source = await feed()
        await source.put([*lines(0, 10), bytes(2 * MB), *lines(10, 10)])
        await until(lambda: source.all_done)
        assert agent.status().inputs["one"].unsendable == 1
        assert "can never be sent: 2.0 MB" in agent.status().outlet.last_error
    assert await values_of(node.bootstrap_servers, "one", 20) == lines(0, 20)


async def test_records_for_a_topic_that_is_not_there_are_not_waited_for_for_ever(tmp_path: Path) -> None:
    with broker({"num.partitions": 1, "auto.create.topics.enable": "false"}) as node:
        async with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
            await admin.create_topic("dead")
        settings = settings_of(tmp_path, node.bootstrap_servers, DEAD_LETTERS, kafka=', "max.block.ms" = 300')
        async with running(settings) as agent:
            source = await feed()
            await source.put(lines(0, 10))
            await until(lambda: source.all_done)
            assert agent.status().inputs["one"].dead == 10
        dead = await records_of(node.bootstrap_servers, "dead", 10)
        assert [record.value for record in dead] == lines(0, 10)
        assert b"does not exist" in dict(dead[0].headers)["agent.error"]


async def test_dead_letters_that_cannot_be_sent_either_are_counted(tmp_path: Path) -> None:
    with broker({"num.partitions": 1, "auto.create.topics.enable": "false"}) as node:
        settings = settings_of(tmp_path, node.bootstrap_servers, DEAD_LETTERS, kafka=', "max.block.ms" = 200')
        async with running(settings) as agent:
            source = await feed()
            await source.put(lines(0, 10))
            await source.put(lines(10, 10))
            await until(lambda: source.all_done)
            report = agent.status().inputs["one"]
            assert (report.dead, report.unsendable) == (0, 20)


async def test_a_topic_that_wants_keys_does_not_stop_an_input(tmp_path: Path, node: EmbeddedBroker) -> None:
    async with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
        await admin.create_topic("one", configs={"cleanup.policy": "compact"})
    async with running(
        settings_of(tmp_path, node.bootstrap_servers, DEAD_LETTERS, output='compression = "none"')
    ) as agent:
        source = await feed()
        await source.put(lines(0, 10))
        await until(lambda: source.all_done)
        assert agent.status().inputs["one"].dead == 10
    assert await values_of(node.bootstrap_servers, "dead", 10) == lines(0, 10)


@pytest.mark.parametrize("created", [True, False])
async def test_a_topic_that_is_deleted_under_way_is_made_anew_or_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, created: bool
) -> None:
    monkeypatch.setattr("penstock.agent.outlet.outlet.OVERDUE_MS", 100)
    with broker({"num.partitions": 1, "auto.create.topics.enable": created}) as node:
        async with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
            for name in ("one", "dead"):
                await admin.create_topic(name)
            settings = settings_of(tmp_path, node.bootstrap_servers, DEAD_LETTERS, kafka=', "max.block.ms" = 500')
            async with running(settings) as agent:
                source = await feed()
                await source.put(lines(0, 10))
                await until(lambda: source.all_done)
                await admin.delete_topic("one")
                for first in range(10, 200, 10):
                    await source.put(lines(first, 10))
                await until(lambda: source.all_done)
                assert agent.status().inputs["one"].dead == (0 if created else 190)
        found = await values_of(node.bootstrap_servers, "one" if created else "dead", 190)
        assert found == lines(10, 190)
