"""Asks the coordinator of a transaction whether partitions belong to it, or adds them: the door `Verifier`.

Leaders ask before the first batch of a transaction enters a partition (KIP-890). The coordinator may be this node,
which costs no network. At any other one request is under way at a time, and takes all that came meanwhile; questions
about one transaction are one question.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from penstock.coordinators.transactions.requests import (
    EPOCH_PER_TRANSACTION,
    AddPartitions,
    Partition,
    PartitionsAdded,
)
from penstock.model.errors import (
    COORDINATOR_NOT_AVAILABLE,
    NETWORK_EXCEPTION,
    NONE,
    UNSUPPORTED_VERSION,
    ErrorCode,
    error_of,
)
from penstock.model.ids import TRANSACTIONS_TOPIC, NodeId
from penstock.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from penstock.server.doors import VerifyMode
from penstock.server.loops.duty import duty, on_duty
from penstock.transport.dial import LinkError, Unsupported

if TYPE_CHECKING:
    from penstock.coordinators.transactions.shard import TransactionShard
    from penstock.metadata.image import ClusterImage
    from penstock.model.ports import Clock
    from penstock.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
    from penstock.server.coordinating.runtime import Runtime
    from penstock.server.peers import Address, Peers

log = logging.getLogger("penstock.transactions")

PURPOSE: Final = "verification"
TRANSACTIONS_AT_ONCE: Final = 1_000
"""In one request."""
_VERSION: Final = 5

Errors = dict[Partition, ErrorCode]
Transaction = tuple[str, int, int, bool]
"""Transactional id, producer id, producer epoch, and whether partitions are only looked for."""


class OwnRequest:
    """This node asks its own coordinator."""

    client_id: Final = None
    client_host: Final = "127.0.0.1"
    api_version: Final = _VERSION

    @staticmethod
    def may_describe(_topic: str) -> bool:
        return True


class Question:
    """What is asked about one transaction, and everybody who waits for the answer."""

    __slots__ = ("answer", "partitions", "transaction")

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.partitions: dict[Partition, None] = {}
        self.answer: asyncio.Future[Errors] = asyncio.get_running_loop().create_future()

    def answered(self, errors: Mapping[Partition, ErrorCode], otherwise: ErrorCode) -> None:
        if not self.answer.done():
            self.answer.set_result({each: errors.get(each, otherwise) for each in self.partitions})


class Desk:
    """Questions for one coordinator elsewhere. One request is under way at a time."""

    __slots__ = ("_ask", "_asking", "_scheduled", "_waiting", "node")

    def __init__(self, node: NodeId, ask: Callable[[NodeId, list[Question]], Awaitable[None]]) -> None:
        self.node, self._ask = node, ask
        self._waiting: dict[Transaction, Question] = {}
        self._asking: asyncio.Task[None] | None = None
        self._scheduled = False

    def put(self, transaction: Transaction, partitions: Sequence[Partition]) -> asyncio.Future[Errors]:
        question = self._waiting.get(transaction)
        if question is None:
            question = self._waiting[transaction] = Question(transaction)
        question.partitions.update(dict.fromkeys(partitions))
        if self._asking is None and not self._scheduled:
            # Partitions of one produce come in one turn of the loop.
            self._scheduled = True
            asyncio.get_running_loop().call_soon(on_duty("verification", self._begin))
        return question.answer

    def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
        for question in self._waiting.values():
            question.answered({}, NETWORK_EXCEPTION)
        self._waiting.clear()

    def _begin(self) -> None:
        self._scheduled = False
        if self._asking is None and self._waiting:
            self._asking = duty(self._work(), name=f"verification at node {self.node}")

    async def _work(self) -> None:
        questions: list[Question] = []
        try:
            while self._waiting:
                questions = self._next()
                await self._ask(self.node, questions)
        finally:
            self._asking = None
            for question in questions:
                question.answered({}, NETWORK_EXCEPTION)  # whoever is still without an answer gets none

    def _next(self) -> list[Question]:
        """At most one question about a transactional id: answers are told apart by it alone."""
        taken: dict[str, Question] = {}
        for transaction in list(self._waiting):
            if transaction[0] not in taken:
                taken[transaction[0]] = self._waiting.pop(transaction)
            if len(taken) == TRANSACTIONS_AT_ONCE:
                break
        return list(taken.values())


class TransactionVerifier:
    """The door behind which leaders find the coordinators of transactions."""

    def __init__(
        self,
        me: NodeId,
        transactions: Runtime[TransactionShard],
        peers: Peers,
        clock: Clock,
        *,
        image: Callable[[], ClusterImage],
        address_of: Callable[[NodeId], Address | None],
        timeout_ms: Callable[[], int],
    ) -> None:
        self._me, self._transactions, self._peers, self._clock = me, transactions, peers, clock
        self._image, self._address_of, self._timeout_ms = image, address_of, timeout_ms
        self._desks: dict[NodeId, Desk] = {}
        self.asked = self.failed = 0
        self.asked_ms = self.asked_ms_max = 0.0

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[Partition],
        mode: VerifyMode,
    ) -> Errors:
        """What the coordinator says of each partition. NETWORK_EXCEPTION stands for no answer in time."""
        began = self._clock.monotonic_ms()
        transaction = (transactional_id, producer_id, producer_epoch, mode is not VerifyMode.ADD)
        errors = await self._asked(transaction, partitions)
        took_ms = self._clock.monotonic_ms() - began
        self.asked += 1
        self.asked_ms += took_ms
        self.asked_ms_max = max(self.asked_ms_max, took_ms)
        self.failed += sum(error is not NONE for error in errors.values())
        return errors

    async def _asked(self, transaction: Transaction, partitions: Sequence[Partition]) -> Errors:
        coordinator = self._coordinator(transaction[0])
        if coordinator == self._me:
            reply = self._ask_here(transaction, tuple(partitions))
            return (await reply if isinstance(reply, Awaitable) else reply).errors
        if coordinator is None:
            return dict.fromkeys(partitions, COORDINATOR_NOT_AVAILABLE)
        desk = self._desks.get(coordinator)
        if desk is None:
            desk = self._desks[coordinator] = Desk(coordinator, self._ask)
        # Whoever turns away must not take the answer from others who ask the same.
        told = await asyncio.shield(desk.put(transaction, partitions))
        return {each: told[each] for each in partitions}

    def _coordinator(self, transactional_id: str) -> NodeId | None:
        topic = self._image().topic(TRANSACTIONS_TOPIC)
        home = None if topic is None else topic.get(self._transactions.home_of(transactional_id))
        return None if home is None or home.leader < 0 else NodeId(home.leader)

    def _ask_here(
        self, transaction: Transaction, partitions: tuple[Partition, ...]
    ) -> PartitionsAdded | Awaitable[PartitionsAdded]:
        transactional_id, producer_id, producer_epoch, verify_only = transaction
        request = AddPartitions(
            transactional_id, producer_id, producer_epoch, partitions, verify_only, EPOCH_PER_TRANSACTION
        )
        return self._transactions.ask(
            transactional_id, request, OwnRequest(), lambda error: PartitionsAdded.all_with(error, partitions)
        )

    async def _ask(self, node: NodeId, questions: list[Question]) -> None:
        address, failure = self._address_of(node), COORDINATOR_NOT_AVAILABLE
        told: dict[str, Errors] = {}
        if address is not None:
            try:
                reply: AddPartitionsToTxnResponse = await self._peers.ask(
                    address, _request(questions), _VERSION, purpose=PURPOSE, timeout_ms=self._timeout_ms()
                )
                told, failure = _told(reply), error_of(reply.error_code)
                if failure is NONE:
                    failure = NETWORK_EXCEPTION  # of what the answer does not speak
            except Unsupported:
                failure = UNSUPPORTED_VERSION
            except LinkError as broken:
                log.debug("node %d does not answer about transactions: %s", node, broken)
                failure = NETWORK_EXCEPTION
        for question in questions:
            question.answered(told.get(question.transaction[0], {}), failure)

    def close(self) -> None:
        """Whoever waits has no answer."""
        for desk in self._desks.values():
            desk.close()


def _request(questions: list[Question]) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                verify_only=verify_only,
                topics=_topics(question.partitions),
            )
            for question in questions
            for transactional_id, producer_id, producer_epoch, verify_only in (question.transaction,)
        ]
    )


def _topics(partitions: Mapping[Partition, None]) -> list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]:
    by_topic: dict[str, list[int]] = {}
    for topic, index in partitions:
        by_topic.setdefault(topic, []).append(index)
    return [
        AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=indexes)
        for topic, indexes in by_topic.items()
    ]


def _told(reply: AddPartitionsToTxnResponse) -> dict[str, Errors]:
    return {
        result.transactional_id: {
            (topic.name, each.partition_index): error_of(each.partition_error_code)
            for topic in result.topic_results
            for each in topic.results_by_partition
        }
        for result in reply.results_by_transaction
    }
