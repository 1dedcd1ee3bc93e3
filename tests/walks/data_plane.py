"""A whole node on files in memory, and a client that speaks the protocol itself, both on one loop."""

from __future__ import annotations

import asyncio
import errno
import itertools
import struct
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from random import Random
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, TypeVar

from penstock.kernels import Record, check_batch, scan_batches
from penstock.model.config import BrokerSettings
from penstock.model.ids import ZERO_UUID, Uuid
from penstock.model.ports import Ports
from penstock.protocol.batch import build_batch, read_records
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.protocol.messages.produce import ProduceRequest, ProduceResponse
from penstock.server.doors import Authorizer
from penstock.server.launch import dev_properties
from penstock.server.loops.ports import SystemClock
from penstock.server.node import Node
from penstock.server.reception.authorize import AllowAll
from penstock.testing.memory_files import MemoryFiles
from penstock.transport.dial import Link
from penstock.transport.net import AsyncioNet
from tests.patience import within

T = TypeVar("T")

ANSWER_MS = 10_000
BY_NAME, BY_ID = 12, 13
"""The newest Produce and Fetch that name topics, and the oldest that give ids."""

_producers = itertools.count(7_000)


class TurnsOffload:
    """Runs offloaded calls on the loop, a few turns later, so that a seed decides what comes in between."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self.held: asyncio.Event | None = None

    def hold(self) -> None:
        """Until `release` nothing that is offloaded gets done."""
        self.held = asyncio.Event()

    def release(self) -> None:
        assert self.held is not None, "only what is held can be released"
        self.held.set()
        self.held = None

    async def call(self, work: Callable[..., T], *args: Any) -> T:
        if self.held is not None:
            await self.held.wait()
        for _ in range(self._chance.randrange(1, 4)):
            await asyncio.sleep(0)
        return work(*args)

    def run(self, task: str, arguments: dict[str, Any]) -> Awaitable[dict[str, Any]]:
        raise AssertionError(f"no helper process is needed here, but {task} was asked for")

    def close(self) -> None:
        pass


class Machine:
    """One computer. Its disk outlives the nodes that run on it."""

    def __init__(
        self,
        files: MemoryFiles | None = None,
        *,
        seed: int = 1,
        authorizer: Authorizer | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        self.files = files or MemoryFiles()
        self.chance = Random(seed)
        self.offload = TurnsOffload(self.chance)
        self.authorizer = authorizer or AllowAll()
        self.settings = {"penstock.admin.listener": "", **(settings or {})}
        self._running: Node | None = None
        self._clients: list[Client] = []

    @property
    def node(self) -> Node:
        assert self._running is not None, "the node runs"
        return self._running

    async def start(self) -> Node:
        properties = dev_properties("/data", port=0, overrides=self.settings)
        net = AsyncioNet(asyncio.get_running_loop())
        node = Node(
            BrokerSettings.load(properties),
            Ports(SystemClock(), self.files, net, self.offload),
            random=self.chance,
            formats_itself=True,
            authorizer=self.authorizer,
        )
        await node.start()
        self._running = node
        return node

    async def stop(self) -> None:
        if self.offload.held is not None:
            self.offload.release()
        node, self._running = self._running, None
        for client in self._clients:
            client.link.close()
        self._clients.clear()
        if node is not None:
            await node.stop()

    async def cut_power(self, keep: Callable[[str, int], int] | None = None, *, keep_names: bool = False) -> None:
        """The end of this life and of its loop: nothing is flushed, nobody is told, and nothing reaches the disk.

        `keep` says how many of a file's unsynced bytes the disk has by chance.
        """
        node, self._running = self.node, None
        self.files.crash(keep, keep_names=keep_names)
        self.files.fail("", errno.EIO, reads=True)
        node.crash()  # its timers too: what they begin while everything else is cancelled would never end
        for client in self._clients:
            client.link.abort()
        self._clients.clear()
        mine = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not mine]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self.files.heal("")

    async def dial(self) -> Client:
        link = await AsyncioNet(asyncio.get_running_loop()).dial("127.0.0.1", self.node.port, within(ANSWER_MS))
        await link.negotiate()
        client = Client(link)
        self._clients.append(client)
        return client


class Client:
    """Asks one thing at a time, or several if it is not awaited in between."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.ids: dict[str, Uuid] = {}

    def ask(self, message: Any, version: int | None = None) -> asyncio.Future[Any]:
        """The reply, in the newest version that the node serves unless one is given."""
        key = message.__schema__.key
        return self.link.request(message, self.link.newest(key) if version is None else version, within(ANSWER_MS))

    def reset(self) -> None:
        """Ends the connection without a farewell, as a crash does."""
        assert self.link.transport is not None, "the link stands"
        socket = self.link.transport.get_extra_info("socket")
        socket.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        self.link.abort()

    # -- topics

    async def create(self, name: str, partitions: int = 1, **configs: str) -> Uuid:
        assert await self.try_create(name, partitions, **configs)
        return self.ids[name]

    async def try_create(self, name: str, partitions: int = 1, **configs: str) -> bool:
        """Whether it was done; why not is in the log."""
        made = CreateTopicsRequest
        wanted = made.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                made.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
            ],
        )
        reply = await self.ask(made(topics=[wanted], timeout_ms=within(ANSWER_MS)))
        (result,) = reply.topics
        self.ids[name] = Uuid(result.topic_id)
        return bool(result.error_code == 0)

    async def delete(self, name: str) -> None:
        assert await self.try_delete(name)

    async def try_delete(self, name: str) -> bool:
        wanted = DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=ZERO_UUID)
        reply = await self.ask(DeleteTopicsRequest(topics=[wanted], timeout_ms=within(ANSWER_MS)))
        return [result.error_code for result in reply.responses] == [0]

    async def topics(self) -> set[str]:
        reply = await self.ask(MetadataRequest(topics=None))
        return {topic.name for topic in reply.topics}

    # -- records

    def produce(
        self,
        topic: str,
        *values: bytes,
        partition: int = 0,
        acks: int = -1,
        batch: bytes | None = None,
        version: int = BY_NAME,
        timeout_ms: int | None = None,
    ) -> asyncio.Future[ProduceResponse.PartitionProduceResponse]:
        """One batch to one partition; what became of it."""
        request = produce_request(
            topic, batch or batch_of(*values), partition=partition, acks=acks, timeout_ms=timeout_ms
        )
        request.topic_data[0].topic_id = self.ids.get(topic, ZERO_UUID)
        return _only(self.ask(request, version), lambda reply: reply.responses[0].partition_responses[0])

    def fetch(
        self,
        *wanted: FetchRequest.FetchTopic,
        session: tuple[int, int] = (0, -1),
        forgotten: Sequence[FetchRequest.ForgottenTopic] = (),
        min_bytes: int = 1,
        max_wait_ms: int = 0,
        max_bytes: int = 1 << 30,
        version: int = BY_NAME,
        isolation_level: int = 0,
    ) -> asyncio.Future[FetchResponse]:
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            session_id=session[0],
            session_epoch=session[1],
            topics=list(wanted),
            forgotten_topics_data=list(forgotten),
            isolation_level=isolation_level,
        )
        return self.ask(request, version)

    async def values(self, topic: str, partition: int = 0, start: int = 0) -> list[bytes | None]:
        """Everything from `start` on, offsets without a gap."""
        found: list[bytes | None] = []
        while True:
            reply = await self.fetch(at(topic, start + len(found), partition))
            data = data_of(reply)
            assert data.error_code == 0, f"{topic}-{partition} at {start + len(found)}: error {data.error_code}"
            records = records_in(data)
            if not records:
                return found
            for record in records:
                if record.offset >= start + len(found):
                    assert record.offset == start + len(found), f"a gap before {record.offset}"
                    found.append(record.value)

    def offset(
        self, topic: str, timestamp: int, partition: int = 0, version: int | None = None, **said: Any
    ) -> asyncio.Future[ListOffsetsResponse.ListOffsetsPartitionResponse]:
        made = ListOffsetsRequest
        wanted = made.ListOffsetsPartition(partition_index=partition, timestamp=timestamp, **said)
        request = made(replica_id=-1, topics=[made.ListOffsetsTopic(name=topic, partitions=[wanted])])
        return _only(self.ask(request, version), lambda reply: reply.topics[0].partitions[0])


