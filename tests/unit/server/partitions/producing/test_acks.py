"""Produces that wait: answered in the loop's next turn, all together, and at their deadline at the latest."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock.model.errors import NONE, NOT_ENOUGH_REPLICAS_AFTER_APPEND, REQUEST_TIMED_OUT, ErrorCode
from penstock.model.ids import NodeId, Offset
from penstock.replication.partition import Partition as State
from penstock.server.partitions.producing.acks import AcksLine, Awaited
from tests.patience import within


class Partition:
    """As much of a hosted partition as a waiting produce knows."""

    syncs_before_ack = False

    def __init__(self) -> None:
        self.log = object()
        self.state = State(NodeId(1), leader=NodeId(1), isr=frozenset({NodeId(1)}), replicas=(NodeId(1),))
        self.waiting: list[Any] = []

    def when_committed(self, _end: int, waiter: Any) -> None:
        self.waiting.append(waiter)

    def commit(self, high_watermark: int) -> None:
        self.state.high_watermark = Offset(high_watermark)
        for waiter in self.waiting:
            waiter()


def as_they_are(errors: list[ErrorCode]) -> Any:
    return errors


def wait(line: AcksLine, *partitions: Partition, timeout_ms: int = 60_000, reply: bytes | None = None) -> Awaited:
    hosted: list[Any] = [(partition, Offset(1)) for partition in partitions]
    return line.wait(hosted, -1, timeout_ms, as_they_are, reply)


def taken(one: Awaited) -> asyncio.Future[list[ErrorCode]]:
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    one.when_ready = lambda: done.set_result(one.outcome())
    return done


def test_who_is_ready_is_answered_in_the_next_turn_and_not_before() -> None:
    async def steps() -> None:
        line, first, second = AcksLine(), Partition(), Partition()
        one, both = taken(wait(line, first)), taken(wait(line, first, second))
        first.commit(1)
        assert not one.done()
        await asyncio.sleep(0)
        assert one.result() == [NONE]
        assert not both.done()
        second.commit(1)
        assert await both == [NONE, NONE]

    asyncio.run(steps())


def test_time_is_up_for_each_at_its_own_deadline() -> None:
    async def steps() -> None:
        line, slow, done = AcksLine(), Partition(), Partition()
        patient = taken(wait(line, slow))
        hasty = taken(wait(line, done, slow, timeout_ms=1))
        done.commit(1)
        async with asyncio.timeout(within(30)):
            assert await hasty == [NONE, REQUEST_TIMED_OUT]
        assert not patient.done()
        slow.commit(1)
        assert await patient == [NONE]

    asyncio.run(steps())


def test_an_answer_that_fails_holds_up_nobody() -> None:
    async def steps() -> None:
        told: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context["exception"]))
        line, partition = AcksLine(), Partition()
        broken = wait(line, partition)
        other = taken(wait(line, partition))

        def fail() -> None:
            raise ValueError("no such connection")

        broken.when_ready = fail
        partition.commit(1)
        assert await other == [NONE]
        assert [str(each) for each in told] == ["no such connection"]

    asyncio.run(steps())


def test_a_reply_that_comes_before_anybody_waits_is_missed_and_harms_nobody() -> None:
    async def steps() -> None:
        told: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context["exception"]))
        line, partition = AcksLine(), Partition()
        early, other = wait(line, partition), taken(wait(line, partition))
        partition.commit(1)
        assert await other == [NONE]
        assert early.missed
        assert early.outcome() == [NONE]
        assert told == []

    asyncio.run(steps())


def test_a_reply_that_is_known_already_is_given_only_if_all_went_well() -> None:
    async def steps() -> None:
        line, well, late, few = AcksLine(), Partition(), Partition(), Partition()
        few.state.isr = frozenset()
        known = [
            wait(line, each, timeout_ms=timeout_ms, reply=b"well")
            for each, timeout_ms in ((well, 60_000), (late, 0), (few, 60_000))
        ]
        answers = [taken(one) for one in known]
        well.commit(1)
        few.commit(1)
        async with asyncio.timeout(within(10)):
            said: list[Any] = [await each for each in answers]
        assert said == [b"well", [REQUEST_TIMED_OUT], [NOT_ENOUGH_REPLICAS_AFTER_APPEND]]

    asyncio.run(steps())
