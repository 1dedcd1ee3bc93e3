"""A transactional producer's machine with a hand on its clock, and what coordinators may answer it."""

from __future__ import annotations

from typing import Any

from penstock.client.consumer.offsets import GroupMetadata, OffsetAndMetadata
from penstock.client.producer.transactions.effects import Effect, Send
from penstock.client.producer.transactions.machine import OffsetsJob, State, TransactionMachine
from penstock.client.producer.transactions.reactions import Api
from penstock.client.retry import Backoff
from penstock.model.ids import TopicPartition
from penstock.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from penstock.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from penstock.protocol.messages.end_txn import EndTxnResponse
from penstock.protocol.messages.init_producer_id import InitProducerIdResponse
from penstock.protocol.messages.txn_offset_commit import TxnOffsetCommitResponse

CLASSIC, BUMPING = 0, 2
P0, P1 = ("out", 0), ("out", 1)
SOURCE = TopicPartition("in", 0)
GROUP = GroupMetadata("g", 4, "member")
PID, EPOCH = 7, 3


class Life:
    """`effects` are those of the last event; `asked` is the request that waits for its answer."""

    def __init__(self, level: int, machine: type[TransactionMachine] = TransactionMachine) -> None:
        self.machine = machine("t", 60_000, Backoff(100, 1_000, lambda: 0.5))
        self.machine.levels(level)
        self.now = 1_000.0
        self.effects: list[Effect] = []
        self.log: list[Send] = []

    @property
    def state(self) -> State:
        return self.machine.state

    @property
    def asked(self) -> Send:
        assert self.machine.asked is not None, "something is asked"
        return self.machine.asked

    @property
    def idle(self) -> bool:
        return self.machine.asked is None

    def do(self, event: str, *arguments: Any, **named: Any) -> Life:
        self.effects = getattr(self.machine, event)(*arguments, self.now, **named)
        self.log += [effect for effect in self.effects if isinstance(effect, Send)]
        return self

    def answer(self, code: int = 0, **fields: int) -> Life:
        return self.do("replied", self.asked, reply_to(self.asked, code, **fields))

    def later(self, ms: float = 2_000) -> Life:
        self.now += ms
        return self.do("tick")


def reply_to(sent: Send, code: int = 0, **fields: int) -> Any:
    """An answer with one code for everything; `fields` of InitProducerId and EndTxn."""
    request = sent.request
    match sent.api:
        case Api.INIT:
            told = {"producer_id": PID, "producer_epoch": EPOCH, **fields}
            return InitProducerIdResponse(error_code=code, **(told if not code else {}))
        case Api.ADD_PARTITIONS:
            return AddPartitionsToTxnResponse(
                results_by_topic_v3_and_below=[
                    AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
                        name=topic.name,
                        results_by_partition=[
                            AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                                partition_index=index, partition_error_code=code
                            )
                            for index in topic.partitions
                        ],
                    )
                    for topic in request.v3_and_below_topics
                ]
            )
        case Api.ADD_OFFSETS:
            return AddOffsetsToTxnResponse(error_code=code)
        case Api.COMMIT_OFFSETS:
            return TxnOffsetCommitResponse(
                topics=[
                    TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                        name=topic.name,
                        partitions=[
                            TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                                partition_index=partition.partition_index, error_code=code
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ]
            )
        case Api.END:
            bumped = {"producer_id": request.producer_id, "producer_epoch": request.producer_epoch + 1}
            told = {**bumped, **fields} if sent.oldest == 5 and not code else {}
            return EndTxnResponse(error_code=code, **told)


def job() -> OffsetsJob:
    return OffsetsJob(GROUP, {SOURCE: OffsetAndMetadata(5)})


def ready(level: int) -> Life:
    return Life(level).do("initialise").answer()


def opened(level: int) -> Life:
    return ready(level).do("begin")


def begun(level: int) -> Life:
    """A transaction that has partition 0 in it."""
    life = opened(level)
    if not life.machine.admits(P0):
        life.do("tick").answer()
    assert life.machine.admits(P0)
    return life


def asking(level: int, api: Api) -> Life:
    """A life that waits for the answer to this."""
    match api:
        case Api.INIT:
            return Life(level).do("initialise")
        case Api.ADD_PARTITIONS:
            life = opened(level)
            life.machine.admits(P0)
            return life.do("tick")
        case Api.ADD_OFFSETS:
            return opened(level).do("add_offsets", job())
        case Api.COMMIT_OFFSETS:
            life = opened(level).do("add_offsets", job())
            return life.answer() if level == CLASSIC else life
        case Api.END:
            return begun(level).do("commit").do("quiet")


def in_state(state: State, level: int = BUMPING) -> Life:
    match state:
        case State.UNINITIALIZED:
            return Life(level)
        case State.INITIALIZING:
            return Life(level).do("initialise")
        case State.READY:
            return ready(level)
        case State.OPEN:
            return begun(level)
        case State.PREPARED:
            return begun(level).do("prepare")
        case State.COMMITTING:
            return begun(level).do("commit")
        case State.ABORTING:
            return begun(level).do("abort")
        case State.ABORTABLE:
            return asking(level, Api.COMMIT_OFFSETS).answer(22)
        case State.FATAL:
            return asking(level, Api.END).answer(90)
