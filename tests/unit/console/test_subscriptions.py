"""What is begun for a tab ends with it, however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from penstock.console.failures import Declined
from penstock.console.people.vision import ALL, Vision
from penstock.console.stream.hub import TABS_OF_ONE_MAX, Hub
from penstock.console.stream.response import TabStream
from penstock.console.stream.subscriptions import TAILS_OF_ONE_MAX, Subscriptions
from penstock.console.stream.tab import QUEUED_BYTES_MAX

TAB = "a-tab-of-somebody-{:04}"


async def everything(_: str, __: str) -> Vision:
    return ALL


class World:
    """A hub, and the futures of what was begun in it."""

    def __init__(self) -> None:
        self.subscriptions = Subscriptions()
        self.hub = Hub([], everything, lambda _, __: True, self.subscriptions)
        self.begun: list[Future[None]] = []

    def begin(self, _: Callable[[dict[str, Any]], None]) -> Future[None]:
        future: Future[None] = Future()
        self.begun.append(future)
        return future

    def tail(self, tab: str, person: str = "anna") -> str:
        return self.subscriptions.begin(self.hub.tab(tab, person), "tail", person, self.begin)


def code(call: Callable[[], object]) -> str:
    with pytest.raises(Declined) as refused:
        call()
    return refused.value.code


def test_nothing_is_begun_for_a_tab_that_went_meanwhile() -> None:
    async def main() -> None:
        world = World()
        tab = world.hub.open(TAB.format(1), "anna")
        world.hub.forget(tab)
        assert code(lambda: world.subscriptions.begin(tab, "tail", "anna", world.begin)) == "conflict"
        assert world.begun == []

    asyncio.run(main())


def test_what_a_tab_waits_for_ends_when_it_does_not_take_it() -> None:
    async def main() -> None:
        world = World()
        tab = world.hub.open(TAB.format(1), "anna")
        world.tail(TAB.format(1))
        tab.put("tail", "x" * (QUEUED_BYTES_MAX + 1))
        assert tab.ended
        assert [each.cancelled() for each in world.begun] == [True]
        assert code(lambda: world.hub.tab(TAB.format(1), "anna")) == "conflict"

    asyncio.run(main())


def test_a_tab_that_comes_again_leaves_nothing_running() -> None:
    async def main() -> None:
        world = World()
        world.hub.open(TAB.format(1), "anna")
        world.tail(TAB.format(1))
        world.hub.open(TAB.format(1), "anna")
        assert [each.cancelled() for each in world.begun] == [True]
        assert world.tail(TAB.format(1))

    asyncio.run(main())


def test_a_stream_whose_browser_went_before_it_began_leaves_no_tab() -> None:
    async def main() -> None:
        world = World()
        tab = world.hub.open(TAB.format(1), "anna")

        async def gone() -> dict[str, str]:
            return {"type": "http.disconnect"}

        async def refused(_: object) -> None:
            raise OSError("nobody is there")

        with pytest.raises(BaseException) as broken:  # noqa: PT011  # how a server tells it is its own affair
            await TabStream(world.hub, tab, b"{}")({"type": "http", "asgi": {}}, gone, refused)
        assert broken
        assert tab.ended
        assert code(lambda: world.hub.tab(TAB.format(1), "anna")) == "conflict"

    asyncio.run(main())


def test_one_person_has_so_many_tabs_and_tails_and_others_have_theirs() -> None:
    async def main() -> None:
        world = World()
        for number in range(TABS_OF_ONE_MAX):
            world.hub.open(TAB.format(number), "anna", "anna")
        assert code(lambda: world.hub.open(TAB.format(TABS_OF_ONE_MAX), "anna", "anna")) == "too_many"
        for number in range(TAILS_OF_ONE_MAX):
            world.tail(TAB.format(number))
        assert code(lambda: world.tail(TAB.format(TAILS_OF_ONE_MAX))) == "too_many"
        world.hub.open("the-tab-of-somebody-else", "ben", "ben")
        assert world.tail("the-tab-of-somebody-else", "ben")

    asyncio.run(main())
