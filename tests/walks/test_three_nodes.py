"""Three nodes are one cluster: any broker takes any request, and any one of them may go and come back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock import Admin, Consumer, Producer
from penstock.client.cluster_view import ClusterView
from penstock.model.errors import NONE, NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION, Refused
from penstock.model.ids import TopicPartition
from penstock.protocol.messages.describe_producers import DescribeProducersRequest
from penstock.protocol.messages.unregister_broker import UnregisterBrokerRequest
from penstock.server.node import StoppedEarly
from tests.patience import until, within
from tests.walks.three_nodes import Cluster, walk


async def make_topic(cluster: Cluster, name: str, *, through: int, partitions: int = 3) -> None:
    async with Admin(bootstrap_servers=f"127.0.0.1:{cluster.ports[through]}") as admin:
        await admin.create_topic(name, partitions=partitions, replication=3)


class Load:
    """A producer that never rests, and what it was told."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster, self._topic = cluster, topic
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self._stopping = False
        self._running = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        async with Producer(bootstrap_servers=self._cluster.bootstrap, acks="all") as producer:
            number = 0
            while not self._stopping:
                values = [b"%d" % (number + each) for each in range(10)]
                reports = await asyncio.gather(*(producer.send(self._topic, each, key=each) for each in values))
                for value, report in zip(values, reports, strict=True):
                    self.acknowledged[report.partition, report.offset] = value
                number += 10

    async def moves_on(self) -> None:
        """Returns when something sent from now on has been acknowledged."""
        count = len(self.acknowledged)
        await until(lambda: self._running.done() or len(self.acknowledged) > count + 10, "nothing is acknowledged")
        if self._running.done():
            self._running.result()

    async def end(self) -> dict[tuple[int, int], bytes]:
        """What was acknowledged; raises what a send raised."""
        self._stopping = True
        await self._running
        return self.acknowledged


async def stored(cluster: Cluster, topic: str, count: int) -> dict[tuple[int, int], bytes]:
    """At least `count` records of a topic, as a member of a group reads them."""
    found: dict[tuple[int, int], bytes] = {}
    options: dict[str, Any] = {"group_id": "readers", "offset_reset": "earliest"}
    async with asyncio.timeout(within(20)), Consumer(topic, bootstrap_servers=cluster.bootstrap, **options) as consumer:
        async for record in consumer:
            found[record.partition, record.offset] = record.value or b""
            if len(found) >= count:
                return found
    return found


def test_a_cluster_forms_and_every_broker_tells_and_takes_the_same() -> None:
    async def steps(cluster: Cluster) -> None:
        leader = cluster.controller
        assert leader
        assert sum(node.quorum.leading for node in cluster.nodes.values()) == 1
        for node in cluster.nodes.values():
            image = node.control.metadata.image
            await until(lambda image=image: len(image.controllers) == 3)  # type: ignore[misc]
            assert sorted(broker.id for broker in image.brokers.values() if broker.active) == [1, 2, 3]
        pages = {node_id: node._metrics().page().splitlines() for node_id, node in cluster.nodes.items()}
        for node_id, page in pages.items():
            assert f"kafka_server_raftmetrics_current_leader {leader}" in page
            assert f"kafka_controller_kafkacontroller_activecontrollercount {int(node_id == leader)}" in page
            assert f"kafka_controller_kafkacontroller_activebrokercount {3 * (node_id == leader)}" in page
        other = next(each for each in cluster.nodes if each != leader)
        await make_topic(cluster, "orders", through=other)
        assert cluster.nodes[other].control.metadata.image.topic("orders") is not None, "the next request finds it"
        await until(lambda: cluster.in_sync("orders", 3))
        load = Load(cluster, "orders")
        await load.moves_on()
        acknowledged = await load.end()
        read = await stored(cluster, "orders", len(acknowledged))
        assert acknowledged.items() <= read.items()
        async with Admin(bootstrap_servers=f"127.0.0.1:{cluster.ports[other]}") as admin:
            await admin.delete_topic("orders")
        assert cluster.nodes[other].control.metadata.image.topic("orders") is None

    walk(steps)


def test_a_topic_that_is_missing_is_made_through_any_broker() -> None:
    async def steps(cluster: Cluster) -> None:
        for node_id in cluster.nodes:
            server = f"127.0.0.1:{cluster.ports[node_id]}"
            async with Producer(bootstrap_servers=server, acks="all", allow_auto_create_topics=True) as producer:
                assert (await producer.send(f"made-through-{node_id}", b"x")).offset == 0

    walk(steps)


