"""Transactions whose partitions and coordinator are led by different nodes, which die in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from operator import itemgetter
from typing import Any

import pytest

from penstock.model.errors import INVALID_PRODUCER_EPOCH, PRODUCER_FENCED
from penstock.model.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.transport.dial import LinkError
from tests.patience import until, within
from tests.walks.data_plane import at, data_of
from tests.walks.routed import Routed
from tests.walks.three_nodes import Cluster
from tests.walks.three_nodes import walk as walk_in_cluster
from tests.walks.transacting import READ_COMMITTED, committed_values
from tests.walks.transactional_ids import Producer, offset_of

AGAIN = frozenset({-1, 3, 5, 6, 7, 13, 14, 15, 16, 19, 20, 51, 56, 88})
"""What every client asks again after."""
PAUSE_S = 0.02


def walk(steps: Callable[[Cluster, Routed], Coroutine[Any, Any, None]], **settings: str) -> None:
    async def main(cluster: Cluster) -> None:
        client = Routed(cluster)
        try:
            await client.tell(1, FindCoordinatorRequest(key="copier", key_type=1), 2)
            await until(lambda: cluster.in_sync(TRANSACTIONS_TOPIC, 3))
            async with asyncio.timeout(within(60)):
                await steps(cluster, client)
        finally:
            client.close()

    walk_in_cluster(main, transaction_state_log_num_partitions="3", **settings)


async def told(ask: Callable[[], Coroutine[Any, Any, Any]], code: Callable[[Any], int] = int) -> Any:
    """The answer that is no excuse."""
    while True:
        with suppress(LinkError):
            answer = await ask()
            if code(answer) not in AGAIN:
                return answer
        await asyncio.sleep(PAUSE_S)  # as clients do; the walk as a whole has a deadline


async def begun(client: Routed, name: str = "copier", *, classic: bool = False) -> Producer:
    producer = Producer(client, name, classic=classic)
    assert await told(producer.init) == 0
    return producer


async def write(producer: Producer, topic: str, value: bytes, *partitions: int) -> None:
    if producer.classic:
        codes = await told(lambda: producer.add(topic, *partitions), max)
        assert codes == [0] * len(partitions)
    for index in partitions:
        first = producer.sequences.get((topic, index), 0)
        answer = await told(
            lambda index=index, first=first: producer.send(topic, value, partitions=(index,), sequence=first),
            lambda answer: answer[0][0],
        )
        assert answer[0][0] == 0, answer
        producer.sequences[topic, index] = first + 1


async def committed(client: Routed, topic: str, partition: int) -> list[bytes | None]:
    reply = await client.fetch(at(topic, 0, partition), isolation_level=READ_COMMITTED)
    return committed_values(data_of(reply))


async def settled(producer: Producer) -> str:
    """How the transaction stands when nothing of it is under way any more."""
    state = await told(producer.described, lambda state: int(state.error_code) or 51 * _is_ending(state))
    assert state.error_code == 0
    return str(state.transaction_state)


def _is_ending(state: Any) -> bool:
    return str(state.transaction_state).startswith("Prepare")


@pytest.mark.parametrize("classic", [True, False], ids=["classic", "new"])
def test_a_transaction_over_partitions_of_all_nodes_is_seen_whole_or_not_at_all(classic: bool) -> None:
    async def steps(cluster: Cluster, client: Routed) -> None:
        await client.make("orders", 1, 2, 3)
        producer = await begun(client, classic=classic)
        for value, commit in ((b"first", True), (b"second", False), (b"third", True)):
            await write(producer, "orders", value, 0, 1, 2)
            assert await told(lambda commit=commit: producer.end(commit=commit)) == 0
            assert await settled(producer) == ("CompleteCommit" if commit else "CompleteAbort")
        for partition in range(3):
            assert await committed(client, "orders", partition) == [b"first", b"third"]
        sent = [node.broker.peers.carried("markers").requests for node in cluster.nodes.values()]
        assert sum(sent) == 2 * (1 + 3), "two links, over each of which versions and then three markers were sent"

    walk(steps)


def test_a_coordinator_that_dies_in_a_transaction_leaves_it_to_the_next() -> None:
    async def steps(cluster: Cluster, client: Routed) -> None:
        await client.make("orders", 1, 2, 3)
        producer = await begun(client)
        await write(producer, "orders", b"kept", 0, 1, 2)
        dead = client.coordinator("copier")
        cluster.crash(dead)
        await until(lambda: client.coordinator("copier") not in (dead, -1))
        assert await told(lambda: producer.end(commit=True)) == 0
        assert producer.epoch == 1
        assert await settled(producer) == "CompleteCommit"
        for partition in range(3):
            assert await committed(client, "orders", partition) == [b"kept"]

    walk(steps)


@pytest.mark.parametrize("commit", [True, False])
def test_an_outcome_that_was_told_is_carried_out_by_whoever_comes_next(commit: bool) -> None:
    async def steps(cluster: Cluster, client: Routed) -> None:
        await client.make("orders", 1, 2, 3)
        producer = await begun(client)
        await write(producer, "orders", b"value", 0, 1, 2)
        dead = client.coordinator("copier")
        # Its markers are decided, and never leave it.
        cluster.nodes[dead].broker.transactions.kind.carry_out = lambda *_: None  # type: ignore[method-assign]
        assert await producer.end(commit=commit) == 0
        assert (await producer.described()).transaction_state.startswith("Prepare")
        cluster.crash(dead)
        await until(lambda: client.coordinator("copier") not in (dead, -1))
        assert await settled(producer) == ("CompleteCommit" if commit else "CompleteAbort")
        for partition in range(3):
            await until(lambda partition=partition: client.leader_of("orders", partition) not in (dead, -1))
            assert await committed(client, "orders", partition) == ([b"value"] if commit else [])

    walk(steps)


def test_markers_follow_a_partition_to_its_next_leader() -> None:
    async def steps(cluster: Cluster, client: Routed) -> None:
        coordinator = client.coordinator("copier")
        dead = next(node for node in cluster.nodes if node != coordinator)
        await client.make("orders", dead)
        producer = await begun(client)
        await write(producer, "orders", b"kept", 0)
        cluster.crash(dead)
        assert await told(lambda: producer.end(commit=True)) == 0
        assert await settled(producer) == "CompleteCommit"
        await until(lambda: client.leader_of("orders") not in (dead, -1))
        assert await committed(client, "orders", 0) == [b"kept"]

    walk(steps)


def test_script_12_a_partition_that_nobody_leads_is_waited_for() -> None:
    async def steps(cluster: Cluster, client: Routed) -> None:
        coordinator = client.coordinator("copier")
        dead = next(node for node in cluster.nodes if node != coordinator)
        await client.make("lonely", dead, replicas=1)
        await client.make("orders", coordinator)
        producer = await begun(client)
        await write(producer, "lonely", b"kept", 0)
        await write(producer, "orders", b"kept", 0)
        cluster.crash(dead)
        await until(lambda: client.leader_of("lonely") == -1)
        assert await told(lambda: producer.end(commit=True)) == 0

        async def lists() -> Any:
            state = await producer.described()
            return [topic.topic for topic in state.topics]

        while await lists() != ["lonely"]:
            pass
        assert (await producer.described()).transaction_state == "PrepareCommit"
        markers = cluster.nodes[coordinator].broker.transactions.markers
        assert markers is not None
        assert (markers.unmarked, markers.without_destination) == (1, 1)
        await cluster.start(dead)
        assert await settled(producer) == "CompleteCommit"
        assert await committed(client, "lonely", 0) == [b"kept"]

    walk(steps)


@pytest.mark.parametrize("classic", [True, False], ids=["classic", "new"])
def test_offsets_and_records_are_one_step_whoever_dies(classic: bool) -> None:
    """Records, offsets and the transaction itself are looked after by different nodes, if they can be."""

    async def steps(cluster: Cluster, client: Routed) -> None:
        await client.make("in", 1)
        await client.make("out", 1, 2, 3)
        await client.tell(1, FindCoordinatorRequest(key="readers"), 2)
        await until(lambda: cluster.in_sync(OFFSETS_TOPIC, 3))
        producer = await begun(client, classic=classic)
        for offset, kills in ((1, None), (2, client.group_coordinator), (3, client.coordinator)):
            await write(producer, "out", b"%d" % offset, 0, 1, 2)
            assert await told(partial(producer.commit_offset, "readers", "in", offset)) == 0
            dead = 0 if kills is None else kills("readers" if kills == client.group_coordinator else "copier")
            if dead:
                cluster.crash(dead)
            assert await told(partial(producer.end, commit=True)) == 0
            assert await settled(producer) == "CompleteCommit"
            assert await told(partial(offset_of, client, "readers", "in"), itemgetter(0)) == (0, offset)
            if dead:
                await cluster.start(dead)
                for topic in ("out", OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
                    await until(partial(cluster.in_sync, topic, 3))
        for partition in range(3):
            assert await committed(client, "out", partition) == [b"1", b"2", b"3"]

    walk(steps)


def test_the_next_producer_fences_the_one_before_on_every_node() -> None:
    async def steps(cluster: Cluster, client: Routed) -> None:
        await client.make("orders", 1, 2, 3)
        former = await begun(client)
        await write(former, "orders", b"lost", 0, 1)
        newer = await begun(client)
        await write(newer, "orders", b"kept", 0, 1, 2)
        for partition in range(3):
            ((error, _),) = await former.send("orders", b"late", partitions=(partition,))
            assert error == INVALID_PRODUCER_EPOCH.code
        assert await former.end(commit=True) == PRODUCER_FENCED.code
        assert await told(lambda: newer.end(commit=True)) == 0
        assert await settled(newer) == "CompleteCommit"
        for partition in range(3):
            assert await committed(client, "orders", partition) == [b"kept"]

    walk(steps)


def test_transactions_that_come_together_share_requests_between_brokers() -> None:
    async def steps(cluster: Cluster, client: Routed) -> None:
        await client.make("orders", 1, 2, 3)
        clients = [Routed(cluster) for _ in range(20)]
        producers = [await begun(each, f"copier-{number}") for number, each in enumerate(clients)]
        await asyncio.gather(*(write(each, "orders", b"kept", 0, 1, 2) for each in producers))
        ended = await asyncio.gather(*(told(partial(each.end, commit=True)) for each in producers))
        assert ended == [0] * len(producers)
        assert set(await asyncio.gather(*map(settled, producers))) == {"CompleteCommit"}
        for partition in range(3):
            assert await committed(client, "orders", partition) == [b"kept"] * len(producers)
        for purpose in ("markers", "verification"):
            asked = sum(node.broker.peers.carried(purpose).requests for node in cluster.nodes.values())
            assert 0 < asked < len(producers) * 2, f"{asked} requests for {purpose}, where one by one it is 40"
        for each in clients:
            each.close()

    walk(steps)
