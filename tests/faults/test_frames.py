"""Malformed input: each frame gets an answer or a closed connection, others are served, memory is bounded."""

from __future__ import annotations

import asyncio
import random
import struct
from pathlib import Path

import psutil
import pytest

from penstock.kernels import Record, check_batch, read_header
from penstock.protocol.batch import build_batch
from penstock.protocol.messages.fetch import FetchRequest
from penstock.protocol.messages.produce import ProduceRequest
from penstock.transport.dial import Link
from penstock.transport.net import AsyncioNet
from tests.faults.counts import SOAKING, rounds
from tests.faults.mutations import TOPIC, mutate, seeds
from tests.faults.node import NodeProcess
from tests.patience import within

CONNECTIONS = 100
ANSWER_TIMEOUT_S = 0.25
GROWTH_BYTES_MAX = 150 << 20
FRAMES_PER_ROUND = 500


async def provoke(port: int, frame: bytes, chance: random.Random) -> str:
    """Sends one frame and says what became of it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        slow = chance.random() < 0.02
        cut = chance.randrange(len(frame)) if slow else len(frame)
        writer.write(frame[:cut])
        await writer.drain()
        if slow:
            await asyncio.sleep(0)
            writer.write(frame[cut:])
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            size = await reader.read(4)
            return "answered" if size else "closed"
    except TimeoutError:
        return "waits for more"
    except ConnectionError:
        return "closed"
    finally:
        writer.close()


class Bystander:
    """A well-behaved client that must never notice."""

    def __init__(self, link: Link) -> None:
        self._link, self._end = link, 0

    async def check(self) -> None:
        value = b"bystander %d" % self._end
        batch = build_batch([Record(0, 1_700_000_000_000, None, value, ())])
        data = ProduceRequest.PartitionProduceData(index=0, records=batch)
        asked = ProduceRequest(
            acks=-1,
            timeout_ms=within(5_000),
            topic_data=[ProduceRequest.TopicProduceData(name="calm", partition_data=[data])],
        )
        reply = await self._link.request(asked, 9, within(5_000))
        (answer,) = reply.responses[0].partition_responses
        assert (answer.error_code, answer.base_offset) == (0, self._end)
        wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=self._end, partition_max_bytes=1 << 20)
        asked_back = FetchRequest(
            max_wait_ms=within(5_000), min_bytes=1, topics=[FetchRequest.FetchTopic(topic="calm", partitions=[wanted])]
        )
        fetched = await self._link.request(asked_back, 12, within(6_000))
        assert value in bytes(fetched.responses[0].partitions[0].records)
        self._end += 1


async def storm(node: NodeProcess, chance: random.Random) -> dict[str, int]:
    frames = seeds(chance)
    outcomes: dict[str, int] = {}
    link = await AsyncioNet(asyncio.get_running_loop()).dial("127.0.0.1", node.port, within(5_000))
    bystander = Bystander(link)
    process = psutil.Process(node.pid)
    await bystander.check()
    before = process.memory_info().rss

    async def send(frames_left: list[bytes]) -> None:
        while frames_left:
            outcome = await provoke(node.port, frames_left.pop(), chance)
            outcomes[outcome] = outcomes.get(outcome, 0) + 1

    for _ in rounds(fast=10, full=200):
        left = [mutate(chance.choice(frames), chance) for _ in range(FRAMES_PER_ROUND)]
        await asyncio.gather(*(send(left) for _ in range(CONNECTIONS)))
        await bystander.check()
        grown = process.memory_info().rss - before
        assert grown < GROWTH_BYTES_MAX, f"memory grew by {grown >> 20} MB"
    link.close()
    return outcomes


def assert_only_valid_batches(directory: Path) -> None:
    checked = 0
    for path in directory.rglob("*.log"):
        data = path.read_bytes()
        position = 0
        while position < len(data):
            check_batch(data, position)
            position += read_header(data, position).size
            checked += 1
    assert checked > 0


@pytest.mark.timeout(3_600 if SOAKING else 120)
def test_mutated_frames_hurt_nobody(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data", "auto.create.topics.enable=false")
    node.start()
    try:
        node.create_topic(TOPIC)
        node.create_topic("calm")
        outcomes = asyncio.run(storm(node, random.Random(4711)))
        assert outcomes["answered"] > 0
        assert outcomes["closed"] > 0
        assert node.stop() == 0, "the node is well enough to stop cleanly"
        assert "Traceback" not in node.words(), node.words()[-4_000:]
        assert_only_valid_batches(tmp_path / "data")
    finally:
        node.kill()


def test_a_slow_sender_of_a_huge_frame_costs_little(tmp_path: Path) -> None:
    """Announcing 100 MB reserves nothing until the bytes come."""
    node = NodeProcess(tmp_path / "data")
    node.start()
    try:

        async def main() -> int:
            process = psutil.Process(node.pid)
            before = process.memory_info().rss
            streams = [await asyncio.open_connection("127.0.0.1", node.port) for _ in range(50)]
            for _, writer in streams:
                writer.write(struct.pack(">i", 100 << 20) + bytes(1_000))
                await writer.drain()
            link = await AsyncioNet(asyncio.get_running_loop()).dial("127.0.0.1", node.port, within(5_000))
            await link.negotiate()
            grown = process.memory_info().rss - before
            link.close()
            for _, writer in streams:
                writer.close()
            return grown

        assert asyncio.run(main()) < 60 << 20
    finally:
        node.kill()
