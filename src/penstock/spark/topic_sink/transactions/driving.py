"""Obeys the machine: asks brokers for what it wants, and tells it what they say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final, TypeVar

from penstock.client.admin import Admin
from penstock.client.admin.transactions import TransactionInfo
from penstock.client.errors import BrokerRefused, TransactionFenced
from penstock.client.producer import Producer
from penstock.client.producer.transactions.prepared import PreparedTransaction, ProducerEpoch
from penstock.client.spans import SpanReader
from penstock.model.errors import (
    INVALID_TRANSACTION_TIMEOUT,
    OFFSET_OUT_OF_RANGE,
    PRODUCER_FENCED,
    TRANSACTIONAL_ID_NOT_FOUND,
)
from penstock.model.ids import TopicPartition
from penstock.spark.errors import BadOption
from penstock.spark.topic_sink.delivery import Landed
from penstock.spark.topic_sink.transactions import ledger
from penstock.spark.topic_sink.transactions.effects import (
    AskLedger,
    AskTime,
    BeginDriver,
    BeginPool,
    Describe,
    Described,
    Effect,
    End,
    Fence,
    ListOpen,
    PutAway,
    ReadLedger,
    ReadMark,
    Seen,
    TopicIds,
    Witness,
    Write,
    WriteMark,
)
from penstock.spark.topic_sink.transactions.machine import Superseded
from penstock.spark.topic_sink.transactions.mark import Mark
from penstock.spark.topic_sink.transactions.names import driver_id
from penstock.spark.topic_sink.transactions.records import Listed

T = TypeVar("T")

DRIVER_TIMEOUT_MS: Final = 30_000
"""Decisions are written in moments, and one that its driver left open holds up everybody who reads the ledger."""
OPEN_FOR_S: Final = 60.0
"""How long a transaction that has an end may seem open: its markers are under way, or another one is open before it."""
_FEATURE: Final = "transaction.version"
_ONGOING: Final = "Ongoing"


class Driving:
    """The effects of one query's driver, in one call. Close it afterwards; `admin` and `reader` are lent."""

    def __init__(
        self,
        query_id: str,
        settings: Mapping[str, Any],
        admin: Admin,
        reader: SpanReader,
        mark: Mark,
        *,
        timeout_ms: int,
        driver: ProducerEpoch | None = None,
        transaction_version: int | None = None,
    ) -> None:
        self._query_id, self._settings, self._timeout_ms = query_id, settings, timeout_ms
        self._admin, self._reader, self._mark = admin, reader, mark
        self._driver, self._version = driver, transaction_version
        self._producer: Producer | None = None

    async def run(self, steps: Generator[Effect, Any, T]) -> T:
        """The machine to its end; what an effect raises ends it too."""
        try:
            answer = None
            while True:
                effect = steps.send(answer)
                answer = await self._obey(effect)
        except StopIteration as ended:
            found: T = ended.value
            return found
        finally:
            if self._producer is not None:
                await self._producer.close(0)
                self._producer = None

    async def transaction_version(self) -> int:
        """The level that the cluster has settled on."""
        if self._version is None:
            levels = {each.name: each.finalized for each in await self._admin.features()}
            self._version = levels.get(_FEATURE) or 0
        return self._version

    async def _obey(self, effect: Effect) -> Any:
        match effect:
            case ReadMark():
                return await asyncio.to_thread(self._mark.read)
            case AskLedger(make):
                return await ledger.topic_of(self._admin, make=make)
            case WriteMark(ledger_id):
                return await asyncio.to_thread(self._mark.write, ledger_id)
            case ReadLedger(waits):
                return await ledger.read(self._admin, self._reader, self._cluster, self._query_id, waits=waits)
            case BeginDriver(named):
                return await self._begin_driver(named)
            case BeginPool(ids):
                return await self._begin_pool(ids)
            case Write(standing):
                return await self._write(lambda producer: ledger.put(producer, standing))
            case PutAway(standing):
                await self._write(lambda producer: ledger.put_away(producer, standing))
                return None
            case AskTime():
                return time.time() * 1000
            case Describe(ids):
                return await self._describe(ids)
            case End(transactions, commit):
                ended = await asyncio.gather(*(self._end(each, commit) for each in transactions))
                return {each.transactional_id: told for each, told in zip(transactions, ended, strict=True)}
            case Witness(transactions, topics):
                return {each.id: await self._witness(each, dict(topics)) for each in transactions}
            case ListOpen(pattern):
                listed = await self._admin.list_transactions(states=[_ONGOING], pattern=pattern)
                return [each.id for each in listed]
            case Fence(ids):
                (await self._admin.fence_producers(ids)).checked()
                return None
            case TopicIds(topics):
                found = await self._admin.describe_topics(topics, offsets=False, configs=False)
                return {name: info.id for name, info in found.done.items()}

    @property
    def _cluster(self) -> str:
        return str(self._settings["bootstrap_servers"])

    async def _begin_driver(self, named: ProducerEpoch | None) -> ProducerEpoch | None:
        name = driver_id(self._query_id)
        outcome = await self._admin.begin_producers({name: named}, transaction_timeout_ms=DRIVER_TIMEOUT_MS)
        refused = outcome.failed.get(name)
        if named is not None and refused is not None and refused.error is PRODUCER_FENCED:
            return None
        self._driver = outcome.checked()[name]
        return self._driver

    async def _begin_pool(self, ids: Sequence[str]) -> dict[str, ProducerEpoch]:
        wanted = dict.fromkeys(ids)
        try:
            return (await self._admin.begin_producers(wanted, transaction_timeout_ms=self._timeout_ms)).checked()
        except BrokerRefused as refused:
            if refused.error is not INVALID_TRANSACTION_TIMEOUT:
                raise
            raise BadOption(
                f"kafka.transaction.timeout.ms={self._timeout_ms} is more than the brokers allow: make it smaller, or "
                "their transaction.max.timeout.ms larger"
            ) from refused

    async def _write(self, put: Callable[[Producer], None]) -> ProducerEpoch:
        try:
            producer = await self._writer()
            async with producer.transaction():
                put(producer)
        except TransactionFenced as fenced:
            raise Superseded(
                f"the decision of this driver was refused, because another driver of the query has taken over: {fenced}"
            ) from fenced
        self._driver = producer.producer_epoch
        assert self._driver is not None, "it has written as somebody"
        return self._driver

    async def _writer(self) -> Producer:
        if self._producer is None:
            assert self._driver is not None, "a driver begins before it writes"
            self._producer = Producer(
                **{
                    **self._settings,
                    "transactional_id": driver_id(self._query_id),
                    "transaction_timeout_ms": DRIVER_TIMEOUT_MS,
                    "acks": "all",
                    "linger_ms": 0,
                    "compression": "zstd",
                    "max_request_size": 2 * ledger.RECORD_BYTES_MOST,
                }
            )
            self._producer.adopt(self._driver, await self.transaction_version())
        return self._producer

    async def _describe(self, ids: Sequence[str]) -> dict[str, Described]:
        found = await self._admin.describe_transactions(ids)
        for failure in found.failed.values():
            if failure.error is not TRANSACTIONAL_ID_NOT_FOUND:
                raise failure
        return {name: _described(info) for name, info in found.done.items()}

    async def _end(self, prepared: PreparedTransaction, commit: bool) -> bool:
        """Whether it was acknowledged. A refusal says nothing sure about how the transaction has ended."""
        try:
            await self._admin.end_transaction(prepared, commit=commit)
        except TransactionFenced:
            return False
        return True

    async def _witness(self, listed: Listed, topics: Mapping[str, str]) -> Seen:
        """What the log shows of a transaction, by the first record of each of its partitions that is still there."""
        found = Seen.UNREADABLE
        for landed in listed.landed:
            info = (await self._admin.describe_topics([landed.topic], offsets=False, configs=False)).done.get(
                landed.topic
            )
            if info is None or info.id != topics.get(landed.topic, info.id):
                continue
            found = await self._look(listed, landed)
            if found in (Seen.COMMITTED, Seen.ABORTED):
                return found
        return found

    async def _look(self, listed: Listed, landed: Landed) -> Seen:
        """A batch of the transaction that is shown, or the broker's word that it is not: both are sure."""
        partition, whose = TopicPartition(landed.topic, landed.partition), listed.prepared
        try:
            async with asyncio.timeout(OPEN_FOR_S):
                while (await self._stable(partition)) <= landed.last:
                    await asyncio.sleep(0.1)
        except TimeoutError:
            return Seen.OPEN
        try:
            found = await self._admin.committed_batches(partition, landed.first, landed.last + 1)
        except BrokerRefused as refused:
            if refused.error is OFFSET_OUT_OF_RANGE:
                return Seen.UNREADABLE
            raise
        producer = whose.producer_id, whose.producer_epoch
        if any((each.producer_id, each.producer_epoch) == producer for each in found.batches):
            return Seen.COMMITTED
        # A compacted topic may show neither, and then nobody can tell.
        return Seen.ABORTED if (whose.producer_id, landed.first) in found.aborted else Seen.UNREADABLE

    async def _stable(self, partition: TopicPartition) -> int:
        return (await self._admin.offsets({partition: "latest"}, read_committed=True)).checked()[partition].offset


def _described(info: TransactionInfo) -> Described:
    return Described(ProducerEpoch(info.producer_id, info.epoch), info.state == _ONGOING)
