"""A connection to each of two brokers, which are asked the same and keep step."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from penstock.model.ids import Uuid
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.describe_cluster import DescribeClusterRequest
from penstock.protocol.messages.describe_configs import DescribeConfigsRequest
from penstock.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.messages.list_offsets import ListOffsetsRequest
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest
from penstock.transport.dial import Link, Severed, TimedOut
from penstock.transport.net import AsyncioNet
from tests.compat.answers.comparing import CLOSED, SILENT, Comparison, Difference
from tests.compat.answers.pairs import Pairs
from tests.compat.answers.world import MARKER, STEADY, World
from tests.compat.node import Node

ANSWER_MS = 30_000
SETTLED_WITHIN_S = 60.0
METADATA_VERSION = 12


class Exchange(NamedTuple):
    """One request and both answers, in each broker's own words."""

    api: str
    version: int
    request: Any
    ours: Any
    theirs: Any


class Side:
    """One broker. A connection that it closes is opened again for the next request."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._link: Link | None = None

    async def ask(self, request: Any, version: int) -> Any:
        """The answer, `CLOSED` or `SILENT`."""
        if self._link is None:
            self._link = await AsyncioNet(asyncio.get_running_loop()).dial("127.0.0.1", self.port, ANSWER_MS)
        try:
            return await self._link.request(request, version, ANSWER_MS)
        except Severed:
            self._link = None
            return CLOSED
        except TimedOut:
            self._link.close()
            self._link = None
            return SILENT

    def close(self) -> None:
        if self._link is not None:
            self._link.close()

    async def topics(self) -> dict[str, tuple[Uuid, int]]:
        """Every topic with its id and number of partitions; those without a leader do not count."""
        reply = await self.ask(MetadataRequest(topics=None), METADATA_VERSION)
        return {
            topic.name: (topic.topic_id, sum(partition.leader_id >= 0 for partition in topic.partitions))
            for topic in reply.topics
        }

    async def leads(self, topic: str, partitions: int) -> bool:
        """Whether the broker knows itself as the leader of all partitions of a topic, which Metadata says earlier."""
        made = ListOffsetsRequest
        wanted = [made.ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(partitions)]
        reply = await self.ask(made(replica_id=-1, topics=[made.ListOffsetsTopic(name=topic, partitions=wanted)]), 4)
        return all(each.error_code == 0 for found in reply.topics for each in found.partitions)


class Duo:
    """Our broker and Apache Kafka's."""

    def __init__(self, ours: Node, theirs: Node, world: World) -> None:
        self.ours, self.theirs, self.world = Side(ours.port), Side(theirs.port), world
        self.pairs = Pairs()
        self.pairs.bind("port", ours.port, theirs.port)
        self.pairs.bind_words(str(ours.data_dir), str(theirs.data_dir))
        self.pairs.bind_words(f":{ours.port}", f":{theirs.port}")
        self.pairs.bind_words(f":{ours.controller_port}", f":{theirs.controller_port}")
        self._comparison = Comparison(self.pairs, int(time.time() * 1_000))
        self._marks = itertools.count(1_000_000_000)

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()

    async def ask(self, api: str, request: Any, version: int) -> Exchange:
        theirs = self.pairs.translated(request)
        answers = await asyncio.gather(self.ours.ask(request, version), self.theirs.ask(theirs, version))
        return Exchange(api, version, request, *answers)

    def differences(self, exchange: Exchange) -> list[Difference]:
        return self._comparison.differences(exchange.ours, exchange.theirs)

    # -- keeping step

    async def seed(self) -> None:
        """Makes on both what requests will be about."""
        made = CreateTopicsRequest
        configs = {
            "alpha": {},
            "beta": {"cleanup.policy": "compact"},
            "gamma": {"max.message.bytes": "2000"},
            MARKER: {},
        }
        topics = [
            made.CreatableTopic(
                name=name,
                num_partitions=STEADY.get(name, 1),
                replication_factor=1,
                configs=[made.CreatableTopicConfig(name=key, value=value) for key, value in given.items()],
            )
            for name, given in configs.items()
        ]
        for side in (self.ours, self.theirs):
            reply = await side.ask(made(topics=topics, timeout_ms=ANSWER_MS), 5)
            assert [each.error_code for each in reply.topics] == [0] * len(topics), reply
            await _until(lambda side=side: _coordinates(side))
        our_place, their_place = [await _place(side) for side in (self.ours, self.theirs)]
        for kind, ours, theirs in zip(("directory", "cluster"), our_place, their_place, strict=True):
            self.pairs.bind(kind, ours, theirs)
        self.world.directory, self.world.cluster_id = our_place
        await self.settle()

    async def settle(self) -> None:
        """Returns when both brokers show what was changed before: the metadata log is told in its order."""
        mark = str(next(self._marks))
        for side in (self.ours, self.theirs):
            await side.ask(_marked(mark), 1)
            await _until(lambda side=side: _shows(side, mark))
        ours, theirs = await self.ours.topics(), await self.theirs.topics()
        for name in (ours.keys() | theirs.keys()) - self.world.topics.keys():
            for side, known in ((self.ours, ours), (self.theirs, theirs)):
                if name in known:
                    await _until(lambda side=side, name=name, count=known[name][1]: side.leads(name, count))
        for name in ours.keys() & theirs.keys():
            self.pairs.bind("uuid", ours[name][0], theirs[name][0])
        gone = [topic_id for name, topic_id in self.world.ids.items() if ours.get(name, (None,))[0] != topic_id]
        self.world.stale_ids += gone
        self.world.ids = {name: topic_id for name, (topic_id, _) in ours.items()}
        self.world.topics = {name: count for name, (_, count) in ours.items()}
        assert self.world.topics == {name: count for name, (_, count) in theirs.items()}, "the brokers fell out of step"


async def _until(probe: Callable[[], Any]) -> None:
    async with asyncio.timeout(SETTLED_WITHIN_S):
        while not await probe():
            await asyncio.sleep(0.002)


async def _coordinates(side: Side) -> bool:
    """Whether groups and producers are served: the first who asks has the offsets topic and the first ids made."""
    reply = await side.ask(FindCoordinatorRequest(key="g-committed"), 2)
    if reply.error_code:
        return False
    offsets = await side.ask(OffsetFetchRequest(group_id="g-committed", topics=[]), 5)
    if offsets.error_code:
        return False
    producer = await side.ask(InitProducerIdRequest(transactional_id=None), 4)
    return bool(producer.error_code == 0)


async def _place(side: Side) -> tuple[str, str]:
    """The log directory and the id of the cluster."""
    (directory,) = (await side.ask(DescribeLogDirsRequest(topics=[]), 3)).results
    return directory.log_dir, (await side.ask(DescribeClusterRequest(), 0)).cluster_id


def _marked(mark: str) -> IncrementalAlterConfigsRequest:
    made = IncrementalAlterConfigsRequest
    config = made.AlterableConfig(name="retention.ms", config_operation=0, value=mark)
    return made(resources=[made.AlterConfigsResource(resource_type=2, resource_name=MARKER, configs=[config])])


async def _shows(side: Side, mark: str) -> bool:
    made = DescribeConfigsRequest
    wanted = made.DescribeConfigsResource(resource_type=2, resource_name=MARKER, configuration_keys=["retention.ms"])
    reply = await side.ask(made(resources=[wanted]), 4)
    return bool(reply.results[0].configs[0].value == mark)