def test_the_controller_is_killed_and_comes_back() -> None:
    async def steps(cluster: Cluster) -> None:
        first = cluster.controller
        await make_topic(cluster, "orders", through=first)
        load = Load(cluster, "orders")
        await load.moves_on()
        cluster.crash(first)
        await until(lambda: cluster.controller not in (0, first), "nobody takes over")
        survivor = next(iter(cluster.nodes.values()))
        await until(lambda: survivor.control.metadata.image.brokers[first].fenced, "the dead broker is not fenced")
        await load.moves_on()
        await cluster.start(first)
        await until(lambda: cluster.in_sync("orders", 3), "the in-sync sets do not grow again")
        await load.moves_on()
        acknowledged = await load.end()
        read = await stored(cluster, "orders", len(acknowledged))
        assert acknowledged.items() <= read.items()

    walk(steps)


def test_a_rolling_restart_fails_no_produce() -> None:
    async def steps(cluster: Cluster) -> None:
        await make_topic(cluster, "orders", through=1)
        load = Load(cluster, "orders")
        for node_id in (2, 3, 1):
            await load.moves_on()
            await cluster.stop(node_id)
            await load.moves_on()
            await cluster.start(node_id)
            await until(lambda: cluster.in_sync("orders", 3), "the in-sync sets do not grow again")
        acknowledged = await load.end()
        read = await stored(cluster, "orders", len(acknowledged))
        assert acknowledged.items() <= read.items()

    walk(steps)


def test_all_may_stop_at_once_and_start_again() -> None:
    async def steps(cluster: Cluster) -> None:
        await make_topic(cluster, "orders", through=1)
        load = Load(cluster, "orders")
        await load.moves_on()
        acknowledged = await load.end()
        async with asyncio.timeout(within(10)):
            await cluster.stop()
        await cluster.start()
        await until(lambda: cluster.in_sync("orders", 3), "the in-sync sets do not grow again")
        assert acknowledged.items() <= (await stored(cluster, "orders", len(acknowledged))).items()

    walk(steps)


def test_a_node_alone_waits_says_so_and_can_be_stopped() -> None:
    async def main() -> None:
        cluster = Cluster()
        node = cluster.make(1)
        starting = asyncio.ensure_future(node.start())
        await until(lambda: any("waiting for the metadata quorum" in each for each in node._obstacles()))
        assert not starting.done()
        async with asyncio.timeout(within(20)):
            await node.stop()
        with pytest.raises(StoppedEarly):
            await starting
        await cluster.start()
        await cluster.stop()

    asyncio.run(main())


def test_a_broker_that_was_removed_ends_and_says_why() -> None:
    async def steps(cluster: Cluster) -> None:
        node = cluster.nodes[3]
        reply = await cluster.nodes[1].control.channel.ask(UnregisterBrokerRequest(broker_id=3), 0)
        assert reply.error_code == 0
        async with asyncio.timeout(within(10)):
            assert await node.failed() == "an operator has removed broker 3"
        assert not node.ready

    walk(steps)


def test_brokers_and_controllers_may_be_apart() -> None:
    async def steps(cluster: Cluster) -> None:
        assert cluster.controller == 1
        assert cluster.nodes[1].ready
        await make_topic(cluster, "orders", through=3)
        load = Load(cluster, "orders")
        await load.moves_on()
        cluster.crash(1)
        await load.moves_on()
        with pytest.raises(Refused):
            await cluster.nodes[2].control.channel.ask(UnregisterBrokerRequest(broker_id=9), 0, timeout_ms=300)
        await cluster.start(1)
        reply = await cluster.nodes[2].control.channel.ask(UnregisterBrokerRequest(broker_id=9), 0)
        assert reply.error_message == "broker 9 is not registered"
        await load.end()

    walk(steps, roles={1: "controller", 2: "broker", 3: "broker", 4: "broker"})


def test_a_quorum_may_be_fixed_in_the_settings() -> None:
    async def steps(cluster: Cluster) -> None:
        first = cluster.controller
        assert all(node.quorum.kraft_version == 0 for node in cluster.nodes.values())
        await make_topic(cluster, "orders", through=1)
        cluster.crash(first)
        await until(lambda: cluster.controller not in (0, first), "nobody takes over")
        await cluster.start(first)
        await until(lambda: cluster.in_sync("orders", 3), "the in-sync sets do not grow again")

    walk(steps, fixed=True)


def test_a_stop_without_handing_over_is_felt_like_a_crash() -> None:
    async def steps(cluster: Cluster) -> None:
        await make_topic(cluster, "orders", through=1)
        other = next(each for each in cluster.nodes if each != cluster.controller)
        survivor = cluster.nodes[cluster.controller]
        await cluster.stop(other)
        image = survivor.control.metadata.image
        assert not image.brokers[other].fenced
        await until(lambda: image.brokers[other].fenced, "the broker that went is not missed")

    walk(steps, controlled_shutdown_enable="false")


