"""What is charged about requests and connections, over real sockets, with limits as the image has them."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock.metadata.delta import Delta
from penstock.metadata.image import ClusterImage, quota_entity
from penstock.model.security import Principal
from penstock.protocol.frame import encode_request, encode_response_parts
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.protocol.messages.produce import ProduceRequest, ProduceResponse
from penstock.server.doors import NO_REPLY, Context
from penstock.server.reception.quotas import UNLIMITED, LimitedClients
from tests.unit.server.served import Client, World, on_loop, serving, until

V = 4
PRODUCE_VERSION, FETCH_VERSION = 9, 12
EVERYBODY = (("user", None),)


class Limits:
    """Limits that a test sets, and a clock that it moves."""

    def __init__(self, *entity: tuple[str, str | None], **limits: float) -> None:
        self.now_ms = 0.0
        self.image = ClusterImage()
        self.quotas = LimitedClients(lambda: self.now_ms)
        self.set(*entity, **limits)

    def set(self, *entity: tuple[str, str | None], **limits: float) -> None:
        if entity:
            self.image.quotas[quota_entity(entity)] = dict(limits)
        self.quotas.follow(self.image, Delta(quotas=True))

    def clear(self) -> None:
        self.image.quotas.clear()
        self.set()


def plain(ctx: Context, _frame: bytearray, _at: int, correlation_id: int) -> Any:
    return b"".join(encode_response_parts(correlation_id, ProduceResponse(), 0, ctx.api_version))


def unused(_ctx: Context, _request: Any) -> Any:
    raise AssertionError("the short way was left")


def on_the_short_way(world: World) -> None:
    route = world.dispatch.route(0, PRODUCE_VERSION)
    assert route is not None
    route.handle_plain = plain


def produce_of(size: int, client_id: str = "c", acks: int = -1) -> bytes:
    """A Produce whose frame has that many bytes behind its length."""
    made = ProduceRequest
    filling = 0
    while True:
        data = made.PartitionProduceData(records=bytes(filling))
        topic = made.TopicProduceData(name="t", partition_data=[data])
        request = encode_request(1, client_id, made(acks=acks, topic_data=[topic]), PRODUCE_VERSION)
        if len(request) - 4 == size:
            return request
        filling += size - len(request) + 4


async def throttled(client: Client, request: bytes) -> int:
    await client.send(request)
    return int((await client.reply(ProduceRequest(), PRODUCE_VERSION))[1].throttle_time_ms)


@on_loop
async def test_a_stream_of_produces_pauses_as_long_as_with_apache_kafka() -> None:
    # Kafka's own classes gave these, for a limit of 1,000; here all is a hundred times that, for a frame has a size.
    stream = [(0, 9000, 0), (100, 2000, 900), (200, 1000, 1800), (1500, 1000, 2500), (5000, 5000, 8000)]
    stream += [(12000, 100, 0), (12500, 20000, 14600), (20000, 1, 10101)]
    limits = Limits(("user", "ANONYMOUS"), producer_byte_rate=100_000)
    async with serving({"Produce": unused}, quotas=limits.quotas, change=follow_clock(limits)) as world:
        on_the_short_way(world)
        for now_ms, size, pause_ms in stream:
            limits.now_ms = float(now_ms)
            client = await world.client()  # the last one may be muted; its user has one bucket for all of them
            assert await throttled(client, produce_of(100 * size)) == pause_ms, f"at {now_ms}"


@on_loop
async def test_only_the_client_id_with_the_limit_is_slowed() -> None:
    limits = Limits(("client-id", "greedy"), producer_byte_rate=100)
    async with serving({"Produce": unused}, quotas=limits.quotas, change=follow_clock(limits)) as world:
        on_the_short_way(world)
        client = await world.client()
        for _ in range(5):
            assert await throttled(client, produce_of(5_000, "modest")) == 0
        assert await throttled(client, produce_of(5_000, "greedy")) == 40_000
        await client.send(produce_of(5_000, "modest"))
        await until(lambda: world.connection.in_flight == 1)
        assert await throttled(await world.client(), produce_of(5_000, "modest")) == 0


@on_loop
async def test_a_produce_without_acks_is_charged_its_bytes_and_not_its_time() -> None:
    limits = Limits(*EVERYBODY, producer_byte_rate=1_000, request_percentage=1)

    def produce(_ctx: Context, request: ProduceRequest) -> Any:
        limits.now_ms += 1_000
        return NO_REPLY if request.acks == 0 else ProduceResponse()

    async with serving({"Produce": produce}, quotas=limits.quotas, change=follow_clock(limits)) as world:
        client = await world.client()
        await client.send(produce_of(2_000, acks=0))
        await until(lambda: limits.now_ms == 1_000.0)
        (bucket,) = [bucket for _, bucket in limits.quotas.clients.rates.items()]
        assert bucket.rate(1_000) == 200, "bytes alone"
        assert await throttled(client, produce_of(1_000)) == 1_000, "a window at most, for a second of work"
        await client.send(produce_of(1_000))
        await until(lambda: world.connection.in_flight == 1)


@on_loop
async def test_limits_come_and_go_and_without_any_nothing_is_asked() -> None:
    limits = Limits()
    assert limits.quotas.in_force is UNLIMITED
    async with serving({"Produce": unused}) as world:
        limits.quotas.on_switch(world.reception.charge_by)
        on_the_short_way(world)
        assert await throttled(await world.client(), produce_of(50_000)) == 0
        limits.set(("user", None), controller_mutation_rate=1)
        assert world.reception.quotas is UNLIMITED, "that is the controller's to charge"
        limits.set(("user", None), producer_byte_rate=1_000)
        assert world.reception.quotas is limits.quotas
        assert await throttled(await world.client(), produce_of(50_000)) == 40_000
        limits.clear()
        assert world.reception.quotas is UNLIMITED
        assert await throttled(await world.client(), produce_of(50_000)) == 0


@on_loop
async def test_who_logs_in_is_charged_by_its_own_name() -> None:
    limits = Limits(("user", "alice"), producer_byte_rate=100)
    async with serving({"Produce": unused}, quotas=limits.quotas, change=follow_clock(limits)) as world:
        on_the_short_way(world)
        client = await world.client()
        assert await throttled(client, produce_of(5_000)) == 0
        world.connection.principal = Principal("User", "alice")
        assert await throttled(client, produce_of(5_000)) == 40_000


@on_loop
async def test_time_counts_while_a_request_holds_the_loop_and_not_while_it_waits() -> None:
    limits = Limits(*EVERYBODY, request_percentage=10)
    waits: list[asyncio.Future[None]] = []

    async def beat(_ctx: Context, request: HeartbeatRequest) -> HeartbeatResponse:
        limits.now_ms += request.generation_id
        if request.member_id:
            waits.append(asyncio.get_running_loop().create_future())
            await waits[-1]
            limits.now_ms += request.generation_id
        return HeartbeatResponse()

    async with serving({"Heartbeat": beat}, quotas=limits.quotas, change=follow_clock(limits)) as world:
        client = await world.client()
        await client.ask(HeartbeatRequest(generation_id=400, member_id="waits"), V)
        await until(lambda: bool(waits))
        limits.now_ms += 5_000
        waits[0].set_result(None)
        assert (await client.reply(HeartbeatRequest(), V))[1].throttle_time_ms == 0, "800 ms of ten seconds"
        await client.ask(HeartbeatRequest(generation_id=300), V)
        assert (await client.reply(HeartbeatRequest(), V))[1].throttle_time_ms == 700
        await client.ask(HeartbeatRequest(generation_id=100), V)
        await until(lambda: world.connection.in_flight == 1)


def follow_clock(limits: Limits) -> Any:
    """Requests are timed by the clock of the test."""

    def change(node: Any) -> None:
        clock = node.clock
        node.clock = type("Moved", (), {"now_ms": clock.now_ms, "monotonic_ms": lambda _self: limits.now_ms})()

    return change


@on_loop
async def test_the_longest_pause_wins_and_a_reply_that_asks_for_a_longer_one_keeps_it() -> None:
    limits = Limits(*EVERYBODY, producer_byte_rate=1_000, request_percentage=100)

    def produce(_ctx: Context, request: ProduceRequest) -> ProduceResponse:
        limits.now_ms += request.timeout_ms
        return ProduceResponse(throttle_time_ms=request.timeout_ms)

    async with serving({"Produce": produce}, quotas=limits.quotas, change=follow_clock(limits)) as world:
        assert await throttled(await world.client(), produce_of(13_000)) == 3_000
        stubborn = encode_request(1, "c", ProduceRequest(acks=1, timeout_ms=9_000), PRODUCE_VERSION)
        assert await throttled(await world.client(), stubborn) == 9_000


@on_loop
async def test_a_fetch_pays_before_it_is_answered_and_the_rest_when_its_size_is_known() -> None:
    limits = Limits(*EVERYBODY, consumer_byte_rate=1_000)
    seen: list[tuple[int, bool]] = []

    def fetch(ctx: Context, request: FetchRequest) -> FetchResponse:
        toll = ctx.toll_due()
        assert toll is not None
        pays = toll.pays(request.max_bytes)
        seen.append((toll.bytes_max, pays))
        return FetchResponse(error_code=0 if pays else 1)

    async with serving({"Fetch": fetch}, quotas=limits.quotas, change=follow_clock(limits)) as world:

        async def fetched(size: int) -> FetchResponse:
            client = await world.client()
            await client.ask(FetchRequest(max_bytes=size), FETCH_VERSION)
            reply: FetchResponse = (await client.reply(FetchRequest(), FETCH_VERSION))[1]
            return reply

        assert (await fetched(9_000)).throttle_time_ms == 0
        (bucket,) = [bucket for _, bucket in limits.quotas.clients.rates.items()]
        empty = len(b"".join(encode_response_parts(1, FetchResponse(), 1, FETCH_VERSION)))  # type: ignore[arg-type]
        assert bucket.rate(0) * 10 == empty, "what really left"
        bucket.charge(9_000 - empty, 0)
        refused = await fetched(2_000)
        assert (refused.error_code, refused.throttle_time_ms) == (1, 1_000)
        assert bucket.rate(0) == 900, "the charge was taken back"
        assert bucket.pause_avg_ms(0) == 1_000
        assert (await fetched(900)).throttle_time_ms == 0
    assert seen == [(10_000, True), (10_000, False), (10_000, True)]


@on_loop
async def test_a_fetch_of_a_follower_is_not_charged() -> None:
    limits = Limits(*EVERYBODY, consumer_byte_rate=1, request_percentage=0.001)

    def fetch(_ctx: Context, _request: FetchRequest) -> FetchResponse:
        limits.now_ms += 60_000
        return FetchResponse()

    async with serving({"Fetch": fetch}, quotas=limits.quotas, change=follow_clock(limits)) as world:
        client = await world.client()
        for _ in range(3):
            await client.ask(FetchRequest(), FETCH_VERSION)
            assert (await client.reply(FetchRequest(), FETCH_VERSION))[1].throttle_time_ms == 0
        assert len(limits.quotas.clients.rates) == 0


@on_loop
async def test_an_address_over_its_rate_is_held_and_hung_up_on_and_does_not_count() -> None:
    limits = Limits(("ip", "127.0.0.1"), connection_creation_rate=1)
    async with serving({"Heartbeat": unused}, quotas=limits.quotas, change=follow_clock(limits)) as world:
        for _ in range(10):
            await world.client()
        late = await world.stranger()
        assert await late.hung_up()
        assert (world.reception.accepted, world.reception.refused) == (10, 1)
        limits.now_ms = 12_000.0
        await world.client()
        assert world.reception.accepted == 11


@on_loop
async def test_connections_that_come_too_fast_wait_for_their_turn() -> None:
    rate = {"max.connection.creation.rate": "1", "quota.window.num": "2"}

    def beat(_ctx: Context, _request: HeartbeatRequest) -> HeartbeatResponse:
        return HeartbeatResponse()

    settings = {name.replace(".", "_"): value for name, value in rate.items()}
    async with serving({"Heartbeat": beat}, **settings) as world:
        clients = [await world.client() for _ in range(2)]
        clients.append(await world.stranger())
        await clients[-1].ask(HeartbeatRequest(), V)
        await until(lambda: len(world.reception._queue) == 1)
        assert world.reception.accepted == 2
        await clients[-1].reply(HeartbeatRequest(), V)
        assert (world.reception.accepted, world.reception.refused) == (3, 0)
