"""The life of requests, over loopback, with handlers of the test's own."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import socket
import struct
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from penstock.model.errors import GROUP_AUTHORIZATION_FAILED, Refused
from penstock.protocol.codec import decode, encode, encode_parts
from penstock.protocol.frame import encode_request, encode_response_parts
from penstock.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.protocol.messages.produce import ProduceRequest, ProduceResponse
from penstock.protocol.wire import Spans
from penstock.server.doors import NO_REPLY, Context, Disconnect, Encoded, Later
from penstock.server.reception.gate import State
from penstock.server.reception.quotas import Charged
from tests.patience import until, within
from tests.unit.server.served import Client, framed, on_loop, serving

V = 4


def echo(_ctx: Context, request: HeartbeatRequest) -> HeartbeatResponse:
    return HeartbeatResponse(throttle_time_ms=request.generation_id)


class Awaited(Later):
    """A later reply that is ready with a future."""

    __slots__ = ("__weakref__", "_future", "_then")

    def __init__(self, future: asyncio.Future[Any], then: Callable[[Any], Any] = lambda outcome: outcome) -> None:
        super().__init__()
        self._future, self._then = future, then
        future.add_done_callback(lambda _: self.ready())

    def outcome(self) -> Any:
        return self._then(self._future.result())


class Gate:
    """A handler whose answers the test releases one by one."""

    def __init__(self, *, later: bool = False) -> None:
        self.later = later
        self.started: list[Any] = []
        self.waits: list[asyncio.Future[Any]] = []

    def __call__(self, _ctx: Context, request: Any) -> Any:
        self.started.append(request)
        future = asyncio.get_running_loop().create_future()
        self.waits.append(future)
        return Awaited(future) if self.later else future


def produced(throttle_time_ms: int) -> ProduceResponse:
    return ProduceResponse(throttle_time_ms=throttle_time_ms)


def heartbeats(count: int) -> bytes:
    return b"".join(encode_request(n, "c", HeartbeatRequest(generation_id=n), V) for n in range(count))


async def correlations(client: Client, count: int) -> list[int]:
    return [struct.unpack_from(">i", await client.frame())[0] for _ in range(count)]


@on_loop
async def test_a_handler_learns_who_asks_and_how() -> None:
    seen: list[Context] = []

    def keep(ctx: Context, _request: HeartbeatRequest) -> HeartbeatResponse:
        seen.append(ctx)
        return HeartbeatResponse()

    async with serving({"Heartbeat": keep}) as world:
        client = await world.client()
        for client_id in ("anna", "anna", None, "", "bert"):
            for version in (V, 3):
                await client.ask(HeartbeatRequest(), version, client_id=client_id)
                await client.frame()
        names = [name for name in ("anna", "anna", None, "", "bert") for _ in (V, 3)]
        assert [ctx.client_id for ctx in seen] == names
        assert [ctx.api_version for ctx in seen] == [V, 3] * 5
        ctx = seen[0]
        assert (ctx.api_key, ctx.client_host, ctx.dialled) == (12, "127.0.0.1", ("127.0.0.1", world.port))
        assert ctx.listener.name == "PLAINTEXT"
        assert ctx.listener.port == world.port
        assert str(ctx.principal) == "User:ANONYMOUS"
        assert ctx.deadline - ctx.received_ms == 30_000
        assert ctx.connection is world.connection
        assert world.connection.state is State.AUTHENTICATED


@on_loop
async def test_ten_thousand_pipelined_requests_are_answered_in_order() -> None:
    async with serving({"Heartbeat": echo}) as world:
        client = await world.client()
        sending = asyncio.ensure_future(client.send(heartbeats(10_000)))
        assert await correlations(client, 10_000) == list(range(10_000))
        await sending
        assert world.dispatch.metrics[12].total.count == 10_000


@on_loop
async def test_no_task_is_made_for_a_request_that_is_answered_at_once() -> None:
    async with serving({"Heartbeat": echo}) as world:
        client = await world.client()
        made: list[Any] = []
        asyncio.get_running_loop().set_task_factory(
            lambda loop, work, **named: made.append(work) or asyncio.Task(work, loop=loop, **named)
        )
        await client.ask(HeartbeatRequest(), V)
        await until(lambda: world.dispatch.metrics and world.dispatch.metrics[12].total.count == 1)
        asyncio.get_running_loop().set_task_factory(None)
        assert made == []


@on_loop
async def test_a_request_that_waits_keeps_the_next_one_back() -> None:
    gate = Gate()
    async with serving({"Heartbeat": gate}) as world:
        client = await world.client()
        await client.send(heartbeats(3))
        await until(lambda: world.connection.in_flight == 3)
        assert len(gate.started) == 1
        gate.waits[0].set_result(HeartbeatResponse())
        await until(lambda: len(gate.started) == 2)
        gate.waits[1].set_result(HeartbeatResponse())
        await until(lambda: len(gate.started) == 3)
        gate.waits[2].set_result(HeartbeatResponse())
        assert await correlations(client, 3) == [0, 1, 2]
        assert world.connection.in_flight == 0


@on_loop
async def test_produces_overlap_their_waits_and_are_answered_in_order() -> None:
    gate = Gate(later=True)
    async with serving({"Produce": gate}) as world:
        client = await world.client()
        for n in range(5):
            await client.ask(ProduceRequest(acks=-1), 9, correlation_id=n)
        await until(lambda: len(gate.started) == 5)
        for n in (3, 1, 4, 0, 2):
            gate.waits[n].set_result(produced(n))
        replies = [await client.reply(ProduceRequest(), 9) for _ in range(5)]
        assert [(n, reply.throttle_time_ms) for n, reply in replies] == [(n, n) for n in range(5)]


@on_loop
async def test_a_reply_that_is_ready_before_its_handler_has_ended_is_given() -> None:
    async def produce(_ctx: Context, _request: ProduceRequest) -> Any:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        ready.set_result(produced(7))
        return Awaited(ready)

    async with serving({"Produce": produce}) as world:
        client = await world.client()
        await client.ask(ProduceRequest(acks=-1), 9, correlation_id=1)
        async with asyncio.timeout(within(30)):
            assert (await client.reply(ProduceRequest(), 9))[1].throttle_time_ms == 7


@on_loop
async def test_a_later_reply_is_freed_when_it_is_given_and_not_by_the_collector() -> None:
    waits: list[asyncio.Future[Any]] = []
    laters: list[weakref.ref[Awaited]] = []

    def produce(_ctx: Context, _request: ProduceRequest) -> Any:
        waits.append(asyncio.get_running_loop().create_future())
        later = Awaited(waits[-1])
        laters.append(weakref.ref(later))
        return later

    gc.disable()
    try:
        async with serving({"Produce": produce}) as world:
            client = await world.client()
            await client.ask(ProduceRequest(acks=-1), 9)
            await until(lambda: bool(waits))
            assert laters[0]() is not None
            waits[0].set_result(produced(0))
            await client.frame()
            await until(lambda: laters[0]() is None)
    finally:
        gc.enable()


@on_loop
async def test_what_is_no_produce_waits_until_the_reply_before_it_is_queued() -> None:
    gate = Gate(later=True)
    beats: list[int] = []

    def beat(_ctx: Context, request: HeartbeatRequest) -> HeartbeatResponse:
        beats.append(request.generation_id)
        return HeartbeatResponse()

    async with serving({"Produce": gate, "Heartbeat": beat}) as world:
        client = await world.client()
        await client.ask(ProduceRequest(acks=-1), 9, correlation_id=1)
        await client.ask(HeartbeatRequest(generation_id=2), V, correlation_id=2)
        await client.ask(ProduceRequest(acks=-1), 9, correlation_id=3)
        await until(lambda: world.connection.in_flight == 3)
        assert (len(gate.started), beats) == (1, [])
        gate.waits[0].set_result(produced(0))
        await until(lambda: len(gate.started) == 2)
        assert beats == [2]
        gate.waits[1].set_result(produced(0))
        assert await correlations(client, 3) == [1, 2, 3]


@on_loop
async def test_a_produce_without_acks_takes_no_place_in_the_line() -> None:
    gate = Gate(later=True)

    def produce(ctx: Context, request: ProduceRequest) -> Any:
        return NO_REPLY if request.acks == 0 else gate(ctx, request)

    async with serving({"Produce": produce}) as world:
        client = await world.client()
        for n, acks in enumerate((0, -1, 0, -1)):
            await client.ask(ProduceRequest(acks=acks), 9, correlation_id=n)
        await until(lambda: len(gate.started) == 2)
        gate.waits[1].set_result(produced(0))
        gate.waits[0].set_result(produced(0))
        assert await correlations(client, 2) == [1, 3]


@on_loop
async def test_an_async_handler_may_end_in_a_later_reply() -> None:
    prepared = asyncio.Event()
    written: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    started: list[int] = []

    async def produce(_ctx: Context, request: ProduceRequest) -> Any:
        started.append(request.timeout_ms)
        await prepared.wait()
        return Awaited(written, then=produced)

    async with serving({"Produce": produce}) as world:
        client = await world.client()
        for n in (1, 2):
            await client.ask(ProduceRequest(timeout_ms=n), 9, correlation_id=n)
        await until(lambda: world.connection.in_flight == 2)
        assert started == [1]
        prepared.set()
        await until(lambda: started == [1, 2])
        written.set_result(7)
        replies = [await client.reply(ProduceRequest(), 9) for _ in range(2)]
        assert [(n, reply.throttle_time_ms) for n, reply in replies] == [(1, 7), (2, 7)]


@pytest.mark.parametrize("version", [3, 4])
@on_loop
async def test_an_encoded_body_gets_the_header_of_its_version(version: int) -> None:
    body = encode(HeartbeatResponse(throttle_time_ms=5), version)
    async with serving({"Heartbeat": lambda _ctx, _request: Encoded([body[:2], body[2:]])}) as world:
        client = await world.client()
        await client.ask(HeartbeatRequest(), version, correlation_id=9)
        assert await client.reply(HeartbeatRequest(), version) == (9, HeartbeatResponse(throttle_time_ms=5))


class FakeSpan:
    def __init__(self, size: int) -> None:
        self.size = size

    def read(self, at: int = 0, size: int | None = None) -> bytes:
        assert size is not None
        return bytes(size)


def fetched(*sizes: int) -> FetchResponse:
    data = FetchResponse.PartitionData(records=Spans([FakeSpan(size) for size in sizes]))
    return FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic="t", partitions=[data])])


@on_loop
async def test_a_fetch_reply_streams_file_spans() -> None:
    async with serving({"Fetch": lambda _ctx, _request: fetched(70_000, 900_000)}) as world:
        client = await world.client()
        await client.ask(FetchRequest(), 12)
        _, reply = await client.reply(FetchRequest(), 12)
        assert len(reply.responses[0].partitions[0].records) == 970_000


@on_loop
async def test_while_a_reply_waits_for_a_slow_reader_no_further_request_starts() -> None:
    fetches: list[int] = []

    def fetch(_ctx: Context, _request: FetchRequest) -> FetchResponse:
        fetches.append(1)
        return fetched(20 << 20)

    async with serving({"Fetch": fetch}) as world:
        client = await world.client(limit=1024)
        for n in range(4):
            await client.ask(FetchRequest(), 12, correlation_id=n)
        await until(lambda: world.connection.in_flight == 3)
        assert len(fetches) == 1
        assert world.connection.transport is not None
        assert world.connection.transport.get_write_buffer_size() < 1 << 20
        for _ in range(4):
            assert len(await client.frame()) > 20 << 20
        assert len(fetches) == 4


def boom(_ctx: Context, _request: Any) -> Any:
    raise ZeroDivisionError("boom")


async def boom_later(_ctx: Context, _request: Any) -> Any:
    await asyncio.sleep(0)
    raise ZeroDivisionError("boom")


@pytest.mark.parametrize("handler", [boom, boom_later])
@on_loop
async def test_an_unexpected_error_is_logged_and_answered_if_the_reply_can_hold_it(
    handler: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving({"Heartbeat": handler}) as world:
        client = await world.client()
        await client.ask(HeartbeatRequest(), V, correlation_id=5)
        assert await client.reply(HeartbeatRequest(), V) == (5, HeartbeatResponse(error_code=-1))
        assert world.dispatch.metrics[12].unexpected == 1
    assert "Heartbeat v4 from 127.0.0.1" in caplog.text
    # Not by the text: whoever loads Spark in the same process has it formatted as JSON.
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["boom"]


@pytest.mark.parametrize("handler", [boom, boom_later])
@on_loop
async def test_an_unexpected_error_closes_the_connection_if_the_reply_cannot_hold_it(handler: Any) -> None:
    async with serving({"Produce": handler, "Heartbeat": echo}) as world:
        client, other = await world.client(), await world.client()
        await client.ask(ProduceRequest(acks=-1), 9)
        assert await client.hung_up()
        await other.ask(HeartbeatRequest(), V)
        assert (await other.reply(HeartbeatRequest(), V))[1] == HeartbeatResponse()


@on_loop
async def test_a_refusal_that_nobody_caught_is_still_told() -> None:
    def refuse(_ctx: Context, _request: Any) -> Any:
        raise Refused(GROUP_AUTHORIZATION_FAILED)

    async with serving({"Heartbeat": refuse}) as world:
        client = await world.client()
        await client.ask(HeartbeatRequest(), V)
        assert (await client.reply(HeartbeatRequest(), V))[1].error_code == 30


@on_loop
async def test_a_handler_can_hang_up() -> None:
    def hang_up(_ctx: Context, _request: Any) -> Any:
        raise Disconnect("acks=0 and the partition is gone")

    async with serving({"Produce": hang_up}) as world:
        client = await world.client()
        await client.ask(ProduceRequest(acks=0), 9)
        assert await client.hung_up()


@on_loop
async def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    async with serving({"ApiVersions": lambda _ctx, _request: ApiVersionsResponse()}) as world:
        client = await world.client()
        await client.send(framed(struct.pack(">hhih", 18, 77, 42, -1) + b"\0"))
        frame = await client.frame()
        assert struct.unpack_from(">i", frame) == (42,)
        reply, end = decode(ApiVersionsResponse, 0, frame, 4)
        assert end == len(frame)
        known = ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=4)
        assert reply == ApiVersionsResponse(error_code=35, api_keys=[known])
        await client.ask(ApiVersionsRequest(), 3)
        assert (await client.reply(ApiVersionsRequest(), 3))[1] == ApiVersionsResponse()


BAD_FRAMES = {
    "empty": b"",
    "half a header": b"\0\x0c\0",
    "no such key": struct.pack(">hhih", 999, 0, 1, -1),
    "a version too new": struct.pack(">hhih", 12, 99, 1, -1) + b"\0",
    "a negative version": struct.pack(">hhih", 12, -3, 1, -1),
    "an API that is not served": encode_request(1, None, FetchRequest(), 12)[4:],
    "a client id past the end": struct.pack(">hhih", 12, 0, 1, 5_000) + b"x",
    "a client id that is no text": struct.pack(">hhih", 12, 0, 1, 2) + b"\xff\xfe" + bytes(30),
    "no body": struct.pack(">hhih", 12, 4, 1, -1) + b"\0",
}


@pytest.mark.parametrize("name", BAD_FRAMES)
@on_loop
async def test_a_bad_request_closes_its_connection_and_no_other(name: str, caplog: pytest.LogCaptureFixture) -> None:
    async with serving({"Heartbeat": echo}) as world:
        client, other = await world.client(), await world.client()
        await client.ask(HeartbeatRequest(), V)
        await client.frame()
        await client.send(framed(BAD_FRAMES[name]))
        assert await client.hung_up()
        await other.ask(HeartbeatRequest(), V)
        await other.frame()
        assert world.reception.malformed == 1
    assert "is closed" in caplog.text
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@on_loop
async def test_bytes_after_a_request_are_let_pass() -> None:
    async with serving({"Heartbeat": echo}) as world:
        client = await world.client()
        await client.send(framed(encode_request(6, "c", HeartbeatRequest(), V)[4:] + b"odd"))
        assert await client.reply(HeartbeatRequest(), V) == (6, HeartbeatResponse())


@on_loop
async def test_garbage_never_harms_anybody_else() -> None:
    chance = random.Random(11)
    good = encode_request(1, "c", HeartbeatRequest(group_id="g", member_id="m"), V)
    async with serving({"Heartbeat": echo}) as world:
        witness = await world.client()
        for _ in range(200):
            client = await world.stranger()
            data = bytearray(good)
            for _ in range(chance.randint(1, 4)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            client.writer.write(bytes(data) + chance.randbytes(chance.randrange(20)))
            client.writer.write_eof()
        await witness.ask(HeartbeatRequest(generation_id=3), V)
        assert (await witness.reply(HeartbeatRequest(), V))[1].throttle_time_ms == 3
        await until(lambda: len(world.reception.connections) == 1)
        assert world.reception.intake.held_bytes == 0


@on_loop
async def test_a_wait_ends_with_its_asker() -> None:
    gate = Gate()
    closed: list[bool] = []
    async with serving({"Heartbeat": gate}) as world:
        client = await world.client()
        await client.ask(HeartbeatRequest(), V)
        await until(lambda: gate.started)
        world.connection.when_closed(lambda: closed.append(True))
        client.reset()
        await until(lambda: gate.waits[0].cancelled())
        assert closed == [True]
        assert world.reception.intake.held_bytes == 0


@on_loop
async def test_a_half_closed_client_gets_the_reply_it_waits_for() -> None:
    gate = Gate()
    async with serving({"Heartbeat": gate}) as world:
        client = await world.client()
        await client.ask(HeartbeatRequest(), V, correlation_id=8)
        client.writer.write_eof()
        await until(lambda: gate.started)
        gate.waits[0].set_result(HeartbeatResponse())
        assert await client.reply(HeartbeatRequest(), V) == (8, HeartbeatResponse())
        assert await client.hung_up()


@on_loop
async def test_a_silent_connection_is_closed_and_one_that_waits_for_us_is_not() -> None:
    gate = Gate()
    async with serving({"Heartbeat": gate}, connections_max_idle_ms="200") as world:
        silent, waiting = await world.client(), await world.client()
        await waiting.ask(HeartbeatRequest(), V)
        assert await silent.hung_up()
        assert world.reception.wheel.expired == 1
        tick = world.reception.intake.tick
        await until(lambda: world.reception.intake.tick > tick + 10)
        gate.waits[0].set_result(HeartbeatResponse())
        await waiting.frame()


class Strict:
    """A quota that makes everybody pause."""

    def __init__(self, pause_ms: int) -> None:
        self.pause_ms = pause_ms
        self.charged: list[tuple[int, int]] = []

    def throttle_ms(self, request: Charged, reply_bytes: int, now_ms: float) -> int:
        self.charged.append((request.size, reply_bytes))
        return self.pause_ms

    def toll_of(self, request: Charged) -> None:
        return None

    def charge_connection(self, host: str) -> int:
        return 0


@on_loop
async def test_a_client_over_its_quota_is_told_to_pause_and_muted_meanwhile() -> None:
    quotas = Strict(60_000)
    started: list[int] = []

    def beat(_ctx: Context, request: HeartbeatRequest) -> HeartbeatResponse:
        started.append(request.generation_id)
        return HeartbeatResponse()

    async with serving({"Heartbeat": beat}, quotas=quotas) as world:
        client = await world.client()
        first = encode_request(0, "c", HeartbeatRequest(), V)
        await client.send(first)
        assert (await client.reply(HeartbeatRequest(), V))[1].throttle_time_ms == 60_000
        assert quotas.charged[0] == (len(first) - 4, 4 + len(encode_parts(HeartbeatResponse(), V)[0]) + 5)
        await client.ask(HeartbeatRequest(generation_id=1), V)
        await until(lambda: world.connection.in_flight == 1)
        assert started == [0]


@on_loop
async def test_a_pause_ends_and_what_waited_is_served() -> None:
    async with serving({"Heartbeat": echo}) as world:
        client = await world.client()
        world.connection.mute(30)
        await client.ask(HeartbeatRequest(generation_id=1), V)
        await until(lambda: world.connection.in_flight == 1)
        assert (await client.reply(HeartbeatRequest(), V))[1].throttle_time_ms == 1


@on_loop
async def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    async with serving({"Heartbeat": echo}) as world:
        client = await world.client()
        world.connection.mute(60_000)
        world.connection.mute(1)
        await client.ask(HeartbeatRequest(generation_id=1), V)
        await until(lambda: world.connection.in_flight == 1)
        passed = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.02, passed.set_result, None)
        await passed  # the shorter one is over by now
        assert world.connection.in_flight == 1


@pytest.mark.parametrize("version", [3, 8, 9, 13])
@pytest.mark.parametrize("later", [False, True])
@on_loop
async def test_quotas_leave_the_short_way_of_a_produce_open_and_its_reply_tells_the_pause(
    version: int, later: bool
) -> None:
    quotas = Strict(40_000)
    made: list[bytes] = []
    long_way: list[object] = []

    def plain(_ctx: Context, _frame: bytearray, _at: int, correlation_id: int) -> Any:
        made.append(b"".join(encode_response_parts(correlation_id, ProduceResponse(), 0, version)))
        if not later:
            return made[-1]
        future = asyncio.get_running_loop().create_future()
        future.set_result(made[-1])
        return Awaited(future)

    def produce(_ctx: Context, request: ProduceRequest) -> Any:
        long_way.append(request)
        return ProduceResponse()

    async with serving({"Produce": produce}, quotas=quotas) as world:
        route = world.dispatch.route(0, version)
        assert route is not None
        route.handle_plain = plain
        client = await world.client()
        request = encode_request(7, "c", ProduceRequest(acks=-1), version)
        await client.send(request)
        assert await client.reply(ProduceRequest(), version) == (7, produced(40_000))
        assert quotas.charged == [(len(request) - 4, len(made[0]))]
        assert world.connection.state is State.AUTHENTICATED
        await client.ask(ProduceRequest(acks=-1), version)
        await until(lambda: world.connection.in_flight == 1)
        assert (len(made), long_way) == (1, [])
        metrics = world.dispatch.metrics[0]
        assert (route.requests, metrics.total.count) == (1, 1)
        assert (metrics.request_bytes, metrics.response_bytes) == (len(request), len(made[0]))


@on_loop
async def test_every_way_of_serving_is_counted_alike() -> None:
    """At once, by a message, by a whole frame, by an awaitable, later, and not at all."""

    def whole(ctx: Context, _frame: bytearray, _at: int, correlation_id: int) -> Any:
        frame = b"".join(encode_response_parts(correlation_id, ProduceResponse(), 0, 9))
        future = asyncio.get_running_loop().create_future()
        future.set_result(frame)
        return {"frame": frame, "later": Awaited(future), "message": ProduceResponse(), "long": None}[
            ctx.client_id or ""
        ]

    async def waited() -> ProduceResponse:
        return ProduceResponse()

    async with serving({"Produce": lambda _ctx, _request: waited()}) as world:
        route = world.dispatch.route(0, 9)
        assert route is not None
        route.handle_plain = whole
        client = await world.client()
        sent = came = 0
        for name in ("frame", "later", "message", "long"):
            request = encode_request(1, name, ProduceRequest(acks=-1), 9)
            sent += len(request)
            await client.send(request)
            came += 4 + len(await client.frame())
        metrics = world.dispatch.metrics[0]
        assert (route.requests, metrics.total.count, metrics.errors, metrics.unexpected) == (4, 4, 0, 0)
        assert (metrics.request_bytes, metrics.response_bytes) == (sent, came)


@on_loop
async def test_shutdown_answers_what_runs_and_starts_nothing_new() -> None:
    gate = Gate()
    async with serving({"Heartbeat": gate}) as world:
        busy, idle = await world.client(), await world.client()
        await busy.send(heartbeats(3))
        await until(lambda: world.reception.intake.held_bytes and len(gate.started) == 1)
        world.listeners.stop_accepting()
        closing = asyncio.ensure_future(world.reception.close(drain_ms=10_000))
        assert await idle.hung_up()
        gate.waits[0].set_result(HeartbeatResponse())
        assert await correlations(busy, 1) == [0]
        assert await busy.hung_up()
        await closing
        assert len(gate.started) == 1


@on_loop
async def test_shutdown_does_not_wait_for_ever() -> None:
    gate = Gate()
    async with serving({"Heartbeat": gate}) as world:
        client = await world.client()
        await client.ask(HeartbeatRequest(), V)
        await until(lambda: gate.started)
        await world.reception.close(drain_ms=10)
        assert await client.hung_up()


@on_loop
async def test_an_idle_connection_costs_less_than_five_kilobytes() -> None:
    count = 500
    async with serving({"Heartbeat": echo}) as world:
        await world.client()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        peers = []
        for _ in range(count):
            peers.append(socket.create_connection(("127.0.0.1", world.port)))
            await asyncio.sleep(0)
        await until(lambda: len(world.reception.connections) == count + 1)
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        for peer in peers:
            peer.close()
        await until(lambda: len(world.reception.connections) == 1)
        assert (after - before) / count < 5_000