def test_a_process_that_dies_is_missed_long_before_its_session_ends() -> None:
    """Who leads the quorum after it has seen why. A leader that is deposed by a stall of the machine takes that with it
    and its successor waits for the session, so here nobody is deposed for being slow."""
    session_s = 12
    patient = {"controller_quorum_fetch_timeout_ms": str(2 * session_s * 1_000)}

    async def lose(cluster: Cluster, lost: int) -> None:
        cluster.crash(lost)
        image = next(iter(cluster.nodes.values())).control.metadata.image
        await until(
            lambda: image.brokers[lost].fenced, "it is only missed when its session ends", timeout_s=session_s - 1
        )

    async def steps(cluster: Cluster) -> None:
        await make_topic(cluster, "orders", through=1)
        load = Load(cluster, "orders")
        await load.moves_on()
        other = next(each for each in cluster.nodes if each != cluster.controller)
        for lost in (other, cluster.controller):
            await lose(cluster, lost)
            await load.moves_on()
            await cluster.start(lost)
            await until(lambda: cluster.in_sync("orders", 3), "the in-sync sets do not grow again")
        await load.end()

    walk(steps, broker_session_timeout_ms=str(session_s * 1_000), **patient)


def test_a_crash_leaves_nothing_running() -> None:
    async def main() -> None:
        cluster = Cluster()
        alone = asyncio.all_tasks()
        await cluster.start()
        await make_topic(cluster, "orders", through=1)
        load = Load(cluster, "orders")
        await load.moves_on()
        await load.end()
        for node_id in list(cluster.nodes):
            cluster.crash(node_id)
        await until(lambda: asyncio.all_tasks() == alone, "tasks of a dead node go on")

    asyncio.run(main())


def test_offsets_of_a_topic_that_was_made_anew_while_its_coordinator_was_away_are_not_given() -> None:
    async def steps(cluster: Cluster) -> None:
        async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            for topic in ("remade", "kept"):
                await admin.create_topic(topic, partitions=1, replication=3)
            offsets = {TopicPartition("remade", 0): 7, TopicPartition("kept", 0): 8}
            await admin.alter_group_offsets("readers", offsets)
            assert found(await admin.group_offsets("readers")) == offsets
        (home,) = (node_id for node_id, node in cluster.nodes.items() if committed(node))
        cluster.crash(home)
        others = ",".join(f"127.0.0.1:{cluster.ports[node_id]}" for node_id in cluster.nodes)
        async with Admin(bootstrap_servers=others) as admin:
            await admin.delete_topic("remade")
            await admin.create_topic("remade", partitions=1, replication=2)
        await cluster.start(home)
        await until(lambda: any(committed(node) for node in cluster.nodes.values()), "nobody coordinates the group")
        async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            assert found(await admin.group_offsets("readers")) == {("kept", 0): 8}
            assert found(await admin.group_offsets("readers", [TopicPartition("remade", 0)])) == {}
        await until(lambda: list(committed(cluster.nodes[home])) == [("kept", 0)], "the old offset was not removed")

    walk(steps, offsets_topic_replication_factor="1")


def test_every_replica_tells_which_producers_its_log_remembers() -> None:
    async def steps(cluster: Cluster) -> None:
        async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            await admin.create_topic("orders", partitions=2, replication=3)
            await admin.create_topic("elsewhere", assignment={0: [1]})
        async with Producer(bootstrap_servers=cluster.bootstrap, idempotence=True) as producer:
            for _ in range(3):
                await producer.send("orders", b"x", partition=0)
        asked = DescribeProducersRequest
        wanted = [asked.TopicRequest(name=name, partition_indexes=[0]) for name in ("orders", "elsewhere", "missing")]
        async with ClusterView(cluster.bootstrap) as view:
            for node_id, node in cluster.nodes.items():
                await until(lambda node=node: node.broker.partitions.named("orders", 0).require_log().written == 3)
                orders, elsewhere, missing = (await view.ask(node_id, asked(topics=wanted))).topics
                (remembered,) = orders.partitions[0].active_producers
                assert (orders.partitions[0].error_code, remembered.last_sequence) == (0, 2)
                held = NONE if node_id == 1 else NOT_LEADER_OR_FOLLOWER
                assert elsewhere.partitions[0].error_code == held.code
                assert missing.partitions[0].error_code == UNKNOWN_TOPIC_OR_PARTITION.code

    walk(steps)


def found(told: Any) -> dict[tuple[str, int], int]:
    return {(place.topic, place.partition): each.offset for place, each in told.items() if each.offset >= 0}


def committed(node: Any) -> dict[tuple[str, int], Any]:
    """The offsets of the group, at the node that coordinates it."""
    shards = (home.shard for home in node.broker.groups if home.shard is not None)
    return next((dict(shard.table.offsets["readers"]) for shard in shards if "readers" in shard.table.offsets), {})
