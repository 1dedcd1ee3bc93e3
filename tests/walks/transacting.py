"""Producers in transactions that speak the protocol themselves, and a coordinator that says what a test wants.

Only the door to the coordinator is played; everything behind it is the node's own.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence

from penstock.kernels import scan_batches
from penstock.model.errors import NONE, ErrorCode
from penstock.model.ids import ZERO_UUID
from penstock.protocol.batch import is_control
from penstock.protocol.messages.fetch import FetchResponse
from penstock.protocol.messages.produce import ProduceRequest, ProduceResponse
from penstock.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from penstock.replication.verifying import VerifyMode
from penstock.server.partitions.producing.transactions import Transactions
from tests.patience import within
from tests.walks.data_plane import ANSWER_MS, BY_NAME, Client, Machine, at, batch_of, data_of, records_in

READ_COMMITTED = 1
ID = "copier"
Place = tuple[str, int]

_producers = itertools.count(9_000)


class Said:
    """Answers as it is told to: NONE, unless `answers` has something for the partition, each answer once."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, int, list[Place], VerifyMode]] = []
        self.answers: dict[Place, list[ErrorCode | None]] = {}
        self.held: asyncio.Event | None = None

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[Place],
        mode: VerifyMode,
    ) -> Mapping[Place, ErrorCode]:
        self.asked.append((transactional_id, producer_id, producer_epoch, [tuple(each) for each in partitions], mode))
        answers = {place: self._next(place) for place in partitions}
        if self.held is not None:
            await self.held.wait()
        return {place: answer for place, answer in answers.items() if answer is not None}

    def _next(self, place: Place) -> ErrorCode | None:
        queued = self.answers.get(place)
        return queued.pop(0) if queued else NONE

    def hold(self) -> None:
        """Answers are decided as questions come, and reach the asker when they are released."""
        self.held = asyncio.Event()

    def release(self) -> None:
        assert self.held is not None, "only what is held can be released"
        self.held.set()
        self.held = None


def serve_transactions(machine: Machine) -> Said:
    """Lets a node serve transactions whose coordinator is the test."""
    said, broker = Said(), machine.node.broker
    transactions = Transactions(machine.node.settings, broker._clock, said)
    broker.produces.transactions = broker.groups.transactions = transactions
    return said


class Transactional:
    """The batches of one transactional producer, numbered as they should be for each partition."""

    def __init__(self, client: Client, *, epoch: int = 0, version: int = BY_NAME) -> None:
        self.client, self.version = client, version
        self.id, self.epoch = next(_producers), epoch
        self.sequences: dict[Place, int] = {}

    def batch(self, *values: bytes, place: Place, sequence: int | None = None) -> bytes:
        first = self.sequences.get(place, 0) if sequence is None else sequence
        if sequence is None:
            self.sequences[place] = first + len(values)
        return batch_of(
            *values, producer_id=self.id, producer_epoch=self.epoch, base_sequence=first, transactional=True
        )

    def request(
        self, topic: str, *values: bytes, partitions: Sequence[int] = (0,), sequence: int | None = None
    ) -> ProduceRequest:
        made = ProduceRequest
        data = [
            made.PartitionProduceData(index=index, records=self.batch(*values, place=(topic, index), sequence=sequence))
            for index in partitions
        ]
        return made(
            transactional_id=ID,
            acks=-1,
            timeout_ms=within(ANSWER_MS),
            topic_data=[
                made.TopicProduceData(name=topic, topic_id=self.client.ids.get(topic, ZERO_UUID), partition_data=data)
            ],
        )

    async def send(
        self, topic: str, *values: bytes, partitions: Sequence[int] = (0,), sequence: int | None = None
    ) -> list[tuple[int, int]]:
        """(error code, base offset) of each partition."""
        reply = await self.client.ask(
            self.request(topic, *values, partitions=partitions, sequence=sequence), self.version
        )
        return answers(reply)

    def next_epoch(self) -> None:
        """As the reply to EndTxn of the newer protocol says."""
        self.epoch += 1
        self.sequences.clear()


def answers(reply: ProduceResponse) -> list[tuple[int, int]]:
    return [(each.error_code, each.base_offset) for topic in reply.responses for each in topic.partition_responses]


async def mark(
    client: Client,
    producer: Transactional,
    *places: Place,
    commit: bool = True,
    epoch: int | None = None,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
) -> list[int]:
    """Ends a transaction as its coordinator does; the error code of each partition."""
    made = WriteTxnMarkersRequest
    topics: dict[str, list[int]] = {}
    for topic, index in places:
        topics.setdefault(topic, []).append(index)
    marker = made.WritableTxnMarker(
        producer_id=producer.id,
        producer_epoch=producer.epoch if epoch is None else epoch,
        transaction_result=commit,
        topics=[made.WritableTxnMarkerTopic(name=name, partition_indexes=found) for name, found in topics.items()],
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )
    (result,) = (await client.ask(made(markers=[marker]), 2)).markers
    assert result.producer_id == producer.id
    return [each.error_code for topic in result.topics for each in topic.partitions]


def committed_values(data: FetchResponse.PartitionData) -> list[bytes | None]:
    """What a client that reads committed records makes of one partition of a fetch."""
    raw = bytes(data.records or b"")
    pending = sorted((each.first_offset, each.producer_id) for each in data.aborted_transactions or ())
    aborted: set[int] = set()
    found: list[bytes | None] = []
    records = {record.offset: record.value for record in records_in(data)}
    for _, header in scan_batches(raw):
        while pending and pending[0][0] <= header.last_offset:
            aborted.add(pending.pop(0)[1])
        offsets = range(header.base_offset, header.last_offset + 1)
        if is_control(header.attributes):
            aborted.discard(header.producer_id)
        elif header.producer_id not in aborted:
            found += [records[offset] for offset in offsets if offset in records]
    return found


async def read_committed(client: Client, topic: str, partition: int = 0, *, start: int = 0) -> list[bytes | None]:
    """Everything that a reader of committed records is given from `start` on, in one fetch."""
    reply = await client.fetch(at(topic, start, partition), isolation_level=READ_COMMITTED)
    return committed_values(data_of(reply))
