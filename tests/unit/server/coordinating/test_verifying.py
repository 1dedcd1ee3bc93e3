"""Questions to coordinators about partitions of transactions: one at a time, merged, told apart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from penstock.coordinators.transactions.requests import AddPartitions, PartitionsAdded
from penstock.metadata.image import ClusterImage
from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_NOT_AVAILABLE,
    NETWORK_EXCEPTION,
    NONE,
    PRODUCER_FENCED,
    TRANSACTION_ABORTABLE,
    UNSUPPORTED_VERSION,
    ErrorCode,
)
from penstock.model.ids import TRANSACTIONS_TOPIC, Epoch, NodeId, Offset, Uuid
from penstock.protocol.disk.metadata_topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from penstock.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from penstock.server.coordinating.verifying import TransactionVerifier
from penstock.server.doors import VerifyMode
from penstock.server.peers import Address
from penstock.transport.dial import Severed, Unsupported
from tests.walks.control_plane import ManualClock

ME, OTHER = NodeId(1), NodeId(2)
STATE_ID = Uuid(b"t" * 16)
HOME_HERE, HOME_THERE, HOME_NOWHERE = 0, 1, 2
HOMES = {"here": HOME_HERE, "nowhere": HOME_NOWHERE}
P, Q = ("orders", 0), ("orders", 1)
Errors = Mapping[tuple[str, int], ErrorCode]


class Asked:
    """One request at the other node, which waits for its answer."""

    def __init__(self, request: AddPartitionsToTxnRequest) -> None:
        self.request = request
        self.answer: asyncio.Future[AddPartitionsToTxnResponse] = asyncio.get_running_loop().create_future()

    @property
    def questions(self) -> list[tuple[str, int, bool, list[tuple[str, int]]]]:
        return [
            (
                each.transactional_id,
                each.producer_epoch,
                each.verify_only,
                [(topic.name, index) for topic in each.topics for index in topic.partitions],
            )
            for each in self.request.transactions
        ]

    def say(self, error: ErrorCode = NONE, **errors: ErrorCode) -> None:
        """The same for all partitions of a transaction, or by transactional id."""
        made = AddPartitionsToTxnResponse
        self.answer.set_result(
            made(
                results_by_transaction=[
                    made.AddPartitionsToTxnResult(
                        transactional_id=name,
                        topic_results=[
                            made.AddPartitionsToTxnTopicResult(
                                name=topic,
                                results_by_partition=[
                                    made.AddPartitionsToTxnPartitionResult(
                                        partition_index=index, partition_error_code=errors.get(name, error).code
                                    )
                                ],
                            )
                            for topic, index in places
                        ],
                    )
                    for name, _, _, places in self.questions
                ]
            )
        )


class World:
    """A verifier, its own coordinator and another one."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self.image.apply(TopicRecord(name=TRANSACTIONS_TOPIC, topic_id=STATE_ID), Offset(0), Epoch(1))
        for index, leader in ((HOME_HERE, ME), (HOME_THERE, OTHER), (HOME_NOWHERE, -1)):
            record = PartitionRecord(partition_id=index, topic_id=STATE_ID, replicas=[1, 2], isr=[1, 2], leader=leader)
            self.image.apply(record, Offset(index + 1), Epoch(1))
        self.here: list[AddPartitions] = []
        self.asked: list[Asked] = []
        self.verifier = TransactionVerifier(
            ME,
            self,  # type: ignore[arg-type]  # of the runtime it needs what is here
            self,
            ManualClock(),
            image=lambda: self.image,
            address_of=lambda node: Address("broker", node),
            timeout_ms=lambda: 30_000,
        )

    def home_of(self, transactional_id: str) -> int:
        return HOMES.get(transactional_id, HOME_THERE)

    def ask(self, first: Any, request: Any, *rest: Any, **said: Any) -> Any:
        """Of this node's coordinator, or of the other one."""
        if isinstance(first, Address):
            self.asked.append(Asked(request))
            return self.asked[-1].answer
        self.here.append(request)
        return PartitionsAdded(dict.fromkeys(request.partitions, PRODUCER_FENCED))

    def verify(
        self, name: str, *partitions: tuple[str, int], epoch: int = 4, mode: VerifyMode = VerifyMode.ADD
    ) -> asyncio.Task[Errors]:
        async def verified() -> Errors:
            return await self.verifier.verify(name, 1000, epoch, partitions, mode)

        return asyncio.get_running_loop().create_task(verified())


async def turns() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


