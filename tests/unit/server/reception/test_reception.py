"""Who is let in."""

from __future__ import annotations

from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.patience import until
from tests.unit.server.served import on_loop, serving, settings_with

HANDLERS = {"Heartbeat": lambda _ctx, _request: HeartbeatResponse()}


@on_loop
async def test_connections_over_the_limit_of_an_address_are_turned_away() -> None:
    async with serving(HANDLERS, max_connections_per_ip="2") as world:
        first, _ = await world.client(), await world.client()
        assert await (await world.stranger()).hung_up()
        assert world.reception.refused == 1
        first.writer.close()
        await until(lambda: len(world.reception.connections) == 1)
        await world.client()


@on_loop
async def test_an_override_beats_the_limit_of_all_addresses() -> None:
    async with serving(
        HANDLERS, max_connections_per_ip="0", max_connections_per_ip_overrides="127.0.0.1:1,10.0.0.9:5"
    ) as world:
        await world.client()
        assert await (await world.stranger()).hung_up()


@on_loop
async def test_connections_over_the_limit_of_the_node_wait_for_a_place() -> None:
    # The listener between brokers is exempt, so it has to be another one.
    async with serving(
        HANDLERS,
        max_connections="1",
        listeners="CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        listener_security_protocol_map="CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT",
        inter_broker_listener_name="BROKERS",
    ) as world:
        first = await world.client()
        second = await world.stranger()
        await second.ask(HeartbeatRequest(), 4, correlation_id=2)
        await until(lambda: world.reception._queue)
        await first.ask(HeartbeatRequest(), 4)
        await first.frame()
        assert world.dispatch.metrics[12].total.count == 1
        first.writer.close()
        assert (await second.reply(HeartbeatRequest(), 4))[0] == 2
        assert not world.reception._queue


@on_loop
async def test_one_who_leaves_the_queue_gives_no_place_away() -> None:
    async with serving(
        HANDLERS,
        max_connections="1",
        listeners="CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        listener_security_protocol_map="CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT",
        inter_broker_listener_name="BROKERS",
    ) as world:
        first = await world.client()
        gone = await world.stranger()
        await until(lambda: world.reception._queue)
        gone.reset()
        patient = await world.stranger()
        await patient.ask(HeartbeatRequest(), 4)
        await until(lambda: len(world.reception._queue) == 2)
        first.writer.close()
        await patient.frame()
        assert len(world.reception.connections) == 1


@on_loop
async def test_limits_are_read_when_a_connection_comes() -> None:
    async with serving(HANDLERS) as world:
        await world.client()
        world.reception.node.settings = settings_with(max_connections_per_ip="1")
        assert await (await world.stranger()).hung_up()
