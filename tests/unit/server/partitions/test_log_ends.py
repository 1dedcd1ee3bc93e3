"""Ends of logs that others lead: asked of their leaders, never guessed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.model.ids import NodeId, Offset
from penstock.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from penstock.server.partitions import log_ends
from penstock.server.partitions.log_ends import FRESH_MS, LogEnds
from penstock.server.peers import Address
from penstock.transport.dial import Unreachable
from tests.patience import at_most
from tests.unit.server.served import on_loop
from tests.walks.control_plane import ManualClock

ME, OTHER, GONE = 1, 2, 3
LEADERS = {("mine", 0): ME, ("theirs", 0): OTHER, ("theirs", 1): OTHER, ("lost", 0): GONE, ("nobody", 0): -1}


class Led:
    def log_end(self, topic: str, partition: int) -> Offset | None:
        return Offset(7) if LEADERS.get((topic, partition)) == ME else None

    def leader_of(self, topic: str, topic_id: bytes, partition: int) -> tuple[int, int]:
        return LEADERS.get((topic, partition), -1), 0

    def address_of(self, node: NodeId) -> Address | None:
        return Address(f"host-{node}", 9092)


class Leaders:
    """The other brokers; `end` is what the one that is up says of its partition 0."""

    def __init__(self, end: int = 40) -> None:
        self.end = end
        self.asked: list[tuple[str, list[tuple[str, int]]]] = []

    async def ask(self, to: Address, message: Any, version: int, *, purpose: str, timeout_ms: float) -> Any:
        assert isinstance(message, ListOffsetsRequest)
        names = [(topic.name, each.partition_index) for topic in message.topics for each in topic.partitions]
        self.asked.append((to.host, names))
        await asyncio.sleep(0)
        if to.host == f"host-{GONE}":
            raise Unreachable(to.host, to.port, "nobody is there")
        told = ListOffsetsResponse.ListOffsetsPartitionResponse
        refused = told(partition_index=1, error_code=6)
        return ListOffsetsResponse(
            topics=[
                ListOffsetsResponse.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        told(partition_index=0, offset=self.end) if not each.partition_index else refused
                        for each in topic.partitions
                    ],
                )
                for topic in message.topics
            ]
        )


@on_loop
async def test_only_leaders_elsewhere_are_asked_and_what_they_do_not_say_is_not_known() -> None:
    leaders = Leaders()
    ends = LogEnds(Led(), leaders, ManualClock())
    await ends.ask(LEADERS)
    assert sorted(leaders.asked) == [("host-2", [("theirs", 0), ("theirs", 1)]), ("host-3", [("lost", 0)])]
    assert {name: ends.end_of(*name) for name in LEADERS} == {
        ("mine", 0): 7, ("theirs", 0): 40, ("theirs", 1): None, ("lost", 0): None, ("nobody", 0): None,
    }  # fmt: skip


@on_loop
async def test_those_who_come_together_share_the_questions() -> None:
    leaders, clock = Leaders(), ManualClock()
    ends = LogEnds(Led(), leaders, clock)
    await asyncio.gather(*(ends.ask([("theirs", 0)]) for _ in range(3)))
    assert len(leaders.asked) == 1
    clock.advance(FRESH_MS)
    leaders.end = 50
    await ends.ask([("theirs", 0)])
    assert ends.end_of("theirs", 0) == 50


@on_loop
async def test_a_leader_that_is_silent_costs_its_own_ends_and_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_ends, "WAIT_MS", 20)

    class Silent(Leaders):
        async def ask(self, to: Address, message: Any, version: int, *, purpose: str, timeout_ms: float) -> Any:
            if to.host == f"host-{GONE}":
                await asyncio.Event().wait()
            return await super().ask(to, message, version, purpose=purpose, timeout_ms=timeout_ms)

    ends = LogEnds(Led(), Silent(), ManualClock())
    async with at_most(30):
        await ends.ask(LEADERS)
    assert (ends.end_of("theirs", 0), ends.end_of("lost", 0)) == (40, None)


@on_loop
async def test_many_partitions_are_asked_for_in_several_requests() -> None:
    class All(Led):
        def leader_of(self, topic: str, topic_id: bytes, partition: int) -> tuple[int, int]:
            return OTHER, 0

    leaders = Leaders()
    await LogEnds(All(), leaders, ManualClock()).ask([("t", index) for index in range(log_ends.AT_ONCE + 1)])
    assert [len(names) for _, names in leaders.asked] == [log_ends.AT_ONCE, 1]
