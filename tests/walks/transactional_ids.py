"""Transactional producers that speak the protocol themselves, classic or new, with the node's own coordinator."""

from __future__ import annotations

from typing import Any

from penstock.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from penstock.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from penstock.protocol.messages.describe_transactions import DescribeTransactionsRequest
from penstock.protocol.messages.end_txn import EndTxnRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest
from penstock.protocol.messages.produce import ProduceRequest
from penstock.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.walks.data_plane import Client
from tests.walks.transacting import Transactional

CONCURRENT = 51
CLASSIC_END, NEW_END = 4, 5
CLASSIC_PRODUCE, NEW_PRODUCE = 11, 12
CLASSIC_OFFSETS, NEW_OFFSETS = 4, 5
TIMEOUT_MS = 60_000


async def coordinator_of(client: Client, name: str) -> int:
    """The node that looks after a transactional id, once there is one."""
    reply = await client.ask(FindCoordinatorRequest(key=name, key_type=1), 2)
    return int(reply.node_id) if reply.error_code == 0 else -reply.error_code


async def offset_of(client: Client, group: str, topic: str) -> tuple[int, int]:
    """What a group that wants only what is settled is told of partition 0: the error code and the offset."""
    made = OffsetFetchRequest
    wanted = made.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])
    request = made(groups=[made.OffsetFetchRequestGroup(group_id=group, topics=[wanted])], require_stable=True)
    (told,) = (await client.ask(request, 9)).groups
    if told.error_code:
        return told.error_code, -1
    (partition,) = told.topics[0].partitions
    return partition.error_code, partition.committed_offset


class Producer(Transactional):
    """One that has a name. `client` is a connection to whoever leads and coordinates; on one node that is one.

    `classic` ones register partitions and keep their epoch; others have an epoch for each transaction.
    """

    def __init__(self, client: Client, name: str = "copier", *, classic: bool = False) -> None:
        super().__init__(client, version=CLASSIC_PRODUCE if classic else NEW_PRODUCE)
        self.name, self.classic = name, classic
        self.coordinator = client
        self.id, self.epoch = -1, -1

    async def init(self, *, named: bool = False, timeout_ms: int = TIMEOUT_MS) -> int:
        """InitProducerId until nothing of the id is settling any more; the error code."""
        while True:
            reply = await self.ask_init(named=named, timeout_ms=timeout_ms)
            if reply.error_code != CONCURRENT:
                break
        if reply.error_code == 0:
            self.id, self.epoch = reply.producer_id, reply.producer_epoch
            self.sequences.clear()
        return int(reply.error_code)

    async def ask_init(self, *, named: bool = False, timeout_ms: int = TIMEOUT_MS, version: int = 5) -> Any:
        said = {"producer_id": self.id, "producer_epoch": self.epoch} if named else {}
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=timeout_ms, **said)
        return await self.coordinator.ask(request, version)

    async def add(self, topic: str, *partitions: int, version: int = 3) -> list[int]:
        """AddPartitionsToTxn as a classic client, once the transaction before is over; the code of each partition."""
        made = AddPartitionsToTxnRequest
        request = made(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[made.AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )
        while True:
            reply = await self.coordinator.ask(request, version)
            codes = [
                each.partition_error_code
                for result in reply.results_by_topic_v3_and_below
                for each in result.results_by_partition
            ]
            if CONCURRENT not in codes:
                return codes

    async def add_offsets(self, group: str, version: int = 4) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, group_id=group
        )
        return int((await self.coordinator.ask(request, version)).error_code)

    async def commit_offset(self, group: str, topic: str, offset: int) -> int:
        """TxnOffsetCommit of one partition; a classic producer says so to its coordinator first."""
        if self.classic:
            error = await self.add_offsets(group)
            if error:
                return error
        made = TxnOffsetCommitRequest
        done = made.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = made(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.id,
            producer_epoch=self.epoch,
            topics=[made.TxnOffsetCommitRequestTopic(name=topic, partitions=[done])],
        )
        reply = await self.client.ask(request, CLASSIC_OFFSETS if self.classic else NEW_OFFSETS)
        return int(reply.topics[0].partitions[0].error_code)

    async def end(self, *, commit: bool, version: int | None = None) -> int:
        """EndTxn; the error code. What the newer protocol tells of the next transaction is taken over."""
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=commit
        )
        version = version if version is not None else CLASSIC_END if self.classic else NEW_END
        reply = await self.coordinator.ask(request, version)
        if reply.error_code == 0 and version >= NEW_END:
            self.id, self.epoch = reply.producer_id, reply.producer_epoch
            self.sequences.clear()
        return int(reply.error_code)

    def request(self, topic: str, *values: bytes, **said: Any) -> ProduceRequest:
        request = super().request(topic, *values, **said)
        request.transactional_id = self.name
        return request

    async def described(self) -> Any:
        (state,) = (
            await self.coordinator.ask(DescribeTransactionsRequest(transactional_ids=[self.name]), 0)
        ).transaction_states
        return state

    async def settled(self) -> None:
        """Returns when all markers are written."""
        while (await self.described()).transaction_state.startswith("Prepare"):
            pass  # the walk as a whole has a deadline
