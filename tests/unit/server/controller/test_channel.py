"""Whoever asks the active controller finds it, wherever it has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from penstock.model.errors import (
    INVALID_REQUEST,
    NONE,
    NOT_CONTROLLER,
    REQUEST_TIMED_OUT,
    Refused,
)
from penstock.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from penstock.protocol.messages.create_topics import CreateTopicsResponse
from penstock.server.controller.channel import ControllerChannel, says_not_controller
from penstock.server.peers import Address
from penstock.transport.dial import Severed, Unsupported

ONE, TWO = Address("one", 1), Address("two", 2)
ASKED = BrokerHeartbeatRequest(broker_id=7)
ANSWER = BrokerHeartbeatResponse(is_caught_up=True)


class LoopClock:
    def now_ms(self) -> Any:
        return int(self.monotonic_ms())

    def monotonic_ms(self) -> float:
        return asyncio.get_running_loop().time() * 1_000


class Quorum:
    def __init__(self, leader: Address | None = None, *, leading: bool = False) -> None:
        self.leader_address, self.leading = leader, leading
        self.listeners: list[Callable[[], None]] = []

    def when_leader_changes(self, listener: Callable[[], None]) -> None:
        self.listeners.append(listener)

    def change(self, leader: Address | None, *, leading: bool = False) -> None:
        self.leader_address, self.leading = leader, leading
        for listener in self.listeners:
            listener()


class Others:
    """Nodes by address; each is a function of the request."""

    def __init__(self, **nodes: Callable[[Any], Awaitable[Any]]) -> None:
        self.nodes = nodes
        self.asked: list[str] = []

    async def ask(self, to: Address, message: Any, version: int, *, purpose: str, timeout_ms: float) -> Any:
        self.asked.append(to.host)
        async with asyncio.timeout(timeout_ms / 1_000):
            return await self.nodes[to.host](message)


class Own:
    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)

    def submit_own(self, request: Any, api_version: int) -> Awaitable[Any]:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome

        async def reply() -> Any:
            return outcome

        return reply()


async def answers(_request: Any) -> Any:
    return ANSWER


async def is_paused(_request: Any) -> Any:
    await asyncio.Event().wait()


async def is_dead(_request: Any) -> Any:
    raise Severed("one", 1, "gone")


async def does_not_lead(_request: Any) -> Any:
    return BrokerHeartbeatResponse(error_code=NOT_CONTROLLER.code)


def channel(quorum: Quorum, peers: Others, own: Own | None = None, timeout_ms: float = 5_000) -> ControllerChannel:
    return ControllerChannel(quorum, own, peers, LoopClock(), request_timeout_ms=timeout_ms)


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


def test_the_controller_of_this_node_is_asked_by_a_call() -> None:
    async def main() -> None:
        others = Others()
        assert await channel(Quorum(leading=True), others, Own(ANSWER)).ask(ASKED, 2) is ANSWER
        assert others.asked == []

    run(main)


def test_the_controller_elsewhere_is_asked_over_a_link() -> None:
    async def main() -> None:
        assert await channel(Quorum(TWO), Others(two=answers)).ask(ASKED, 2) is ANSWER

    run(main)


def test_a_dead_leader_is_replaced_by_the_next_one() -> None:
    async def main() -> None:
        quorum, others = Quorum(ONE), Others(one=is_dead, two=answers)
        asking = asyncio.ensure_future(channel(quorum, others).ask(ASKED, 2))
        while len(others.asked) < 2:
            await asyncio.sleep(0.001)
        quorum.change(None)
        quorum.change(TWO)
        assert await asking is ANSWER
        assert set(others.asked[:-1]) == {"one"}

    run(main)


def test_a_paused_leader_is_left_as_soon_as_another_is_known() -> None:
    async def main() -> None:
        quorum, others = Quorum(ONE), Others(one=is_paused, two=answers)
        asking = asyncio.ensure_future(channel(quorum, others, timeout_ms=60_000).ask(ASKED, 2))
        while not others.asked:
            await asyncio.sleep(0)
        quorum.change(None)  # nobody is known for a while: the one that was asked may still be it
        await asyncio.sleep(0)
        assert not asking.done()
        quorum.change(TWO)
        assert await asking is ANSWER
        assert others.asked == ["one", "two"]

    run(main)


def test_who_does_not_lead_says_so_and_another_is_found() -> None:
    async def main() -> None:
        quorum, others = Quorum(ONE), Others(one=does_not_lead, two=answers)
        asking = asyncio.ensure_future(channel(quorum, others).ask(ASKED, 2))
        while not others.asked:
            await asyncio.sleep(0)
        quorum.change(TWO)
        assert await asking is ANSWER

    run(main)


def test_the_lead_may_come_to_this_node_and_go_again() -> None:
    async def main() -> None:
        own = Own(Refused(NOT_CONTROLLER, "not yet"), ANSWER)
        assert await channel(Quorum(leading=True), Others(), own).ask(ASKED, 2) is ANSWER

    run(main)


def test_nobody_answers_in_time() -> None:
    async def main() -> None:
        with pytest.raises(Refused, match="no controller is known") as told:
            await channel(Quorum(), Others()).ask(ASKED, 2, timeout_ms=50)
        assert told.value.error is REQUEST_TIMED_OUT

    run(main)


def test_a_refusal_is_the_answer() -> None:
    async def main() -> None:
        with pytest.raises(Refused) as told:
            await channel(Quorum(leading=True), Others(), Own(Refused(INVALID_REQUEST))).ask(ASKED, 2)
        assert told.value.error is INVALID_REQUEST

    run(main)


def test_a_controller_of_another_release_is_not_asked_for_ever() -> None:
    async def is_old(_request: Any) -> Any:
        raise Unsupported("one", 1, "no such API")

    async def main() -> None:
        others = Others(one=is_old)
        with pytest.raises(Refused, match="does not know this request"):
            await channel(Quorum(ONE), others).ask(ASKED, 2)
        assert others.asked == ["one"]

    run(main)


def test_a_closed_channel_lets_go_of_those_who_wait() -> None:
    async def main() -> None:
        for quorum, others in ((Quorum(), Others()), (Quorum(ONE), Others(one=is_paused))):
            closing = channel(quorum, others, timeout_ms=60_000)
            asking = asyncio.ensure_future(closing.ask(ASKED, 2))
            await asyncio.sleep(0.01)
            closing.close()
            with pytest.raises(Refused, match="stopping"):
                await asking

    run(main)


@pytest.mark.parametrize(("code", "says_so"), [(NONE.code, False), (NOT_CONTROLLER.code, True)])
def test_a_reply_may_say_it_for_a_single_topic(code: int, says_so: bool) -> None:
    result = CreateTopicsResponse.CreatableTopicResult(name="t", error_code=code)
    assert says_not_controller(CreateTopicsResponse(topics=[result])) == says_so
