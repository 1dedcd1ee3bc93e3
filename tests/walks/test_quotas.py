"""Quotas through a whole node: who has a limit pauses, and nobody else notices that there are limits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.model.errors import NONE, THROTTLING_QUOTA_EXCEEDED
from penstock.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from penstock.protocol.messages.create_partitions import CreatePartitionsRequest
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.server.reception.connection import Connection
from penstock.server.reception.quotas import UNLIMITED
from penstock.transport.net import AsyncioNet
from tests.patience import until, within
from tests.walks import three_nodes
from tests.walks.data_plane import ANSWER_MS, Client, Machine, at, batch_of, produce_request, told, walk
from tests.walks.three_nodes import Cluster

ANONYMOUS = (("user", "ANONYMOUS"),)
BY_NAME = 12


async def limit(client: Client, entity: tuple[tuple[str, str | None], ...] = ANONYMOUS, **limits: float) -> None:
    """Sets limits, or takes them away (0)."""
    made = AlterClientQuotasRequest
    entry = made.EntryData(
        entity=[made.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[made.OpData(key=key, value=value, remove=not value) for key, value in limits.items()],
    )
    reply = await client.ask(made(entries=[entry]))
    assert [each.error_code for each in reply.entries] == [0]


async def produced(client: Client, topic: str, size: int) -> int:
    """The pause that a record of that size brings."""
    reply = await client.ask(produce_request(topic, batch_of(bytes(size)), acks=-1), BY_NAME)
    assert reply.responses[0].partition_responses[0].error_code == 0
    return int(reply.throttle_time_ms)


def test_a_produce_over_the_limit_is_written_and_its_connection_pauses() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await limit(client, producer_byte_rate=1_000)
        assert await produced(client, "t", 9_000) == 0
        pause_ms = await produced(client, "t", 5_000)
        assert 3_900 < pause_ms < 4_500
        held = client.ask(produce_request("t", batch_of(b"held")), BY_NAME)
        reception = machine.node._reception
        assert reception is not None
        muted = next(each for each in reception.connections if isinstance(each, Connection))
        await until(lambda: muted.in_flight == 1)
        other = await machine.dial()
        other.link.client_id = "another"
        assert await produced(other, "t", 1) > pause_ms, "the user's limit is one for all its connections"
        assert not held.done()
        await limit(await machine.dial(), producer_byte_rate=0)
        assert await produced(await machine.dial(), "t", 1) == 0
        assert reception.quotas is UNLIMITED
        held.cancel()

    walk(steps)


def test_limits_that_nobody_reaches_leave_the_short_way_of_a_produce_open() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await limit(client, (("user", None), ("client-id", None)), producer_byte_rate=1e9, request_percentage=500)
        await limit(client, (("user", None),), consumer_byte_rate=1e9)
        long_ways = 0

        def counting(handler: Any) -> Any:
            def handle(ctx: Any, request: Any) -> Any:
                nonlocal long_ways
                long_ways += 1
                return handler(ctx, request)

            return handle

        route = machine.node.broker.dispatch.route(0, BY_NAME)
        assert route is not None
        route.handle = counting(route.handle)
        for number in range(20):
            assert await produced(client, "t", number) == 0
        assert long_ways == 0
        assert len(await client.values("t")) == 20
        rates = {key: bucket.rate(machine.node._ports.clock.monotonic_ms()) for key, bucket in _buckets(machine)}
        assert rates["producer_byte_rate", "ANONYMOUS", "penstock"] > 0
        assert rates["consumer_byte_rate", "ANONYMOUS", ""] > 0
        assert rates["request_percentage", "ANONYMOUS", "penstock"] > 0

    walk(steps)


def _buckets(machine: Machine) -> Any:
    return machine.node.broker.quotas.clients.rates.items()


@pytest.mark.parametrize("in_session", [True, False])
def test_a_fetch_over_the_limit_is_answered_with_nothing_and_misses_nothing(in_session: bool) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t", partitions=2)
        for partition in (0, 1):
            await client.produce("t", bytes(8_000), partition=partition)
        session = (0, -1)
        if in_session:
            opened = await client.fetch(at("t", 1), session=(0, 0))
            assert opened.session_id
            session = (opened.session_id, 1)
        await limit(client, consumer_byte_rate=1_000)
        first = await client.fetch(at("t", 0), session=session)
        assert (told(first), first.throttle_time_ms) == ([("t", 0)], 0)
        session = (session[0], 2 if in_session else -1)
        both = (at("t", 0), at("t", 0, 1))
        refused = await client.fetch(*both, session=session)
        assert told(refused) == []
        assert refused.error_code == 0
        assert refused.session_id == session[0]
        assert refused.throttle_time_ms > 5_000, "all that was read is refused together, and nothing of it is charged"
        await limit(await machine.dial(), consumer_byte_rate=0)
        again = await machine.dial()
        if in_session:
            found = await again.fetch(session=(session[0], 3))
        else:
            found = await again.fetch(*both)
        assert sorted(told(found)) == [("t", 0), ("t", 1)]

    walk(steps)


def test_a_new_session_over_the_limit_is_not_made_and_leaves_nothing_behind() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        await client.produce("t", bytes(8_000))
        await limit(client, consumer_byte_rate=1_000)
        assert told(await client.fetch(at("t", 0))) == [("t", 0)]
        fetches = machine.node.broker.fetches
        refused = await client.fetch(at("t", 0), session=(0, 0))
        assert (refused.session_id, told(refused), refused.throttle_time_ms > 0) == (0, [], True)
        waiting = (await machine.dial()).fetch(at("t", 1), session=(0, 0), max_wait_ms=within(5_000))
        await until(lambda: fetches.waiting == 1)
        assert fetches.session_count == 1
        await (await machine.dial()).produce("t", bytes(8_000))
        late = await waiting
        assert (late.session_id, told(late), late.throttle_time_ms > 0) == (0, [], True)
        assert fetches.session_count == 0
        assert not machine.node.partitions.named("t", 0).watchers

    walk(steps)


def test_a_fetch_reads_no_more_than_ten_seconds_worth() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("t")
        for _ in range(10):
            await client.produce("t", bytes(3_000))
        await limit(client, consumer_byte_rate=1_000)
        reply = await client.fetch(at("t", 0), min_bytes=25_000, max_wait_ms=within(ANSWER_MS))
        assert reply.throttle_time_ms == 0
        assert 9_000 < len(reply.responses[0].partitions[0].records or b"") <= 10_000

    walk(steps)


def creation(*names: str, partitions: int) -> CreateTopicsRequest:
    made = CreateTopicsRequest
    topics = [made.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    return made(topics=topics, timeout_ms=int(within(ANSWER_MS)))


def test_topics_beyond_the_limit_are_refused_one_by_one_and_older_versions_are_paused() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await limit(client, controller_mutation_rate=0.1)  # 1.1 partitions at once
        reply = await client.ask(creation("a", "b", partitions=2), 7)
        codes = {each.name: each.error_code for each in reply.topics}
        assert codes == {"a": NONE.code, "b": THROTTLING_QUOTA_EXCEEDED.code}
        assert 8_000 < reply.throttle_time_ms <= 9_000
        again = await machine.dial()
        checked = creation("b", partitions=2)
        checked.validate_only = True
        assert (await again.ask(checked, 7)).throttle_time_ms == 0, "what only checks costs nothing"
        growing = CreatePartitionsRequest.CreatePartitionsTopic(name="a", count=3, assignments=None)
        grown = await again.ask(CreatePartitionsRequest(topics=[growing], timeout_ms=1_000), 3)
        assert [each.error_code for each in grown.results] == [THROTTLING_QUOTA_EXCEEDED.code]
        gone = DeleteTopicsRequest.DeleteTopicState(name="a")
        deleted = await (await machine.dial()).ask(DeleteTopicsRequest(topics=[gone], timeout_ms=1_000), 6)
        assert [each.error_code for each in deleted.responses] == [THROTTLING_QUOTA_EXCEEDED.code]
        older = await machine.dial()
        made = await older.ask(creation("c", partitions=2), 5)
        assert ([each.error_code for each in made.topics], made.throttle_time_ms > 20_000) == ([NONE.code], True)
        muted = older.ask(creation("d", partitions=1), 5)
        reception = machine.node._reception
        assert reception is not None
        await until(lambda: any(isinstance(each, Connection) and each.in_flight for each in reception.connections))
        assert not muted.done()
        muted.cancel()

    walk(steps)


def test_the_controller_charges_the_client_that_asked_another_broker() -> None:
    async def steps(cluster: Cluster) -> None:
        await until(lambda: cluster.controller > 0)
        other = next(node_id for node_id in cluster.nodes if node_id != cluster.controller)
        clients = [await dialled(cluster, other, name) for name in ("greedy", "greedy", "modest")]
        await limit(clients[0], (("client-id", "greedy"),), controller_mutation_rate=0.1)
        reply = await clients[0].ask(creation("a", "b", partitions=2), 7)
        assert [each.error_code for each in reply.topics] == [NONE.code, THROTTLING_QUOTA_EXCEEDED.code]
        assert reply.throttle_time_ms > 0
        refused = await clients[1].ask(creation("b", partitions=2), 7)
        assert [each.error_code for each in refused.topics] == [THROTTLING_QUOTA_EXCEEDED.code]
        made = await clients[2].ask(creation("b", partitions=2), 7)
        assert ([each.error_code for each in made.topics], made.throttle_time_ms) == ([NONE.code], 0)
        for client in clients:
            client.link.close()

    three_nodes.walk(steps)


async def dialled(cluster: Cluster, node_id: int, client_id: str) -> Client:
    net = AsyncioNet(asyncio.get_running_loop())
    link = await net.dial("127.0.0.1", cluster.ports[node_id], within(ANSWER_MS))
    await link.negotiate()
    link.client_id = client_id
    return Client(link)
