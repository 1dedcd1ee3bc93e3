"""A broker's life seen from its own side, with a controller that answers as the test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from penstock.metadata.entities import BrokerImage
from penstock.model.errors import (
    DUPLICATE_BROKER_REGISTRATION,
    INVALID_REGISTRATION,
    REQUEST_TIMED_OUT,
    STALE_BROKER_EPOCH,
    ErrorCode,
    Refused,
)
from penstock.model.ids import NodeId, Uuid
from penstock.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from penstock.protocol.messages.broker_registration import BrokerRegistrationResponse
from penstock.server.controller.lifecycle import BrokerLifecycle, NotRegistered
from penstock.server.quorum.metadata_driver import MetadataDriver
from tests.patience import within

ME, OTHER = NodeId(1), NodeId(2)
INCARNATION, DIRECTORY = Uuid(b"i" * 16), Uuid(b"d" * 16)

Answer = BrokerRegistrationResponse | BrokerHeartbeatResponse | ErrorCode | Exception


class Controller:
    """Gives its answers one after the other; the last one for ever."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    async def ask(self, request: Any, _version: int) -> Any:
        self.asked.append(request)
        await asyncio.sleep(0)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, ErrorCode):
            raise Refused(answer, "so the test wants it")
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def beats(self) -> list[BrokerHeartbeatRequest]:
        return [each for each in self.asked if isinstance(each, BrokerHeartbeatRequest)]


REGISTERED = BrokerRegistrationResponse(broker_epoch=7)
TAKEN = BrokerRegistrationResponse(error_code=DUPLICATE_BROKER_REGISTRATION.code)
FENCED = BrokerHeartbeatResponse(is_fenced=True)
UNFENCED = BrokerHeartbeatResponse(is_fenced=False)
STALE = BrokerHeartbeatResponse(error_code=STALE_BROKER_EPOCH.code)
MAY_GO = BrokerHeartbeatResponse(is_fenced=True, should_shut_down=True)


def life(controller: Controller, *, brokers: tuple[NodeId, ...] = (), **said: Any) -> BrokerLifecycle:
    metadata = MetadataDriver(ME, "cluster")
    for each in brokers:
        metadata.image.brokers[each] = BrokerImage(each, 0, INCARNATION, (), fenced=False)
    said.setdefault("heartbeat_interval_ms", 1)
    return BrokerLifecycle(ME, "cluster", INCARNATION, metadata, controller.ask, **said)


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(within(10)):
            await main()

    asyncio.run(bounded())


def test_an_id_that_seems_taken_is_asked_for_again() -> None:
    async def main() -> None:
        controller = Controller(TAKEN, REQUEST_TIMED_OUT, REGISTERED)
        assert await life(controller).register([], "host", [DIRECTORY], previous_epoch=5) == 7
        assert len(controller.asked) == 3
        assert {each.incarnation_id for each in controller.asked} == {INCARNATION}
        assert {each.previous_broker_epoch for each in controller.asked} == {5}

    run(main)


def test_an_id_that_stays_taken_is_an_error_that_says_what_to_do() -> None:
    async def main() -> None:
        with pytest.raises(NotRegistered, match="another process runs as broker 1; stop it"):
            await life(Controller(TAKEN), registration_timeout_ms=0).register([], "host", [DIRECTORY])

    run(main)


def test_a_broker_that_is_not_wanted_is_told_at_once() -> None:
    async def main() -> None:
        controller = Controller(BrokerRegistrationResponse(error_code=INVALID_REGISTRATION.code))
        with pytest.raises(NotRegistered, match="INVALID_REGISTRATION"):
            await life(controller).register([], "host", [DIRECTORY])
        assert len(controller.asked) == 1

    run(main)


def test_it_serves_when_it_is_unfenced_and_goes_on_when_it_was_fenced_for_silence() -> None:
    async def main() -> None:
        controller = Controller(FENCED, REQUEST_TIMED_OUT, UNFENCED, UNFENCED, FENCED, FENCED, UNFENCED)
        lifecycle = life(controller)
        await lifecycle.serve()
        assert not lifecycle.fenced
        while not lifecycle.fenced:
            await asyncio.sleep(0)
        while lifecycle.fenced:
            await asyncio.sleep(0)
        assert not any(each.want_fence for each in controller.beats)
        await lifecycle.fall_silent()

    run(main)


def test_a_broker_in_a_hurry_does_not_wait_for_its_next_heartbeat() -> None:
    async def main() -> None:
        controller = Controller(*[UNFENCED] * 9)
        lifecycle = life(controller, heartbeat_interval_ms=3_600_000)
        await lifecycle.serve()
        for _ in range(3):
            before = len(controller.beats)
            while len(controller.beats) == before:
                lifecycle.hurry()
                await asyncio.sleep(0)
        await lifecycle.fall_silent()

    run(main)


def test_a_controller_that_does_not_answer_is_asked_on() -> None:
    async def main() -> None:
        controller = Controller(UNFENCED, REQUEST_TIMED_OUT, ValueError("a bug"), UNFENCED)
        lifecycle = life(controller)
        await lifecycle.serve()
        while len(controller.beats) < 5:
            await asyncio.sleep(0)
        assert not lifecycle.fenced
        await lifecycle.fall_silent()

    run(main)


@pytest.mark.parametrize(
    ("brokers", "why"),
    [((), "an operator has removed broker 1"), ((ME,), "another process has registered as broker 1")],
)
def test_a_stale_epoch_is_the_end(brokers: tuple[NodeId, ...], why: str) -> None:
    async def main() -> None:
        told: list[str] = []
        controller = Controller(UNFENCED, STALE)
        lifecycle = life(controller, brokers=brokers, on_stale=told.append)
        await lifecycle.serve()
        while not told:
            await asyncio.sleep(0)
        assert told == [why]
        count = len(controller.beats)
        await asyncio.sleep(0.01)
        assert len(controller.beats) == count

    run(main)


def test_it_asks_for_leave_until_it_is_given() -> None:
    async def main() -> None:
        controller = Controller(REGISTERED, UNFENCED, UNFENCED, REQUEST_TIMED_OUT, MAY_GO)
        lifecycle = life(controller, brokers=(ME, OTHER))
        await lifecycle.register([], "host", [DIRECTORY])
        lifecycle.broker_epoch = 7
        assert await lifecycle.shut_down()
        assert all(each.want_shut_down for each in controller.beats)

    run(main)


def test_leave_is_not_waited_for_without_end() -> None:
    async def main() -> None:
        lifecycle = life(Controller(REGISTERED, UNFENCED), brokers=(ME, OTHER))
        await lifecycle.register([], "host", [DIRECTORY])
        assert not await lifecycle.shut_down(timeout_ms=50)

    run(main)


def test_the_last_of_a_cluster_does_not_wait_for_the_others() -> None:
    async def main() -> None:
        lifecycle = life(Controller(REGISTERED, REQUEST_TIMED_OUT), brokers=(ME,))
        await lifecycle.register([], "host", [DIRECTORY])
        assert not await lifecycle.shut_down(timeout_ms=60_000), "and it is back long before that"

    run(main)


def test_what_is_known_of_a_lost_directory_is_what_was_answered() -> None:
    async def main() -> None:
        lifecycle = life(Controller(REQUEST_TIMED_OUT, UNFENCED))
        with pytest.raises(Refused):
            await lifecycle.directory_failed(DIRECTORY)
        assert not lifecycle.has_reported(DIRECTORY)
        await lifecycle._beat()
        assert lifecycle.has_reported(DIRECTORY)

    run(main)
