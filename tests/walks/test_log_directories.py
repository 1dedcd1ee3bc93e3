"""Several log directories of one node: replicas move between them, and each fails and is cordoned alone."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    KAFKA_STORAGE_ERROR,
    LOG_DIR_NOT_FOUND,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from penstock.model.ids import PartitionKey, Uuid
from penstock.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.delete_records import DeleteRecordsRequest
from penstock.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from penstock.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from penstock.server.doors import CLUSTER_NAME, Operation, ResourceType
from penstock.server.reception.authorize import Asked, Recording
from penstock.storage.meta_properties import read_meta_properties
from tests.patience import until
from tests.walks.data_plane import Client, Idempotent, Machine, at, data_of, records_in, walk

ONE, TWO = "/disk1/logs", "/disk2/logs"
META = "/disk0/meta"
DIRECTORIES = f"{ONE},{TWO}"
BROKER, SET, DELETE = 4, 0, 1

Described = dict[str, DescribeLogDirsResponse.DescribeLogDirsResult]


async def describe(client: Client) -> Described:
    reply = await client.ask(DescribeLogDirsRequest(topics=None))
    return {result.log_dir: result for result in reply.results}


async def homes(client: Client) -> dict[tuple[str, int], list[str]]:
    """Where each partition is, first the replica that serves and then its copy."""
    found: dict[tuple[str, int], list[tuple[bool, str]]] = {}
    for path, result in (await describe(client)).items():
        for topic in result.topics:
            for each in topic.partitions:
                found.setdefault((topic.name, each.partition_index), []).append((each.is_future_key, path))
    return {name: [path for _, path in sorted(paths)] for name, paths in found.items()}


async def move(client: Client, *wishes: tuple[str, str, int]) -> dict[tuple[str, int], int]:
    """Asks for (path, topic, partition); the error code of each partition."""
    made = AlterReplicaLogDirsRequest
    request = made(
        dirs=[
            made.AlterReplicaLogDir(
                path=path, topics=[made.AlterReplicaLogDirTopic(name=topic, partitions=[partition])]
            )
            for path, topic, partition in wishes
        ]
    )
    reply = await client.ask(request)
    return {
        (topic.topic_name, each.partition_index): each.error_code
        for topic in reply.results
        for each in topic.partitions
    }


async def moved(client: Client, path: str, topic: str, partition: int = 0) -> None:
    assert await move(client, (path, topic, partition)) == {(topic, partition): NONE.code}
    while await homes(client) | {(topic, partition): [path]} != await homes(client):
        await asyncio.sleep(0.001)


async def configure(client: Client, name: str, value: str | None, broker: str = "") -> None:
    made = IncrementalAlterConfigsRequest
    config = made.AlterableConfig(name=name, value=value, config_operation=SET if value is not None else DELETE)
    resource = made.AlterConfigsResource(resource_type=BROKER, resource_name=broker, configs=[config])
    reply = await client.ask(made(resources=[resource]))
    assert reply.responses[0].error_code == 0, reply


def assigned(machine: Machine, topic: str) -> list[Uuid]:
    """The directory of each partition as the metadata has it."""
    found = machine.node.control.metadata.image.topic(topic)
    assert found is not None
    return [partition.directories[0] for partition in found.partitions]


def ids(machine: Machine) -> dict[str, Uuid]:
    """The id in `meta.properties` of each directory."""
    found = {path: read_meta_properties(machine.files, path) for path in (ONE, TWO)}
    return {path: meta.directory_id for path, meta in found.items() if meta is not None and meta.directory_id}


def test_a_replica_moves_to_and_fro_under_load_and_nobody_notices() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        producer, reader = await machine.dial(), await machine.dial()
        numbered, sent = Idempotent(), 0
        stopping = False

        async def write() -> None:
            nonlocal sent
            while not stopping:
                value = b"%08d" % sent + bytes(2_000)
                reply = await producer.produce("orders", batch=numbered.batch(value))
                assert (reply.error_code, reply.base_offset) == (0, sent)
                sent += 1

        async def read() -> int:
            seen = 0
            while not writing.done() or seen < sent:
                reply = await reader.fetch(at("orders", seen), max_wait_ms=10)
                data = data_of(reply)
                assert data.error_code == 0
                for record in records_in(data):
                    assert record.value is not None
                    assert record.offset == seen
                    assert record.value.startswith(b"%08d" % seen)
                    seen += 1
            return seen

        writing, reading = asyncio.ensure_future(write()), asyncio.ensure_future(read())
        await until(lambda: sent > 100 or writing.done())
        for path in (TWO, ONE, TWO):
            await moved(client, path, "orders")
        stopping = True
        await writing
        assert await reading == sent
        duplicate = await producer.produce("orders", batch=numbered.batch(b"again", sequence=sent - 1))
        assert duplicate.base_offset == sent - 1, "the producer's last batches moved along"
        assert machine.node.broker.relocations.moved == 3

    walk(steps, log_dirs=DIRECTORIES)


def test_each_partition_gets_its_own_answer() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", 3)
        before = await homes(client)
        assert await move(
            client, ("/nowhere", "orders", 0), (ONE, "orders", 1), (ONE, "orders", 7), (ONE, "unknown", 0)
        ) == {
            ("orders", 0): LOG_DIR_NOT_FOUND.code,
            ("orders", 1): NONE.code,
            ("orders", 7): UNKNOWN_TOPIC_OR_PARTITION.code,
            ("unknown", 0): UNKNOWN_TOPIC_OR_PARTITION.code,
        }
        (here,) = before["orders", 2]
        there = TWO if here == ONE else ONE
        twice = await move(client, (there, "orders", 2), (here, "orders", 2))
        assert twice == {("orders", 2): NONE.code}, "the last path counts"
        assert (await homes(client))["orders", 2] == [here]

    walk(steps, log_dirs=DIRECTORIES)


def test_deleted_records_stay_deleted_also_within_a_batch_and_after_a_kill() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        for number in range(30):
            await client.produce("orders", *(b"%d" % each for each in range(number * 10, number * 10 + 10)))
        made = DeleteRecordsRequest
        wanted = made.DeleteRecordsTopic(
            name="orders", partitions=[made.DeleteRecordsPartition(partition_index=0, offset=105)]
        )
        await client.ask(made(topics=[wanted], timeout_ms=1_000))
        (here,) = (await homes(client))["orders", 0]
        await moved(client, TWO if here == ONE else ONE, "orders")
        await until(lambda: not machine.node.broker.relocations._retiring)
        assert (await client.offset("orders", -2)).offset == 105
        await machine.cut_power()
        await machine.start()
        again = await machine.dial()
        assert (await again.offset("orders", -2)).offset == 105
        assert await again.values("orders", start=105) == [b"%d" % each for each in range(105, 300)]

    walk(steps, log_dirs=DIRECTORIES)


def test_who_may_not_alter_the_cluster_moves_nothing() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", 2)
        before = await homes(client)
        answers = await move(client, (ONE, "orders", 0), (TWO, "orders", 0), (ONE, "orders", 1))
        assert answers == dict.fromkeys((("orders", 0), ("orders", 1)), CLUSTER_AUTHORIZATION_FAILED.code)
        assert await homes(client) == before

    refuses = Recording(Asked(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME))
    walk(steps, authorizer=refuses, log_dirs=DIRECTORIES)


def test_the_metadata_says_where_each_replica_is_also_after_a_move_and_a_restart() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", 4)
        directory_ids = ids(machine)

        def agree() -> bool:
            node = machine.node
            at_home = [node.broker.store.home_of(PartitionKey(client.ids["orders"], index)) for index in range(4)]
            return assigned(machine, "orders") == at_home and None not in at_home

        await until(agree)
        assert sorted(assigned(machine, "orders")) == sorted([*directory_ids.values()] * 2)
        (here,) = (await homes(client))["orders", 0]
        there = TWO if here == ONE else ONE
        await moved(client, there, "orders")
        await until(agree)
        assert assigned(machine, "orders")[0] == directory_ids[there]
        await machine.stop()
        await machine.start()
        assert agree()
        again = await machine.dial()
        assert (await homes(again))["orders", 0] == [there]

    walk(steps, log_dirs=DIRECTORIES)


def test_one_directory_is_assigned_when_the_topic_is_made() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        end = machine.node.quorum.end
        await client.create("orders", 3)
        assert assigned(machine, "orders") == [ids(machine)[ONE]] * 3
        assert machine.node.quorum.end == end + 4, "a topic and its partitions, and nothing to report after"

    walk(steps, log_dirs=ONE)


def test_a_power_cut_during_a_move_loses_nothing_that_was_synced() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", flush_messages="1")
        for life in range(4):
            client = await machine.dial()
            start = (await client.offset("orders", -1)).offset
            promised = await client.values("orders")
            for number in range(150):
                await client.produce("orders", b"%d-%d" % (life, number) * 1_000)
                promised.append(b"%d-%d" % (life, number) * 1_000)
            assert len(promised) == start + 150
            (here,) = (await homes(client))["orders", 0]
            await move(client, (TWO if here == ONE else ONE, "orders", 0))
            for _ in range(machine.chance.randrange(30)):
                await asyncio.sleep(0)
            await machine.cut_power(lambda _path, unsynced: machine.chance.randrange(unsynced + 1))
            await machine.start()
            client = await machine.dial()
            assert (await client.values("orders"))[: len(promised)] == promised

    walk(steps, log_dirs=DIRECTORIES)


def test_the_rate_of_moves_can_be_bounded_and_raised_again() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders")
        for _ in range(20):
            await client.produce("orders", bytes(100_000))
        await configure(client, "replica.alter.log.dirs.io.max.bytes.per.second", "0")
        (here,) = (await homes(client))["orders", 0]
        there = TWO if here == ONE else ONE
        await move(client, (there, "orders", 0))
        for _ in range(20):
            await asyncio.sleep(0.001)
        result = (await describe(client))[there]
        assert [(each.is_future_key, each.offset_lag) for each in result.topics[0].partitions] == [(True, 20)]
        await configure(client, "replica.alter.log.dirs.io.max.bytes.per.second", None)
        await until(lambda: machine.node.broker.relocations.moved == 1)

    walk(steps, log_dirs=DIRECTORIES)


def test_a_directory_fails_alone_and_the_controller_hears_of_it() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", 2)
        where = {name: paths[0] for name, paths in (await homes(client)).items()}
        (lost,) = (index for index in range(2) if where["orders", index] == TWO)
        kept = 1 - lost
        await client.produce("orders", b"before", partition=lost)
        await until(lambda: len(set(assigned(machine, "orders"))) == 2)
        machine.files.fail(TWO, errno.EIO)
        refused = await client.produce("orders", b"after", partition=lost)
        assert refused.error_code in (KAFKA_STORAGE_ERROR.code, NOT_LEADER_OR_FOLLOWER.code)
        assert (await client.produce("orders", b"goes on", partition=kept)).error_code == 0
        image = machine.node.control.metadata.image
        await until(lambda: image.brokers[1].log_dirs == (ids(machine)[ONE],))
        found = image.topic("orders")
        assert found is not None
        assert [partition.leader for partition in found.partitions] == [1 if index == kept else -1 for index in (0, 1)]
        results = await describe(client)
        assert (results[TWO].error_code, results[ONE].error_code) == (KAFKA_STORAGE_ERROR.code, 0)
        (reason,) = machine.node._ailments()
        assert reason.startswith(f"log directory {TWO} is offline: {TWO}/orders-{lost}/"), "the file is named"
        assert machine.node._obstacles() == []
        await client.create("later", 2)
        assert {path for name, (path,) in (await homes(client)).items() if name[0] == "later"} == {ONE}
        machine.files.heal(TWO)
        await machine.stop()
        await machine.start()
        again = await machine.dial()
        assert await again.values("orders", lost) == [b"before"]

    walk(steps, log_dirs=DIRECTORIES)


def test_a_node_without_a_directory_left_gives_up_and_says_why() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("orders", 2)
        for path in (ONE, TWO):
            machine.files.fail(path, errno.EIO)
        assert machine.node.ready
        for partition in (0, 1):
            assert (await client.produce("orders", b"lost", partition=partition)).error_code != 0
        why = await machine.node.failed()
        assert why.startswith("every log directory is offline: /disk1/logs: ")
        assert not machine.node.ready
        assert machine.node._obstacles() == [why]
        for path in (ONE, TWO):
            machine.files.heal(path)

    walk(steps, log_dirs=DIRECTORIES, metadata_log_dir=META)


def test_a_cordoned_directory_serves_what_it_has_and_takes_nothing_new() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.create("before", 2)
        assert {path for (path,) in (await homes(client)).values()} == {ONE, TWO}
        await configure(client, "cordoned.log.dirs", TWO, broker="1")
        assert {path: result.is_cordoned for path, result in (await describe(client)).items()} == {
            ONE: False,
            TWO: True,
        }
        await client.create("after", 4)
        assert {path for name, (path,) in (await homes(client)).items() if name[0] == "after"} == {ONE}
        assert await move(client, (TWO, "after", 0)) == {("after", 0): INVALID_REPLICA_ASSIGNMENT.code}
        for partition in (0, 1):
            assert (await client.produce("before", b"served", partition=partition)).error_code == 0
        image = machine.node.control.metadata.image
        await until(lambda: image.brokers[1].cordoned_log_dirs == (ids(machine)[TWO],))
        await machine.stop()
        await machine.start()
        again = await machine.dial()
        assert (await describe(again))[TWO].is_cordoned
        image = machine.node.control.metadata.image
        await until(lambda: image.brokers[1].cordoned_log_dirs == (ids(machine)[TWO],))
        await configure(again, "cordoned.log.dirs", None, broker="1")
        await until(lambda: image.brokers[1].cordoned_log_dirs == ())
        assert not (await describe(again))[TWO].is_cordoned

    walk(steps, log_dirs=DIRECTORIES)


def test_a_broker_whose_directories_are_all_cordoned_takes_no_new_partition() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        made = CreateTopicsRequest
        request = made(topics=[made.CreatableTopic(name="orders", num_partitions=1, replication_factor=1)])
        image = machine.node.control.metadata.image
        await until(lambda: len(image.brokers[1].cordoned_log_dirs or ()) == 2)
        reply: Any = await client.ask(request)
        assert reply.topics[0].error_code == INVALID_REPLICATION_FACTOR.code

    walk(steps, log_dirs=DIRECTORIES, cordoned_log_dirs="*")
