"""What the tests against a broker share: reading back, and a proxy that cuts."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from penstock.client.consumer import Consumer
from penstock.kernels import ConsumerRecord
from penstock.model.ids import TopicPartition


async def read_all(bootstrap: str, topic: str, partitions: int = 1) -> list[list[ConsumerRecord]]:
    """Every record of a topic, by partition, in order of their offsets."""
    wanted = [TopicPartition(topic, index) for index in range(partitions)]
    found: list[list[ConsumerRecord]] = [[] for _ in wanted]
    async with Consumer(bootstrap_servers=bootstrap, offset_reset="earliest") as consumer:
        consumer.assign(wanted)
        left = sum((await consumer.end_offsets(*wanted)).values()) - sum(
            (await consumer.beginning_offsets(*wanted)).values()
        )
        while left > 0:
            for record in await consumer.poll(10_000, timeout_ms=5_000):
                found[record.partition].append(record)
                left -= 1
    return found


class CuttingProxy:
    """A TCP proxy on loopback. While `cutting`, each connection dies after a random number of bytes."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._writers: set[asyncio.StreamWriter] = set()
        self.target = ("", 0)
        self.port = 0
        self.cutting = False
        self.cuts = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(*self.target)
        self._writers |= {writer, there_writer}
        # A connection must get through its handshake, or nothing ever moves.
        budget = [self._random.randrange(20_000, 200_000)]
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._carry(reader, there_writer, budget))
                both.create_task(self._carry(there_reader, writer, budget))
        except* (ConnectionError, EOFError):
            pass
        finally:
            for end in (writer, there_writer):
                end.transport.abort()
                self._writers.discard(end)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, budget: list[int]) -> None:
        while data := await reader.read(4_096):
            budget[0] -= len(data) + 200  # so that small replies count too
            if self.cutting and budget[0] <= 0:
                self.cuts += 1
                # A part of it may still get through.
                writer.write(data[: self._random.randrange(len(data))])
                raise ConnectionResetError("cut")
            writer.write(data)
            await writer.drain()
        raise EOFError

    def cut_all(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    @property
    def settings(self) -> dict[str, object]:
        """For a broker that clients shall reach through the proxy."""
        return {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.target[1]},CONTROLLER://127.0.0.1:0",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
        }


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found: int = taken.getsockname()[1]
        return found


@asynccontextmanager
async def cutting_proxy(given: CuttingProxy | None = None) -> AsyncIterator[CuttingProxy]:
    proxy = given or CuttingProxy(1)
    proxy.target = ("127.0.0.1", free_port())
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut_all()
        await asyncio.sleep(0)
