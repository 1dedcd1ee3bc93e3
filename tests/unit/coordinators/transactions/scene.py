"""One shard and its log, in the hands of a test: what is written is committed at once, unless `held`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.coordinators.decision import Caller, Decision, Moment, StateRecord
from penstock.coordinators.transactions.effects import SendMarkers
from penstock.coordinators.transactions.records import state_record
from penstock.coordinators.transactions.requests import AddPartitions, Partition, PartitionsAdded
from penstock.coordinators.transactions.settings import TransactionSettings
from penstock.coordinators.transactions.shard import TransactionShard
from penstock.coordinators.transactions.transaction import STATUS_NAMES, State
from penstock.coordinators.transactions.transitions import first
from penstock.metadata.features import TRANSACTION_VERSION
from penstock.metadata.image import ClusterImage
from penstock.model.errors import ErrorCode
from penstock.model.ids import Epoch, Millis, Offset, Uuid
from penstock.protocol.codec import decode, encode
from penstock.protocol.disk.metadata_topics import PartitionRecord, TopicRecord
from penstock.protocol.disk.transaction_records import TransactionLogKey, TransactionLogValue
from penstock.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from penstock.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

ID = "copy"
TIMEOUT_MS = 60_000
WALL_AT_START = 1_700_000_000_000
FIRST_PRODUCER_ID = 1_000
P0: Partition = ("out", 0)
P1: Partition = ("out", 1)
P2: Partition = ("out", 2)


class Scene:
    """Talks to the shard as the runtime does. Replies are told when they leave; `effects` are those that have left."""

    def __init__(self, transaction_version: int = 2, **properties: Any) -> None:
        named = {name.replace("_", "."): value for name, value in properties.items()}
        self.settings = TransactionSettings.fixed(named)
        self.image = image_at(transaction_version)
        self.log: list[StateRecord] = []
        self.committed = 0
        self.held = False
        self.tick, self.wall = 1_000, WALL_AT_START
        self.coordinator_epoch = Epoch(7)
        self.producer_ids: list[int | None] = []
        self._next_producer_id = FIRST_PRODUCER_ID
        self.effects: list[SendMarkers] = []
        self._waiting: list[tuple[int, SendMarkers]] = []
        self.shard = self.new_shard()
        self._start(self.shard)

    # The world around it

    def new_shard(self) -> TransactionShard:
        return TransactionShard(self.settings, self.image, next_producer_id=self._producer_id)

    def _producer_id(self) -> int | None:
        if self.producer_ids:
            return self.producer_ids.pop(0)
        self._next_producer_id += 1
        return self._next_producer_id - 1

    def _start(self, shard: TransactionShard) -> None:
        for decision in shard.loaded(self.now):
            self.carry_out(decision)
        self.lead(self.coordinator_epoch)

    def lead(self, epoch: int) -> None:
        """Led in another epoch: what had not left is void."""
        self.coordinator_epoch = Epoch(epoch)
        self._waiting.clear()
        for decision in self.shard.led(self.coordinator_epoch, self.now):
            self.carry_out(decision)

    def raise_version(self, transaction_version: int) -> None:
        self.image = image_at(transaction_version)
        self.shard.see(self.image)

    @property
    def now(self) -> Moment:
        return Moment(Millis(self.wall), self.tick, Offset(self.committed))

    def wait(self, ms: int) -> None:
        """Time passes, and whatever is due happens when it is."""
        end = self.tick + ms
        while (at := self.shard.next_deadline()) is not None and at <= end:
            self._pass(max(at - self.tick, 0))
            for decision in self.shard.expire(self.now):
                self.carry_out(decision)
        self._pass(end - self.tick)

    def _pass(self, ms: int) -> None:
        self.tick += ms
        self.wall += ms

    def carry_out(self, decision: Decision) -> Any:
        for record in decision.records:
            stored = round_trip(record)
            self.shard.apply(stored, Offset(len(self.log)))
            self.log.append(stored)
        for effect in decision.effects:
            assert isinstance(effect, SendMarkers)
            self._waiting.append((len(self.log), effect))
        if not self.held:
            self.commit()
        return decision.reply

    def commit(self) -> None:
        """Everything that is written is committed."""
        self.held = False
        self.committed = len(self.log)
        self.effects += [effect for end, effect in self._waiting if end <= self.committed]
        self._waiting = [(end, effect) for end, effect in self._waiting if end > self.committed]

    def fail_over(self, *, lose: bool = False, compacted: bool = False) -> None:
        """Another node takes over in the next epoch; `lose` takes back what is not committed."""
        if lose:
            del self.log[self.committed :]
        self.held = False
        self.committed = len(self.log)
        self.shard = self.replayed(compacted=compacted)
        self.coordinator_epoch = Epoch(self.coordinator_epoch + 1)
        self._waiting.clear()
        self._start(self.shard)

    def replayed(self, *, compacted: bool = False) -> TransactionShard:
        shard = self.new_shard()
        last = {record.key.transactional_id: offset for offset, record in enumerate(self.log)}  # type: ignore[attr-defined]
        for offset, record in enumerate(self.log):
            if not compacted or last[record.key.transactional_id] == offset:  # type: ignore[attr-defined]
                shard.apply(record, Offset(offset))
        return shard

    # Requests

    def ask(self, request: object, version: int = 0) -> Any:
        caller = Caller("tests", "/127.0.0.1", version, None)
        return self.carry_out(self.shard.decide(request, caller, self.now))

    def init(
        self, pid: int = -1, epoch: int = -1, *, name: str | None = ID, timeout_ms: int = TIMEOUT_MS, **more: Any
    ) -> tuple[int, int, int]:
        """Error, producer id, epoch."""
        request = InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=timeout_ms, producer_id=pid, producer_epoch=epoch, **more
        )
        reply = self.ask(request, 5)
        assert isinstance(reply, InitProducerIdResponse)
        return reply.error_code, reply.producer_id, reply.producer_epoch

    def add(self, pid: int, epoch: int, *partitions: Partition, version: int = 2, name: str = ID) -> int:
        """The error, which is the same for all partitions."""
        return _one(self._add(pid, epoch, partitions or (P0,), version, name, verify_only=False))

    def verify(self, pid: int, epoch: int, *partitions: Partition, name: str = ID) -> dict[Partition, ErrorCode]:
        return self._add(pid, epoch, partitions or (P0,), 0, name, verify_only=True)

    def _add(
        self, pid: int, epoch: int, partitions: tuple[Partition, ...], version: int, name: str, *, verify_only: bool
    ) -> dict[Partition, ErrorCode]:
        reply = self.ask(AddPartitions(name, pid, epoch, partitions, verify_only, version))
        assert isinstance(reply, PartitionsAdded)
        assert reply.errors.keys() == set(partitions)
        return reply.errors

    def add_offsets(self, pid: int, epoch: int, group: str = "g", *, name: str = ID) -> int:
        request = AddOffsetsToTxnRequest(transactional_id=name, producer_id=pid, producer_epoch=epoch, group_id=group)
        error: int = self.ask(request, 3).error_code
        return error

    def end(self, pid: int, epoch: int, *, commit: bool, version: int = 5, name: str = ID) -> tuple[int, int, int]:
        """Error, producer id, epoch."""
        request = EndTxnRequest(transactional_id=name, producer_id=pid, producer_epoch=epoch, committed=commit)
        reply = self.ask(request, version)
        assert isinstance(reply, EndTxnResponse)
        return reply.error_code, reply.producer_id, reply.producer_epoch

    # Markers

    def mark_all(self) -> list[SendMarkers]:
        """Every marker that has left is written, and the shard is told."""
        written, self.effects = self.effects, []
        for effect in written:
            self.carry_out(self.shard.markers_written(effect, self.now))
        return written

    def mark(self, effect: SendMarkers, partitions: Iterable[Partition]) -> None:
        self.carry_out(self.shard.partitions_marked(effect, partitions, self.now))

    # States

    def state(self, name: str = ID) -> State:
        return self.shard.table.transactions[name].state

    def stands(self, name: str = ID) -> tuple[str, int, int]:
        """Kafka's name of the state, producer id, epoch."""
        state = self.state(name)
        return STATUS_NAMES[state.status], state.producer_id, state.epoch

    def story(self) -> list[tuple[str, int]]:
        """Every record so far, as a state and an epoch; a tombstone is `gone`."""
        return [_told(record.value) for record in self.log]

    # Starting points

    def at(self, status: str, epoch: int, *, version: int = 2, pid: int = FIRST_PRODUCER_ID) -> None:
        """Brings the id to a state with an epoch, by a log that says so."""
        ends_with_epoch = version >= 2 and status not in ("Empty", "Ongoing")
        before = epoch - 1 if ends_with_epoch else epoch
        self.plant(pid, before)
        if status == "Empty":
            return
        assert self.add(pid, before, version=version) == 0
        if status == "Ongoing":
            return
        commit = status.endswith("Commit")
        assert self.end(pid, before, commit=commit, version=5 if version >= 2 else 4)[0] == 0
        if status.startswith("Complete"):
            self.mark_all()
        assert self.stands() == (status, pid, epoch)

    def plant(self, pid: int, epoch: int) -> None:
        """A producer that has come to this epoch."""
        self._next_producer_id = max(self._next_producer_id, pid + 1)
        state = first(pid, TIMEOUT_MS, Millis(self.wall))._replace(epoch=epoch)
        self.carry_out(Decision([state_record(ID, state, self.shard.table.value_version)]))


