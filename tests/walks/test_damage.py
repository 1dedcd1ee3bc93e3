"""A batch that is damaged in its leader's log: followers stop before it, and `cluster health` says so."""

from __future__ import annotations

import asyncio

from penstock import Admin, Producer
from penstock.kernels import scan_batches
from penstock.operations.health import Reason, look
from penstock.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from penstock.server.loops.ports import SystemClock
from penstock.server.peers import Address, NetPeers
from penstock.testing.memory_files import MemoryFiles
from penstock.transport.net import AsyncioNet
from tests.patience import Patience, until
from tests.walks.three_nodes import Cluster, walk

TOPIC = "orders"


def flip(files: MemoryFiles, path: str, offset: int) -> None:
    """One bit of the records of the batch that begins at an offset."""
    data = bytearray(files.read(path))
    position = next(at for at, header in scan_batches(data) if header.base_offset == offset)
    data[position + 65] ^= 1
    files.open(path).pwritev((bytes(data[position + 65 : position + 66]),), position + 65)


async def end_of(cluster: Cluster, node_id: int, replica_id: int) -> tuple[int, int]:
    """(error, end of the log) as a node tells it."""
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=replica_id, topics=[ListOffsetsRequest.ListOffsetsTopic(name=TOPIC, partitions=[wanted])]
    )
    peers = NetPeers(AsyncioNet(asyncio.get_running_loop()), SystemClock(), client_id="judge")
    address = Address("127.0.0.1", cluster.ports[node_id])
    reply: ListOffsetsResponse = await peers.ask(address, request, 6, purpose="test", timeout_ms=10_000)
    peers.close()
    (told,) = reply.topics[0].partitions
    return told.error_code, told.offset


def test_a_follower_that_cannot_copy_a_damaged_batch_is_named_with_the_damage() -> None:
    async def steps(cluster: Cluster) -> None:
        async with (
            Admin(bootstrap_servers=cluster.bootstrap) as admin,
            Producer(bootstrap_servers=cluster.bootstrap, acks="all") as producer,
        ):
            await admin.create_topic(TOPIC, partitions=1, replication=3)
            await producer.send(TOPIC, b"before")
            (partition,) = (await admin.describe_topic(TOPIC)).partitions
            leader, away, other = partition.leader, *(each for each in partition.replicas if each != partition.leader)
            cluster.crash(away)
            for value in (b"sound", b"damaged", b"after"):
                await producer.send(TOPIC, value)
            flip(cluster.disks[leader], f"/data/node-{leader}/{TOPIC}-0/{0:020d}.log", 2)
            await cluster.start(away)
            found: list[Reason] = []

            async def named() -> bool:
                _, reasons = await look(admin)
                found[:] = [reason for reason in reasons if reason.kind == "damaged"]
                return bool(found)

            patience = Patience(30)
            while not await named():
                assert not patience.over(), "nobody names the damage"
                await asyncio.sleep(0.1)
            ((item,),) = (reason.items for reason in found)
            assert item.startswith(f"{TOPIC}-0 at offset 2 of broker {leader} (")
            assert (await end_of(cluster, away, replica_id=-2)) == (0, 2), "a debugger is told by a follower too"
            assert (await end_of(cluster, other, replica_id=-2)) == (0, 4)
            assert (await end_of(cluster, away, replica_id=-1))[0] == 6, "a client is sent to the leader"

    walk(steps)


def test_replicas_that_only_lag_are_not_called_damaged() -> None:
    async def steps(cluster: Cluster) -> None:
        async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            await admin.create_topic(TOPIC, partitions=1, replication=3)
            await until(lambda: cluster.in_sync(TOPIC, 3))
            _, reasons = await look(admin)
            assert "damaged" not in {reason.kind for reason in reasons}

    walk(steps)
