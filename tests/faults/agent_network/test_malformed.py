"""A hundred thousand malformed messages (three thousand in `make test`): marked, refused or cut, and life goes on."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket

import pytest

from tests.faults.agent_network.malformations import BODIES, SYSLOG, malformed
from tests.faults.agent_network.watching import Watched, watched
from tests.faults.counts import SOAKING, rounds
from tests.patience import until
from tests.unit.agent.listening.channels import on_loop

PER_ROUND = 250
FAST, FULL = 12, 400
SEED = 20_261_116

pytestmark = pytest.mark.timeout(1_800 if SOAKING else 120)


@on_loop
async def test_syslog_datagrams() -> None:
    chance = random.Random(SEED)
    async with watched("syslog") as victim:
        sent = 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for number in rounds(FAST, FULL):
                for _ in range(PER_ROUND):
                    sender.sendto(malformed(SYSLOG, chance), ("127.0.0.1", victim.port("udp")))
                sent += PER_ROUND
                await until(lambda sent=sent: victim.made.status().events + victim.made.status().dropped >= sent)
                if number % 10 == 0:
                    await victim.alive()
                    sent += 2
        assert victim.made.status().dropped == 0
        assert victim.made.status().events == sent
        assert victim.made.status().malformed > sent // 10


@on_loop
async def test_syslog_streams() -> None:
    chance = random.Random(SEED)
    async with watched("syslog") as victim:

        async def pour() -> None:
            _, writer = await victim.connect()
            for _ in range(25):
                message = malformed(SYSLOG, chance)
                counted = chance.random() < 0.5
                size = len(message) + chance.choice((0, 0, 0, -3, 5, 100_000))
                data = b"%d %s" % (size, message) if counted else message + b"\n"
                cut = chance.randrange(len(data) + 1)
                writer.write(data[:cut])
                if chance.random() < 0.1:
                    await asyncio.sleep(0)
                writer.write(data[cut:])
            await _leave(writer, chance)

        for number in rounds(FAST, FULL):
            await asyncio.gather(*(pour() for _ in range(PER_ROUND // 25)))
            if number % 10 == 0:
                await victim.alive()
        await until(lambda: victim.made.status().connections == 0)
        assert victim.made.status().malformed > 0


@on_loop
async def test_lines_over_tcp() -> None:
    chance = random.Random(SEED)
    async with watched("tcp", 'line_bytes_max = "2 KB"') as victim:

        async def pour() -> None:
            _, writer = await victim.connect()
            for _ in range(50):
                writer.write(malformed(SYSLOG + BODIES, chance) + b"\n")
            await _leave(writer, chance)

        for _ in rounds(FAST, FULL):
            await asyncio.gather(*(pour() for _ in range(PER_ROUND // 50)))
        await until(lambda: victim.made.status().connections == 0)
        assert victim.made.status().truncated > 0


@on_loop
async def test_http_bodies_and_http_itself() -> None:
    chance = random.Random(SEED)
    outcomes: dict[int, int] = {}
    async with watched("http") as victim:

        async def request_after_request() -> None:
            """Whole requests with broken bodies, on one connection."""
            reader, writer = await victim.connect()
            for _ in range(30):
                body = malformed(BODIES, chance)
                writer.write(_request(body, chance))
                status, size = 0, 0
                while (line := (await reader.readline()).strip()) or not status:
                    if line.startswith(b"HTTP/1.1"):
                        status = int(line.split()[1])
                    if line.lower().startswith(b"content-length:"):
                        size = int(line.split()[1])
                await reader.readexactly(size)
                outcomes[status] = outcomes.get(status, 0) + 1
            writer.close()

        async def broken_request() -> None:
            with contextlib.suppress(ConnectionError):
                _, writer = await victim.connect()
                writer.write(malformed((_request(chance.choice(BODIES), chance),), chance) + b"\r\n\r\n")
                await _leave(writer, chance)

        for number in rounds(FAST, FULL):
            await asyncio.gather(
                *(request_after_request() for _ in range(5)), *(broken_request() for _ in range(PER_ROUND - 150))
            )
            if number % 10 == 0:
                await victim.alive()
        await _until_gone(victim)
    assert outcomes.keys() <= {200, 400}, outcomes
    assert min(outcomes[200], outcomes[400]) > 10, outcomes


async def _until_gone(victim: Watched) -> None:
    await until(lambda: victim.made.status().connections == 0 and victim.made.held_bytes == 0)


async def _leave(writer: asyncio.StreamWriter, chance: random.Random) -> None:
    """In order, or with a reset."""
    with contextlib.suppress(ConnectionError):
        await writer.drain()
        if chance.random() < 0.3:
            writer.transport.abort()
        else:
            writer.close()
            await writer.wait_closed()


def _request(body: bytes, chance: random.Random) -> bytes:
    kind = chance.choice((b"application/json", b"application/x-ndjson", b"text/plain", b"application/octet-stream"))
    if chance.random() < 0.3 and body:
        middle = chance.randrange(len(body)) or 1
        parts = [part for part in (body[:middle], body[middle:]) if part]
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
        return b"POST / HTTP/1.1\r\nhost: x\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n\r\n%s" % (
            kind,
            chunks,
        )
    return b"POST / HTTP/1.1\r\nhost: x\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n%s" % (kind, len(body), body)