def walk(steps: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        world = World()
        try:
            await steps(world)
        finally:
            world.verifier.close()

    asyncio.run(main())


def test_the_coordinator_of_this_node_is_asked_without_a_network() -> None:
    async def steps(world: World) -> None:
        assert await world.verify("here", P, Q) == {P: PRODUCER_FENCED, Q: PRODUCER_FENCED}
        assert await world.verify("here", P, mode=VerifyMode.VERIFY) == {P: PRODUCER_FENCED}
        assert [(each.verify_only, each.client_version, each.partitions) for each in world.here] == [
            (False, 2, (P, Q)),
            (True, 2, (P,)),
        ]
        assert (world.asked, world.verifier.asked, world.verifier.failed) == ([], 2, 3)

    walk(steps)


def test_questions_that_come_together_are_one_request_and_those_about_one_transaction_one_question() -> None:
    async def steps(world: World) -> None:
        asking = [world.verify("a", P), world.verify("a", Q), world.verify("b", P), world.verify("a", P)]
        await turns()
        (asked,) = world.asked
        assert asked.questions == [("a", 4, False, [P, Q]), ("b", 4, False, [P])]
        asked.say(b=CONCURRENT_TRANSACTIONS)
        assert [await each for each in asking] == [{P: NONE}, {Q: NONE}, {P: CONCURRENT_TRANSACTIONS}, {P: NONE}]

    walk(steps)


def test_one_request_is_under_way_and_what_comes_meanwhile_is_the_next() -> None:
    async def steps(world: World) -> None:
        first = world.verify("a", P)
        await turns()
        later = [world.verify("a", Q), world.verify("b", P)]
        await turns()
        assert len(world.asked) == 1
        world.asked[0].say()
        await first
        await turns()
        assert world.asked[1].questions == [("a", 4, False, [Q]), ("b", 4, False, [P])]
        world.asked[1].say()
        assert [await each for each in later] == [{Q: NONE}, {P: NONE}]

    walk(steps)


def test_a_transactional_id_is_once_in_a_request_because_answers_are_told_apart_by_it() -> None:
    async def steps(world: World) -> None:
        asking = [
            world.verify("a", P, epoch=4),
            world.verify("a", P, epoch=5),
            world.verify("a", P, mode=VerifyMode.VERIFY_ABORTABLE),
        ]
        for answer in (PRODUCER_FENCED, NONE, TRANSACTION_ABORTABLE):
            await turns()
            assert len(world.asked[-1].questions) == 1
            world.asked[-1].say(answer)
        assert [await each for each in asking] == [{P: PRODUCER_FENCED}, {P: NONE}, {P: TRANSACTION_ABORTABLE}]
        assert [asked.questions[0][1:3] for asked in world.asked] == [(4, False), (5, False), (4, True)]

    walk(steps)


def test_without_a_coordinator_or_an_answer_it_is_said_so() -> None:
    async def steps(world: World) -> None:
        assert await world.verify("nowhere", P) == {P: COORDINATOR_NOT_AVAILABLE}
        for failure, told in (
            (Severed("broker", 2, "gone"), NETWORK_EXCEPTION),
            (Unsupported("broker", 2, "too old"), UNSUPPORTED_VERSION),
        ):
            asking = world.verify("a", P)
            await turns()
            world.asked[-1].answer.set_exception(failure)
            assert await asking == {P: told}
        for reply, told in (
            (AddPartitionsToTxnResponse(error_code=CLUSTER_AUTHORIZATION_FAILED.code), CLUSTER_AUTHORIZATION_FAILED),
            (AddPartitionsToTxnResponse(), NETWORK_EXCEPTION),
        ):
            asking = world.verify("a", P)
            await turns()
            world.asked[-1].answer.set_result(reply)
            assert await asking == {P: told}

    walk(steps)


def test_a_coordinator_that_has_moved_is_asked_where_it_is() -> None:
    async def steps(world: World) -> None:
        moved = PartitionChangeRecord(partition_id=HOME_THERE, topic_id=STATE_ID, leader=ME)
        world.image.apply(moved, Offset(9), Epoch(1))
        await world.verify("a", P)
        assert (len(world.here), world.asked) == (1, [])

    walk(steps)


def test_whoever_turns_away_does_not_take_the_answer_from_others() -> None:
    async def steps(world: World) -> None:
        impatient, patient = world.verify("a", P), world.verify("a", P)
        await turns()
        impatient.cancel()
        await turns()
        world.asked[0].say()
        assert await patient == {P: NONE}

    walk(steps)


def test_a_node_that_stops_has_no_answer_for_those_who_wait() -> None:
    async def steps(world: World) -> None:
        first = world.verify("a", P)
        await turns()
        second = world.verify("b", P)
        await turns()
        world.verifier.close()
        assert await second == {P: NETWORK_EXCEPTION}
        assert await first == {P: NETWORK_EXCEPTION}

    walk(steps)
