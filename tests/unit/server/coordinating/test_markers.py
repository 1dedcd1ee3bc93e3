"""Markers on their way: who gets them, what an answer does, what is lost with a shard.

Brokers are toys behind a toy of a network; each holds its answers until the test lets it speak.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from penstock.coordinators.decision import Decision, Moment
from penstock.coordinators.transactions.effects import SendMarkers
from penstock.metadata.difference import delta_between
from penstock.metadata.image import ClusterImage
from penstock.model.errors import (
    INVALID_PRODUCER_EPOCH,
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    TRANSACTION_COORDINATOR_FENCED,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
    UNSUPPORTED_VERSION,
    ErrorCode,
)
from penstock.model.ids import Epoch, Millis, NodeId, Offset, Uuid
from penstock.protocol.disk.metadata_topics import (
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from penstock.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from penstock.server.coordinating.marker_queues import SLOW_MS
from penstock.server.coordinating.markers import MarkerSender
from penstock.server.peers import Address
from penstock.transport.dial import Severed
from tests.patience import until

ME, OTHER, THIRD = NodeId(1), NodeId(2), NodeId(3)
TOPIC, GONE = "orders", "gone"
IDS = {TOPIC: Uuid(b"o" * 16), GONE: Uuid(b"g" * 16)}
SHARD, EPOCH = 5, Epoch(7)
Place = tuple[str, int]


class Sent:
    """One request at a toy, which waits for its answer."""

    def __init__(self, node: NodeId, request: WriteTxnMarkersRequest, purpose: str) -> None:
        self.node, self.request, self.purpose = node, request, purpose
        self.answer: asyncio.Future[WriteTxnMarkersResponse] = asyncio.get_running_loop().create_future()

    @property
    def places(self) -> list[tuple[int, Place]]:
        return [
            (marker.producer_id, (topic.name, index))
            for marker in self.request.markers
            for topic in marker.topics
            for index in topic.partition_indexes
        ]

    def say(self, error: ErrorCode = NONE, **errors: ErrorCode) -> None:
        """The same for every partition, or for p0, p1, ... another."""
        made = WriteTxnMarkersResponse
        self.answer.set_result(
            made(
                markers=[
                    made.WritableTxnMarkerResult(
                        producer_id=marker.producer_id,
                        topics=[
                            made.WritableTxnMarkerTopicResult(
                                name=topic.name,
                                partitions=[
                                    made.WritableTxnMarkerPartitionResult(
                                        partition_index=index, error_code=errors.get(f"p{index}", error).code
                                    )
                                    for index in topic.partition_indexes
                                ],
                            )
                            for topic in marker.topics
                        ],
                    )
                    for marker in self.request.markers
                ]
            )
        )

    def hang_up(self) -> None:
        self.answer.set_exception(Severed("broker", self.node, "the connection is gone"))


class Shard:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.marked: list[tuple[str, tuple[Place, ...]]] = []
        self.refused: list[tuple[str, ErrorCode]] = []

    def markers_written(self, effect: SendMarkers, now: Moment) -> Decision:
        self.written.append(effect.transactional_id)
        return Decision()

    def partitions_marked(self, effect: SendMarkers, partitions: tuple[Place, ...], now: Moment) -> Decision:
        self.marked.append((effect.transactional_id, partitions))
        return Decision()

    def markers_refused(self, effect: SendMarkers, error: ErrorCode, now: Moment) -> Decision:
        self.refused.append((effect.transactional_id, error))
        return Decision()


class World:
    """A sender, and whom it speaks to."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self.offset = 0
        self.shard = Shard()
        self.writable = True
        self.unreachable: set[NodeId] = set()
        self.sent: list[Sent] = []
        self.sender = MarkerSender(
            ME,
            self,
            image=lambda: self.image,
            address_of=self._address_of,
            write_here=self._write_here,
            tell=self._tell,
            timeout_ms=lambda: 30_000,
        )

    def _address_of(self, node: NodeId) -> Address | None:
        return None if node in self.unreachable else Address("broker", node)

    async def ask(self, to: Address, message: Any, version: int, *, purpose: str, timeout_ms: float) -> Any:
        assert version == 2
        return await self._put(Sent(NodeId(to.port), message, purpose))

    def _write_here(self, request: WriteTxnMarkersRequest, _timeout_ms: int) -> Any:
        return self._put(Sent(ME, request, "here"))

    def _put(self, sent: Sent) -> asyncio.Future[WriteTxnMarkersResponse]:
        self.sent.append(sent)
        return sent.answer

    def _tell(self, index: int, epoch: Epoch, decide: Callable[[Any, Moment], Decision]) -> bool:
        assert (index, epoch) == (SHARD, EPOCH)
        if self.writable:
            decide(self.shard, Moment(Millis(0), 0))
        return self.writable

    def change(self, *records: Any) -> None:
        """What the cluster is like from now on."""
        before = self.image.copy()
        for record in records:
            self.image.apply(record, Offset(self.offset), Epoch(1))
            self.offset += 1
        self.sender.follow(self.image, delta_between(before, self.image))

    def topic(self, name: str, *leaders: int) -> None:
        self.change(
            TopicRecord(name=name, topic_id=IDS[name]),
            *(
                PartitionRecord(
                    partition_id=index, topic_id=IDS[name], replicas=[1, 2, 3], isr=[1, 2, 3], leader=leader
                )
                for index, leader in enumerate(leaders)
            ),
        )

    def led_by(self, partition: int, leader: int) -> None:
        self.change(PartitionChangeRecord(partition_id=partition, topic_id=IDS[TOPIC], leader=leader))

    def end(self, name: str, producer_id: int, *partitions: int, topic: str = TOPIC) -> None:
        places = tuple((topic, index) for index in partitions)
        self.sender.carry_out(SHARD, EPOCH, [SendMarkers(name, producer_id, 4, EPOCH, True, 2, places)])

    async def turns(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


def walk(steps: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        world = World()
        world.topic(TOPIC, ME, OTHER, OTHER, THIRD)
        try:
            await steps(world)
        finally:
            world.sender.close()

    asyncio.run(main())


def test_every_leader_gets_its_markers_in_one_request_and_the_shard_hears_when_all_are_written() -> None:
    async def steps(world: World) -> None:
        world.end("a", 10, 0, 1, 2, 3)
        world.end("b", 11, 1)
        assert world.sent == [], "whoever lets out an effect is not asked in the same breath"
        await world.turns()
        by_node = {sent.node: sent for sent in world.sent}
        assert by_node[ME].places == [(10, (TOPIC, 0))]
        assert by_node[OTHER].places == [(10, (TOPIC, 1)), (10, (TOPIC, 2)), (11, (TOPIC, 1))]
        assert by_node[THIRD].places == [(10, (TOPIC, 3))]
        marker = by_node[OTHER].request.markers[0]
        assert (marker.producer_epoch, marker.coordinator_epoch, marker.transaction_version) == (4, EPOCH, 2)
        assert marker.transaction_result is True
        by_node[OTHER].say()
        by_node[ME].say()
        await world.turns()
        assert world.shard.written == ["b"]
        assert world.sender.unmarked == 1
        by_node[THIRD].say()
        await world.turns()
        assert world.shard.written == ["b", "a"]
        assert world.shard.marked == [("a", ((TOPIC, 1), (TOPIC, 2))), ("a", ((TOPIC, 0),))]
        assert world.sender.unmarked == 0

    walk(steps)


def test_one_request_at_a_time_goes_to_a_broker_and_what_comes_meanwhile_is_the_next() -> None:
    async def steps(world: World) -> None:
        world.end("a", 10, 1)
        await world.turns()
        world.end("b", 11, 1)
        world.end("c", 12, 2)
        await world.turns()
        (first,) = world.sent
        first.say()
        await world.turns()
        _, second = world.sent
        assert second.places == [(11, (TOPIC, 1)), (12, (TOPIC, 2))]
        assert second.purpose == first.purpose

    walk(steps)


def test_a_request_that_takes_long_holds_nobody_but_those_of_its_partitions() -> None:
    async def steps(world: World) -> None:
        world.end("slow", 10, 1)
        await world.turns()
        world.end("same", 11, 1)
        world.end("other", 12, 2)
        await until(lambda: len(world.sent) > 1)
        slow, aside = world.sent
        assert aside.places == [(12, (TOPIC, 2))]
        assert aside.purpose != slow.purpose, "it goes over a connection of its own"
        aside.say()
        await world.turns()
        assert world.shard.written == ["other"]
        slow.say()
        await world.turns()
        world.sent[2].say()
        await world.turns()
        assert world.shard.written == ["other", "slow", "same"]

    assert SLOW_MS < 1_000
    walk(steps)


@pytest.mark.parametrize(
    "error",
    [
        UNKNOWN_TOPIC_OR_PARTITION,
        NOT_LEADER_OR_FOLLOWER,
        NOT_ENOUGH_REPLICAS,
        NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        REQUEST_TIMED_OUT,
        KAFKA_STORAGE_ERROR,
        UNKNOWN_SERVER_ERROR,
    ],
)
def test_a_marker_that_cannot_be_written_now_is_tried_again_at_the_leader_of_then(error: ErrorCode) -> None:
    async def steps(world: World) -> None:
        world.end("a", 10, 1, 2)
        await world.turns()
        world.sent[0].say(p2=error)
        await until(lambda: len(world.sent) > 1)
        assert (world.sent[1].node, world.sent[1].places) == (OTHER, [(10, (TOPIC, 2))])
        world.sent[1].say(error)
        await world.turns()
        world.led_by(2, THIRD)
        await world.turns()
        assert (world.sent[2].node, world.sent[2].places) == (THIRD, [(10, (TOPIC, 2))])
        world.sent[2].say()
        await world.turns()
        assert world.shard.written == ["a"]

    walk(steps)


def test_a_broken_connection_is_no_answer() -> None:
    async def steps(world: World) -> None:
        world.end("a", 10, 1)
        await world.turns()
        world.sent[0].hang_up()
        await until(lambda: len(world.sent) > 1)
        world.sent[1].say()
        await world.turns()
        assert world.shard.written == ["a"]

    walk(steps)


@pytest.mark.parametrize("error", [UNSUPPORTED_FOR_MESSAGE_FORMAT, UNSUPPORTED_VERSION])
def test_a_log_that_knows_no_transactions_needs_no_marker(error: ErrorCode) -> None:
    async def steps(world: World) -> None:
        world.end("a", 10, 1)
        await world.turns()
        world.sent[0].say(error)
        await world.turns()
        assert world.shard.written == ["a"]

    walk(steps)


@pytest.mark.parametrize("error", [INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED])
def test_a_leader_that_knows_better_stops_all_markers_of_the_transaction(error: ErrorCode) -> None:
    async def steps(world: World) -> None:
        world.led_by(3, -1)
        world.end("a", 10, 1, 3)
        world.end("b", 11, 1)
        await world.turns()
        world.sent[0].say()
        await world.turns()
        world.end("a2", 10, 1, 3)
        await world.turns()
        world.sent[1].say(error)
        await world.turns()
        world.led_by(3, THIRD)
        await world.turns()
        assert world.shard.refused == [("a2", error)]
        assert world.shard.written == ["b"]
        assert world.sent[2].places == [(10, (TOPIC, 3))], "of the first transaction, which nobody has stopped"
        assert len(world.sent) == 3

    walk(steps)


def test_a_partition_without_a_leader_is_waited_for_and_one_that_is_gone_is_not() -> None:
    async def steps(world: World) -> None:
        world.topic(GONE, OTHER)
        world.led_by(1, -1)
        world.end("waits", 10, 1)
        world.end("gone", 11, 0, topic=GONE)
        world.end("never", 12, 9)
        await world.turns()
        assert world.shard.written == ["never"], "there is no partition 9"
        assert world.sender.without_destination == 1
        world.change(RemoveTopicRecord(topic_id=IDS[GONE]))
        await world.turns()
        assert world.shard.written == ["never", "gone"]
        world.led_by(1, THIRD)
        await world.turns()
        (sent,) = (sent for sent in world.sent if sent.node == THIRD)
        sent.say()
        await world.turns()
        assert world.shard.written == ["never", "gone", "waits"]

    walk(steps)


def test_a_leader_without_an_address_is_waited_for() -> None:
    async def steps(world: World) -> None:
        world.unreachable.add(OTHER)
        world.end("a", 10, 1)
        await world.turns()
        assert (world.sent, world.sender.without_destination) == ([], 1)
        world.unreachable.clear()
        world.led_by(3, OTHER)
        await world.turns()
        assert world.sent[0].places == [(10, (TOPIC, 1))]

    walk(steps)


def test_markers_under_way_to_a_leader_that_is_replaced_go_to_the_next_at_once() -> None:
    async def steps(world: World) -> None:
        world.end("a", 10, 1)
        await world.turns()
        world.led_by(1, THIRD)
        await world.turns()
        first, second = world.sent
        assert second.node == THIRD
        first.say(NOT_LEADER_OR_FOLLOWER)
        await world.turns()
        assert len(world.sent) == 2, "the second is under way"
        second.say()
        await world.turns()
        assert world.shard.written == ["a"]

    walk(steps)


def test_a_late_success_of_the_former_leader_counts() -> None:
    async def steps(world: World) -> None:
        world.end("a", 10, 1)
        await world.turns()
        world.led_by(1, THIRD)
        await world.turns()
        first, second = world.sent
        first.say()
        await world.turns()
        assert world.shard.written == ["a"]
        second.say(INVALID_PRODUCER_EPOCH)
        await world.turns()
        assert (world.shard.written, world.shard.refused) == (["a"], [])

    walk(steps)


def test_what_the_log_cannot_take_is_told_again() -> None:
    async def steps(world: World) -> None:
        world.writable = False
        world.end("a", 10, 1)
        await world.turns()
        world.sent[0].say()
        await world.turns()
        assert (world.shard.written, world.sender.untold) == ([], 1)
        world.writable = True
        await until(lambda: bool(world.shard.written))
        assert (world.shard.written, world.sender.untold) == (["a"], 0)

    walk(steps)


def test_markers_go_with_their_shard() -> None:
    async def steps(world: World) -> None:
        world.end("a", 10, 1)
        await world.turns()
        world.end("b", 11, 1)
        world.sender.give_up(SHARD)
        assert world.sender.unmarked == 0
        world.sent[0].say()
        await world.turns()
        assert len(world.sent) == 1
        assert (world.shard.written, world.shard.marked) == ([], [])
        world.end("a", 10, 1)
        await world.turns()
        assert len(world.sent) == 2, "the next shard of the partition sends it again"

    walk(steps)


def test_two_transactions_of_one_producer_are_never_in_one_request() -> None:
    """Answers are told apart by the producer alone."""

    async def steps(world: World) -> None:
        world.end("a", 10, 1)
        world.end("a again", 10, 2)
        await world.turns()
        (first,) = world.sent
        first.say(NOT_LEADER_OR_FOLLOWER)
        await world.turns()
        assert world.sent[1].places == [(10, (TOPIC, 2))]

    walk(steps)


def test_a_transaction_without_partitions_is_over_at_once() -> None:
    async def steps(world: World) -> None:
        world.end("a", 10)
        assert world.shard.written == []
        await world.turns()
        assert world.shard.written == ["a"]

    walk(steps)