def round_trip(record: StateRecord) -> StateRecord:
    """The record as a reader of the log gets it."""
    key, _ = decode(TransactionLogKey, 0, encode(record.key, 0))
    if record.value is None:
        return StateRecord(key, None)
    value, _ = decode(TransactionLogValue, record.value_version, encode(record.value, record.value_version))
    return StateRecord(key, value, record.value_version)


def image_at(transaction_version: int, offsets_partitions: int = 0) -> ClusterImage:
    image = ClusterImage()
    if transaction_version:
        image.features[TRANSACTION_VERSION] = transaction_version
    if offsets_partitions:
        topic_id = Uuid(b"offsets".ljust(16, b"\0"))
        records: list[object] = [TopicRecord(name="__consumer_offsets", topic_id=topic_id)]
        records += [
            PartitionRecord(partition_id=index, topic_id=topic_id, replicas=[1], isr=[1], leader=1, leader_epoch=0)
            for index in range(offsets_partitions)
        ]
        for record in records:
            image.apply(record, Offset(image.offset + 1), Epoch(1))
        image.take_delta()
    return image


def _one(errors: dict[Partition, ErrorCode]) -> int:
    (error,) = set(errors.values())
    return error.code


def _told(value: object | None) -> tuple[str, int]:
    if value is None:
        return ("gone", -1)
    assert isinstance(value, TransactionLogValue)
    names = {int(status): name for status, name in STATUS_NAMES.items()}
    return names[value.transaction_status], value.producer_epoch
