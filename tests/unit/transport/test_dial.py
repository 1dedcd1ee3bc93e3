"""The asking side against a peer that answers by hand."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import uvloop

from penstock.protocol.codec import encode
from penstock.protocol.frame import encode_response_parts, read_request_header
from penstock.protocol.messages.api_versions import ApiVersionsResponse
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.transport.dial import (
    FIRST_REPLY_BYTES_MAX,
    Foreign,
    Link,
    LinkError,
    Severed,
    TimedOut,
    Unreachable,
    Unsupported,
)
from penstock.transport.intake import Intake
from penstock.transport.net import AsyncioNet
from tests.patience import until
from tests.unit.transport.pairs import Recorder, framed, on_loop

HEARTBEAT = 12


@contextlib.asynccontextmanager
async def dialled(answer: Callable[[Recorder, bytearray], Any]) -> AsyncIterator[tuple[Link, Recorder]]:
    """A link, and the peer that gets every request frame through `answer`."""
    loop = asyncio.get_running_loop()
    made: list[Recorder] = []

    def hear(stream: Recorder, frame: bytearray) -> bool:
        answer(stream, frame)
        return True

    def accept() -> Recorder:
        made.append(Recorder(loop, Intake(loop), 1 << 20))
        made[-1].finishes = hear
        return made[-1]

    net = AsyncioNet(loop)
    listening = await net.listen("127.0.0.1", 0, accept)
    link = await net.dial("127.0.0.1", listening.port, 1_000)
    await until(lambda: made and made[0].transport is not None)
    try:
        yield link, made[0]
    finally:
        listening.close()
        link.abort()
        await until(lambda: made[0].gone and link.transport is None)


def heartbeat(stream: Recorder, frame: bytearray, throttle_time_ms: int = 0) -> None:
    header, _ = read_request_header(frame)
    reply = HeartbeatResponse(throttle_time_ms=throttle_time_ms)
    version = header.request_api_version
    stream.send(encode_response_parts(header.correlation_id, reply, HEARTBEAT, version))


@on_loop
async def test_pipelined_requests_each_get_their_own_reply() -> None:
    asked: list[bytearray] = []
    async with dialled(lambda _stream, frame: asked.append(frame)) as (link, peer):
        replies = [link.request(HeartbeatRequest(group_id=str(n)), 4) for n in range(50)]
        await until(lambda: len(asked) == 50)
        for n, frame in reversed(list(enumerate(asked))):
            heartbeat(peer, frame, throttle_time_ms=n)
        assert [(await reply).throttle_time_ms for reply in replies] == list(range(50))


@on_loop
async def test_a_reply_is_handled_in_the_read_callback() -> None:
    async with dialled(heartbeat) as (link, _):
        heard: list[Any] = []
        link.post(HeartbeatRequest(), 4, 1_000, lambda reply, error: heard.append((reply, error)))
        await until(lambda: heard)
        assert heard == [(HeartbeatResponse(), None)]


@on_loop
async def test_a_request_without_a_reply_in_time_fails_and_a_late_reply_is_dropped() -> None:
    asked: list[bytearray] = []
    async with dialled(lambda _stream, frame: asked.append(frame)) as (link, peer):
        with pytest.raises(TimedOut, match="no reply to Heartbeat within 20 ms"):
            await link.request(HeartbeatRequest(), 4, timeout_ms=20)
        heartbeat(peer, asked[0])
        second = link.request(HeartbeatRequest(), 4)
        await until(lambda: len(asked) == 2)
        heartbeat(peer, asked[1])
        assert await second == HeartbeatResponse()
        assert (link.asked, link.answered) == (2, 2)


@on_loop
async def test_a_lost_connection_fails_all_that_wait_and_all_that_follow() -> None:
    async with dialled(lambda stream, _frame: stream.abort()) as (link, _):
        lost: list[bool] = []
        link.when_lost(lambda: lost.append(True))
        waiting = [link.request(HeartbeatRequest(), 4) for _ in range(3)]
        for reply in waiting:
            with pytest.raises(Severed, match=r"127\.0\.0\.1"):
                await reply
        assert lost == [True]
        assert (link.asked, link.answered) == (3, 0)
        assert not link.up
        with pytest.raises(Severed):
            await link.request(HeartbeatRequest(), 4)
        with pytest.raises(Severed):
            link.tell(HeartbeatRequest(), 4)


@pytest.mark.parametrize(
    "nonsense",
    [
        framed(b"\0\0"),
        framed(struct.pack(">i", 999)),
        framed(struct.pack(">i", 0) + b"\x00\x05"),
        struct.pack(">i", -1),
    ],
    ids=["too short", "never asked", "malformed body", "no size"],
)
@on_loop
async def test_a_peer_that_answers_nonsense_is_left(nonsense: bytes) -> None:
    async with dialled(lambda stream, _frame: stream.send([nonsense])) as (link, _):
        with pytest.raises(LinkError):
            await link.request(HeartbeatRequest(), 4)
        await until(lambda: not link.up)


@on_loop
async def test_negotiation_keeps_what_the_peer_serves() -> None:
    def answer(stream: Recorder, frame: bytearray) -> None:
        header, _ = read_request_header(frame)
        known = [
            ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=4),
            ApiVersionsResponse.ApiVersion(api_key=HEARTBEAT, min_version=1, max_version=3),
            ApiVersionsResponse.ApiVersion(api_key=3, min_version=90, max_version=99),
        ]
        reply = ApiVersionsResponse(api_keys=known)
        stream.send(encode_response_parts(header.correlation_id, reply, 18, header.request_api_version))

    async with dialled(answer) as (link, _):
        await link.negotiate()
        assert link.newest(HEARTBEAT) == 3
        assert link.newest(HEARTBEAT, ours_max=2) == 2
        with pytest.raises(Unsupported, match="we know 0-13, the broker 90-99"):
            link.newest(3)
        with pytest.raises(Unsupported, match="does not serve Fetch"):
            link.newest(1)


@on_loop
async def test_an_older_peer_is_asked_again_in_its_own_version() -> None:
    versions: list[int] = []

    def answer(stream: Recorder, frame: bytearray) -> None:
        header, _ = read_request_header(frame)
        versions.append(header.request_api_version)
        known = [ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=2)]
        too_new = header.request_api_version > 2
        reply = ApiVersionsResponse(error_code=35 if too_new else 0, api_keys=known)
        body = encode(reply, 0 if too_new else header.request_api_version)
        stream.send([framed(struct.pack(">i", header.correlation_id) + body)])

    async with dialled(answer) as (link, _):
        await link.negotiate()
        assert versions == [4, 2]
        assert link.versions == {18: (0, 2)}


@pytest.mark.parametrize(
    ("answer", "language"),
    [
        (bytes.fromhex("15030300020246"), "TLS"),
        (bytes.fromhex("15030100020246"), "TLS"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP"),
        (b"<!DOCTYPE HTML PUBLIC", "HTTP"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH"),
        (struct.pack(">i", 1 << 29) + b"anything", "a frame of 536870912 bytes"),
    ],
)
@on_loop
async def test_a_peer_that_speaks_another_language_is_known_by_its_first_bytes(answer: bytes, language: str) -> None:
    def reply(stream: Recorder, _: bytearray) -> None:
        stream.send([answer])
        stream.close()

    async with dialled(reply) as (link, _):
        with pytest.raises(Foreign, match=language):
            await link.negotiate()


@on_loop
async def test_a_large_reply_is_taken_from_a_peer_that_has_introduced_itself() -> None:
    large = FIRST_REPLY_BYTES_MAX + 1

    def answer(stream: Recorder, frame: bytearray) -> None:
        header, _ = read_request_header(frame)
        if header.request_api_key == 18:
            known = [ApiVersionsResponse.ApiVersion(api_key=HEARTBEAT, min_version=0, max_version=4)]
            reply = ApiVersionsResponse(api_keys=known)
            stream.send(encode_response_parts(header.correlation_id, reply, 18, header.request_api_version))
        else:
            stream.send([framed(struct.pack(">i", header.correlation_id) + bytes(large))])

    async with dialled(answer) as (link, _):
        await link.negotiate()
        read: list[int] = []
        link.post_encoded(HEARTBEAT, 4, b"", 10_000, lambda reply, _: read.append(reply), len)
        await until(lambda: read)
        assert read == [large + 4]


@pytest.mark.parametrize("loop_factory", [uvloop.new_event_loop, asyncio.new_event_loop])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_who_cannot_be_reached_says_the_systems_word_for_it(host: str, loop_factory: Callable[[], Any]) -> None:
    async def dial() -> None:
        await AsyncioNet(asyncio.get_running_loop()).dial(host, port, 5_000)

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with asyncio.Runner(loop_factory=loop_factory) as runner, pytest.raises(Unreachable) as refused:
        runner.run(dial())
    assert refused.value.why == "connection refused"
