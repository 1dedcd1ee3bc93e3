"""A script's place on both brokers: a transactional id, a topic and a group that no other script uses."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, NamedTuple

from penstock.model.errors import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NOT_ENOUGH_REPLICAS,
)
from penstock.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from penstock.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from penstock.protocol.messages.describe_transactions import DescribeTransactionsRequest
from penstock.protocol.messages.end_txn import EndTxnRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.messages.produce import ProduceRequest
from penstock.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from penstock.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.compat.answers.comparing import Difference
from tests.compat.answers.duo import Duo, Exchange, Side
from tests.compat.answers.world import BASE_MS
from tests.compat.batches import Record, encode_batch
from tests.compat.transactions.deviations import excuse_of
from tests.compat.transactions.record_words import in_other_words

SETTLES_WITHIN_S = 15.0
NOBODY, NOBODYS = 987_654_321, 10
"""Producer ids that no broker has given anybody: the first one, and how many."""
_PASSING = frozenset(
    each.code
    for each in (
        CONCURRENT_TRANSACTIONS,
        COORDINATOR_LOAD_IN_PROGRESS,
        COORDINATOR_NOT_AVAILABLE,
        NOT_ENOUGH_REPLICAS,
    )
)
"""What a broker says while it is busy with the request before; how long that takes is its own affair."""
SHOWN_CHARACTERS = 1_200
TOLD_MAX = 25

Partitions = Mapping[str, Sequence[int]] | Sequence[tuple[str, Sequence[int]]]


class Finding(NamedTuple):
    """Where the answers of one step of a script differ."""

    script: str
    step: str
    exchange: Exchange
    difference: Difference

    def __str__(self) -> str:
        exchange, difference = self.exchange, self.difference
        lines = (
            f"{self.script}, {self.step}: {difference.path}",
            f"  ours   {difference.ours!r}",
            f"  theirs {difference.theirs!r}",
            f"  request      {exchange.request!r}",
            f"  our answer   {exchange.ours!r}",
            f"  their answer {exchange.theirs!r}",
        )
        return "\n".join(line[:SHOWN_CHARACTERS] for line in lines)


@dataclass
class Report:
    """What came out of many scripts."""

    scripts: int = 0
    asked: Counter[tuple[str, int]] = field(default_factory=Counter)
    codes: Counter[tuple[str, int]] = field(default_factory=Counter)
    """How often each API answered with which code, of Kafka."""
    excused: Counter[str] = field(default_factory=Counter)
    unexplained: list[Finding] = field(default_factory=list)

    def __str__(self) -> str:
        kinds: dict[tuple[str, ...], list[Finding]] = {}
        for found in self.unexplained:
            about = (found.exchange.api, found.difference.path)
            values = (repr(found.difference.ours)[:60], repr(found.difference.theirs)[:60])
            kinds.setdefault((*about, *values), []).append(found)
        shown = [
            f"{len(each)} times ({', '.join(sorted({found.script for found in each}))[:300]}): {each[0]}"
            for each in kinds.values()
        ]
        told = "\n\n".join(shown[:TOLD_MAX])
        return f"{len(self.unexplained)} differences of {len(kinds)} kinds that no limit names\n\n{told}"


class Stage:
    """Asks both brokers the steps of one script. `pid` and `epoch` are what the id's producer was told last."""

    def __init__(self, duo: Duo, report: Report, script: str, name: str, topic: str) -> None:
        self.duo, self.report, self.script = duo, report, script
        self.id, self.topic, self.group = name, topic, f"group-of-{name}"
        self.pid, self.epoch = -1, -1
        self.ids = [name]
        """Every id that the script has given a producer to."""
        self._steps = 0
        for number in range(NOBODYS):
            duo.pairs.bind("producer", NOBODY + number, NOBODY + number)

    # -- asking

    async def ask(self, request: Any, version: int, *, patient: bool = True) -> Any:
        """Our answer, after both were compared. Whoever is busy is asked again."""
        api = request.__class__.__name__.removesuffix("Request")
        self._steps += 1
        exchange = await self.exchange(api, request, version, patient=patient)
        self.keep(exchange, f"step {self._steps}")
        return exchange.ours

    async def exchange(self, api: str, request: Any, version: int, *, patient: bool) -> Exchange:
        pairs = self.duo.pairs
        theirs = in_other_words(pairs.translated(request), lambda pid: pairs.theirs("producer", pid))
        answers = await asyncio.gather(
            _answer(self.duo.ours, request, version, patient=patient),
            _answer(self.duo.theirs, theirs, version, patient=patient),
        )
        return Exchange(api, version, request, *answers)

    def keep(self, exchange: Exchange, step: str) -> None:
        report = self.report
        report.asked[exchange.api, exchange.version] += 1
        report.codes.update((exchange.api, code) for code in set(codes(exchange.theirs)))
        for difference in self.differences(exchange):
            excuse = excuse_of(exchange, difference)
            if excuse is None:
                report.unexplained.append(Finding(self.script, step, exchange, difference))
            else:
                report.excused[excuse] += 1

    def differences(self, exchange: Exchange) -> list[Difference]:
        ours = in_other_words(exchange.ours, lambda pid: pid, timeless=True)
        theirs = in_other_words(exchange.theirs, lambda pid: self.duo.pairs.ours("producer", pid), timeless=True)
        return self.duo.differences(exchange._replace(ours=ours, theirs=theirs))

    async def settled(self) -> None:
        """Returns when no transaction of the script waits for its markers any more, on neither broker."""
        for side in (self.duo.ours, self.duo.theirs):
            async with asyncio.timeout(SETTLES_WITHIN_S):
                while await _is_ending(side, self.ids):
                    await asyncio.sleep(0.005)

    # -- what producers say

    async def init(
        self, version: int = 4, *, name: str | None = "", pid: int = -1, epoch: int = -1, timeout_ms: int = 60_000
    ) -> Any:
        """`name` is the script's own id unless another is given."""
        made = InitProducerIdRequest(
            transactional_id=self.id if name == "" else name,
            transaction_timeout_ms=timeout_ms,
            producer_id=pid,
            producer_epoch=epoch,
        )
        reply = await self.ask(made, version)
        if reply.error_code == 0 and name == "":
            self.pid, self.epoch = reply.producer_id, reply.producer_epoch
        elif reply.error_code == 0 and name and name not in self.ids:
            self.ids.append(name)
        return reply

    async def add(self, version: int = 3, *, partitions: Partitions | None = None, **who: Any) -> Any:
        made = AddPartitionsToTxnRequest
        name, pid, epoch = self._who(**who)
        topics = self._topics(made, partitions)
        if version < 4:
            request = made(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=pid,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=topics,
            )
        else:
            request = made(transactions=[self.transaction(partitions=partitions, **who)])
        return await self.ask(request, version)

    def transaction(
        self, *, partitions: Partitions | None = None, verify_only: bool = False, **who: Any
    ) -> AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction:
        made = AddPartitionsToTxnRequest
        name, pid, epoch = self._who(**who)
        return made.AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=pid,
            producer_epoch=epoch,
            verify_only=verify_only,
            topics=self._topics(made, partitions),
        )

    def _topics(self, made: Any, partitions: Partitions | None) -> list[Any]:
        wanted = {self.topic: [0]} if partitions is None else partitions
        named = wanted.items() if isinstance(wanted, Mapping) else wanted
        return [made.AddPartitionsToTxnTopic(name=topic, partitions=list(indexes)) for topic, indexes in named]

    async def add_offsets(self, version: int = 3, *, group: str | None = None, **who: Any) -> Any:
        name, pid, epoch = self._who(**who)
        wanted = self.group if group is None else group
        request = AddOffsetsToTxnRequest(transactional_id=name, producer_id=pid, producer_epoch=epoch, group_id=wanted)
        return await self.ask(request, version)

    async def end(self, version: int = 4, *, commit: bool = True, adopt: bool = True, **who: Any) -> Any:
        name, pid, epoch = self._who(**who)
        request = EndTxnRequest(transactional_id=name, producer_id=pid, producer_epoch=epoch, committed=commit)
        reply = await self.ask(request, version)
        await self.settled()
        if adopt and version >= 5 and reply.error_code == 0:
            self.pid, self.epoch = reply.producer_id, reply.producer_epoch
        return reply

    async def commit_offsets(
        self,
        version: int = 3,
        *,
        offsets: Mapping[str, Sequence[tuple[int, int]]] | None = None,
        group: str | None = None,
        generation: int = -1,
        member: str = "",
        instance: str | None = None,
        metadata: str | None = "",
        leader_epoch: int = -1,
        **who: Any,
    ) -> Any:
        made = TxnOffsetCommitRequest
        name, pid, epoch = self._who(**who)
        wanted = {self.topic: [(0, 7)]} if offsets is None else offsets
        topics = [
            made.TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    made.TxnOffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=leader_epoch if version >= 2 else -1,
                        committed_metadata=metadata,
                    )
                    for index, offset in partitions
                ],
            )
            for topic, partitions in wanted.items()
        ]
        request = made(
            transactional_id=name,
            group_id=self.group if group is None else group,
            producer_id=pid,
            producer_epoch=epoch,
            topics=topics,
        )
        if version >= 3:
            request.generation_id, request.member_id, request.group_instance_id = generation, member, instance
        return await self.ask(request, version)

    def batch(
        self,
        sequence: int = 0,
        *,
        pid: int | None = None,
        epoch: int | None = None,
        transactional: bool = True,
        count: int = 1,
    ) -> bytes:
        records = [Record(b"value %d" % (sequence + number), b"key") for number in range(count)]
        return encode_batch(
            records,
            base_timestamp_ms=BASE_MS,
            producer_id=self.pid if pid is None else pid,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=sequence,
            transactional=transactional,
        )

    async def produce(
        self,
        version: int,
        sequence: int = 0,
        *,
        data: Mapping[int, bytes] | None = None,
        name: str | None = "",
        topic: str | None = None,
        acks: int = -1,
        partition: int = 0,
        **batch: Any,
    ) -> Any:
        """`data` is what goes to which partition: one batch to one partition unless it is given."""
        given = {partition: self.batch(sequence, **batch)} if data is None else data
        where = self.topic if topic is None else topic
        return await self.ask(
            self.produced(version, {where: given}, name=self.id if name == "" else name, acks=acks), version
        )

    def produced(
        self, version: int, data: Mapping[str, Mapping[int, bytes]], *, name: str | None, acks: int = -1
    ) -> ProduceRequest:
        made = ProduceRequest
        topics = []
        for topic, by_partition in data.items():
            parts = [made.PartitionProduceData(index=index, records=raw) for index, raw in by_partition.items()]
            if version >= 13:
                topics.append(made.TopicProduceData(topic_id=self.duo.world.ids[topic], partition_data=parts))
            else:
                topics.append(made.TopicProduceData(name=topic, partition_data=parts))
        return made(transactional_id=name, acks=acks, timeout_ms=10_000, topic_data=topics)

    def marker(
        self,
        *,
        commit: bool = False,
        partitions: Mapping[str, Sequence[int]] | None = None,
        coordinator_epoch: int = 0,
        level: int = 0,
        pid: int | None = None,
        epoch: int | None = None,
    ) -> WriteTxnMarkersRequest.WritableTxnMarker:
        made = WriteTxnMarkersRequest
        wanted = {self.topic: [0]} if partitions is None else partitions
        return made.WritableTxnMarker(
            producer_id=self.pid if pid is None else pid,
            producer_epoch=self.epoch if epoch is None else epoch,
            transaction_result=commit,
            topics=[
                made.WritableTxnMarkerTopic(name=topic, partition_indexes=list(indexes))
                for topic, indexes in wanted.items()
            ],
            coordinator_epoch=coordinator_epoch,
            transaction_version=level,
        )

    async def mark(self, version: int, **said: Any) -> Any:
        if version < 2:
            said.pop("level", None)
        return await self.ask(WriteTxnMarkersRequest(markers=[self.marker(**said)]), version)

    def _who(
        self, *, name: str | None = None, pid: int | None = None, epoch: int | None = None, **_: Any
    ) -> tuple[str, int, int]:
        return (
            self.id if name is None else name,
            self.pid if pid is None else pid,
            self.epoch if epoch is None else epoch,
        )

    # -- beginnings that many scripts share

    async def begin(self, *, partitions: Partitions | None = None) -> None:
        """A producer of the classic protocol with one partition in its transaction."""
        await self.init()
        await self.add(partitions=partitions)

    async def written(self, version: int = 9) -> None:
        """The same, with a record in it."""
        await self.begin()
        await self.produce(version)


async def _is_ending(side: Side, ids: list[str]) -> bool:
    reply = await side.ask(DescribeTransactionsRequest(transactional_ids=ids), 0)
    return any(each.transaction_state.startswith("Prepar") for each in reply.transaction_states)


async def _answer(side: Side, request: Any, version: int, *, patient: bool) -> Any:
    deadline = time.monotonic() + (SETTLES_WITHIN_S if patient else 0)
    while True:
        reply = await side.ask(request, version)
        if time.monotonic() >= deadline or not _PASSING & set(codes(reply)):
            return reply
        await asyncio.sleep(0.005)


def codes(message: Any) -> Iterator[int]:
    """Every error code in an answer."""
    if isinstance(message, list):
        for each in message:
            yield from codes(each)
    elif is_dataclass(message) and not isinstance(message, type):
        for each in fields(message):
            value = getattr(message, each.name)
            if each.name.endswith("error_code"):
                yield value
            else:
                yield from codes(value)
