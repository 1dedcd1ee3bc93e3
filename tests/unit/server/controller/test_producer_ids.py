"""Producer ids from blocks: for those who wait for the next block, and for those who cannot."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.model.errors import NOT_CONTROLLER, REQUEST_TIMED_OUT, Refused
from penstock.model.ids import NodeId
from penstock.protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse
from penstock.server.controller.producer_ids import ProducerIds

SIZE = 10


class Controller:
    """Allots blocks of ten, when it is there."""

    def __init__(self) -> None:
        self.there = True
        self.asked = 0

    async def ask(self, _request: Any, _version: int) -> Any:
        self.asked += 1
        await asyncio.sleep(0)
        if not self.there:
            raise Refused(REQUEST_TIMED_OUT, "nobody leads the quorum")
        return AllocateProducerIdsResponse(producer_id_start=self.asked * SIZE, producer_id_len=SIZE)

    def ids(self) -> ProducerIds:
        return ProducerIds(NodeId(1), lambda: 7, self.ask)


def test_whoever_cannot_wait_gets_none_and_the_next_one_has_it() -> None:
    async def steps() -> None:
        controller = Controller()
        ids = controller.ids()
        assert ids.take_now() is None
        assert ids.take_now() is None, "one fetch is enough"
        await ids.at_hand()
        assert [ids.take_now() for _ in range(3)] == [10, 11, 12]
        assert controller.asked == 1

    asyncio.run(steps())


def test_no_id_is_given_twice_over_the_edge_of_a_block() -> None:
    async def steps() -> None:
        ids = Controller().ids()
        taken: list[int | None] = []
        for number in range(4 * SIZE):
            await ids.at_hand()
            taken.append(ids.take_now() if number % 2 else await ids.next_id())
        assert taken == list(range(SIZE, 5 * SIZE))

    asyncio.run(steps())


def test_a_block_that_was_fetched_early_is_used_without_waiting() -> None:
    async def steps() -> None:
        ids = Controller().ids()
        await ids.at_hand()
        taken = [ids.take_now() for _ in range(SIZE)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert [*taken, ids.take_now()] == list(range(SIZE, 2 * SIZE + 1))

    asyncio.run(steps())


def test_without_a_controller_there_are_none_until_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    async def steps() -> None:
        controller = Controller()
        controller.there = False
        ids = controller.ids()
        assert ids.take_now() is None
        with pytest.raises(Refused):
            await ids.at_hand()
        for _ in range(5):
            await asyncio.sleep(0)
        controller.there = True
        assert ids.take_now() is None
        await ids.at_hand()
        assert ids.take_now() is not None

    asyncio.run(steps())
    assert NOT_CONTROLLER.name not in caplog.text
    assert "no producer ids" in caplog.text