def _only(asked: asyncio.Future[Any], pick: Callable[[Any], Any]) -> asyncio.Future[Any]:
    async def picked() -> Any:
        return pick(await asked)

    # Who loses the connection may not care for every answer that it takes with it.
    picking = asyncio.ensure_future(picked())
    for future in (asked, picking):
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return picking


def walk(
    steps: Callable[[Machine, Client], Coroutine[Any, Any, None]],
    *,
    authorizer: Authorizer | None = None,
    **settings: str,
) -> None:
    """Runs `steps` against a fresh node; `settings` are broker properties with `_` for `.`."""

    async def main() -> None:
        spelled = {name.replace("_", "."): value for name, value in settings.items()}
        machine = Machine(authorizer=authorizer, settings=spelled)
        await machine.start()
        try:
            async with asyncio.timeout(within(30)):
                await steps(machine, await machine.dial())
        finally:
            await machine.stop()

    asyncio.run(main())


# -- what is sent


def batch_of(*values: bytes | None, timestamp: int | None = None, key: bytes | None = None, **said: Any) -> bytes:
    time = SystemClock().now_ms() if timestamp is None else timestamp
    return build_batch([Record(index, time, key, value, ()) for index, value in enumerate(values)], **said)


def produce_request(
    topic: str, batch: bytes | None, *, partition: int = 0, acks: int = -1, timeout_ms: int | None = None
) -> ProduceRequest:
    made = ProduceRequest
    data = made.PartitionProduceData(index=partition, records=batch)
    patience_ms = within(ANSWER_MS) if timeout_ms is None else timeout_ms
    return made(
        acks=acks, timeout_ms=patience_ms, topic_data=[made.TopicProduceData(name=topic, partition_data=[data])]
    )


