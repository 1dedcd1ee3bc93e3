"""How many files of ours a request goes through: what a reader has to open to follow it.

Each walk is one real request over a socket to whole nodes in this process, counted with `sys.setprofile` from the frame
that arrives to the answer that leaves, everything that other nodes do for it included. A heartbeat may fall into one of
them; so each is walked several times, and what they all went through is what the request needs. The disk in memory and
the client's side are not counted, and neither are the codecs of messages, which are compiled and lie in no file.

Counted so for the first time, when `server/` had just been divided into folders, a produce at three replicas went
through 46 files, a fetch through 27, and a topic through 85 until its leader led. Quotas, rights and audit have files
of their own since, which a topic passes on both loops; so has the second coordinator, that of transactions.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType

import penstock
from penstock.kernels import Record
from penstock.protocol.batch import build_batch
from penstock.protocol.frame import decode_response, encode_request
from penstock.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.protocol.messages.produce import ProduceRequest, ProduceResponse
from penstock.server.partitions.partition_driver import PartitionDriver
from tests.patience import until, within
from tests.walks.three_nodes import Cluster, walk

SOURCE = str(Path(penstock.__file__).parent) + os.sep
TIMES = 25
CALM = {"broker_heartbeat_interval_ms": "3000", "broker_session_timeout_ms": "18000"}
PRODUCE, FETCH, CREATE_TOPICS = 9, 12, 7
"""The versions that are sent; topics have names in them."""


class Caller:
    """A client that is nobody's: bytes out, bytes in, by the loop's own streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    @asynccontextmanager
    async def to(cls, port: int) -> AsyncIterator[Caller]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield cls(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def ask(self, frame: bytes) -> bytes:
        self._writer.write(frame)
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return await self._reader.readexactly(size)


async def files_crossed(doing: Callable[[], Awaitable[object]]) -> set[str]:
    """The files that were entered while it was done, by their paths within the package."""
    codes: set[str] = set()

    def entered(frame: FrameType, event: str, _arg: object) -> None:
        if event == "call":
            codes.add(frame.f_code.co_filename)

    sys.setprofile(entered)
    try:
        async with asyncio.timeout(within(10)):
            await doing()
    finally:
        sys.setprofile(None)
    ours = {code.removeprefix(SOURCE) for code in codes if code.startswith(SOURCE)}
    return {path for path in ours if not path.startswith("testing" + os.sep)}


def errors_of(reply: bytes, frame: bytes) -> list[int]:
    """What a reply to the request in `frame` complains of."""
    key, version = struct.unpack_from(">hh", frame, 4)
    _, message = decode_response(reply, key, version)
    match message:
        case ProduceResponse(responses=[topic]):
            return [answer.error_code for answer in topic.partition_responses if answer.error_code]
        case FetchResponse(responses=[topic]):
            return [data.error_code for data in topic.partitions if data.error_code or not data.records]
        case CreateTopicsResponse(topics=topics):
            return [topic.error_code for topic in topics if topic.error_code]
    return [-1]


async def common_to_all(
    caller: Caller, frames: list[bytes], done: Callable[[int], bool] = lambda _n: True
) -> list[str]:
    """What each of several like requests went through; the first of all is not counted, as it finds caches empty."""

    replies: list[bytes] = []

    async def one(number: int) -> None:
        replies.append(await caller.ask(frames[number]))
        while not done(number):
            await asyncio.sleep(0)

    walks = [await files_crossed(partial(one, number)) for number in range(len(frames))]
    assert not any(errors_of(reply, frames[0]) for reply in replies)
    return sorted(set.intersection(*walks[1:]))


def produce(topic: str, number: int) -> bytes:
    made = ProduceRequest
    batch = bytes(build_batch([Record(0, 1_700_000_000_000, b"key", b"value %d" % number)]))
    data = made.TopicProduceData(name=topic, partition_data=[made.PartitionProduceData(index=0, records=batch)])
    return encode_request(number, "w", made(acks=-1, timeout_ms=30_000, topic_data=[data]), PRODUCE)


def fetch(topic: str, offset: int) -> bytes:
    made = FetchRequest
    wanted = made.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1)
    request = made(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[made.FetchTopic(topic=topic, partitions=[wanted])],
    )
    return encode_request(offset, "w", request, FETCH)


def create(topic: str, replication: int = 1) -> bytes:
    made = CreateTopicsRequest
    asked = made.CreatableTopic(name=topic, num_partitions=1, replication_factor=replication)
    return encode_request(1, "w", made(topics=[asked], timeout_ms=30_000), CREATE_TOPICS)


def leader_of(cluster: Cluster, topic: str) -> int:
    image = next(iter(cluster.nodes.values())).control.metadata.image.topic(topic)
    return -1 if image is None else int(image.partitions[0].leader)


def lead_here(partitions: PartitionDriver) -> int:
    """How many partitions this node leads, by its own state; asked without entering more than that."""
    return sum(hosted.state.leader == hosted.state.me for hosted in partitions._hosted.values())


def assert_at_most(files: int, crossed: list[str]) -> None:
    """When a walk became shorter the number becomes smaller too. A file that is worth its place makes it larger."""
    assert len(crossed) <= files, f"{len(crossed)} files:\n" + "\n".join(crossed)


def test_files_crossed_by_a_produce_at_three_replicas_and_by_a_fetch() -> None:
    async def steps(cluster: Cluster) -> None:
        async with Caller.to(cluster.ports[1]) as caller:
            await caller.ask(create("t", replication=3))
        await until(
            lambda: cluster.in_sync("t", 3) and sum(lead_here(n.partitions) for n in cluster.nodes.values()) == 1
        )
        async with Caller.to(cluster.ports[leader_of(cluster, "t")]) as caller:
            assert_at_most(44, await common_to_all(caller, [produce("t", n) for n in range(TIMES)]))
            assert_at_most(23, await common_to_all(caller, [fetch("t", n) for n in range(TIMES)]))

    walk(steps, **CALM)


def test_files_crossed_by_a_topic_to_its_leader() -> None:
    async def steps(cluster: Cluster) -> None:
        async with Caller.to(cluster.ports[1]) as caller:
            frames, partitions = [create(f"t{n}") for n in range(TIMES)], cluster.nodes[1].partitions
            assert_at_most(98, await common_to_all(caller, frames, lambda n: lead_here(partitions) > n))

    walk(steps, nodes=1, **CALM)