class Idempotent:
    """The batches of one idempotent producer, numbered as they should be."""

    def __init__(self) -> None:
        self.id, self.epoch, self.sequence = next(_producers), 0, 0

    def batch(self, *values: bytes, sequence: int | None = None) -> bytes:
        first = self.sequence if sequence is None else sequence
        if sequence is None:
            self.sequence += len(values)
        return batch_of(*values, producer_id=self.id, producer_epoch=self.epoch, base_sequence=first)


def at(topic: str | bytes, offset: int, partition: int = 0, **said: Any) -> FetchRequest.FetchTopic:
    """A fetch position, for a name or a topic id."""
    made = FetchRequest
    said = {"partition_max_bytes": 1 << 20, **said}
    wanted = made.FetchPartition(partition=partition, fetch_offset=offset, **said)
    if isinstance(topic, bytes):
        return made.FetchTopic(topic_id=Uuid(topic), partitions=[wanted])
    return made.FetchTopic(topic=topic, partitions=[wanted])


def without(topic: str, *partitions: int) -> FetchRequest.ForgottenTopic:
    return FetchRequest.ForgottenTopic(topic=topic, partitions=list(partitions))


# -- what comes back


def told(reply: FetchResponse) -> list[tuple[str, int]]:
    """The partitions in a reply, in its order."""
    return [(topic.topic, data.partition_index) for topic in reply.responses for data in topic.partitions]


def errors(reply: FetchResponse) -> list[int]:
    return [data.error_code for topic in reply.responses for data in topic.partitions]


def data_of(reply: FetchResponse) -> FetchResponse.PartitionData:
    (topic,) = reply.responses
    (data,) = topic.partitions
    return data


def records_in(data: FetchResponse.PartitionData) -> list[Record]:
    """As a client reads them: checksums first, BadBytes when one does not hold."""
    raw = bytes(data.records or b"")
    found: list[Record] = []
    for start, header in scan_batches(raw):
        check_batch(raw, start)
        found += read_records(raw[start : start + header.size])
    return found


def sizes(reply: FetchResponse) -> dict[tuple[str, int], int]:
    """Bytes of records by partition, of those that have any."""
    found = {}
    for topic in reply.responses:
        for data in topic.partitions:
            if data.records:
                found[topic.topic, data.partition_index] = len(data.records)
    return found
