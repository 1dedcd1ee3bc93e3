"""Inputs that fail, end, or do not want to end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from penstock.agent.inputs.input import InputStatus
from penstock.agent.settings.model import InputSettings
from penstock.agent.supervision import SupervisedInput
from penstock.agent.telling import Teller
from penstock.client.retry import Backoff
from tests.patience import within


class Source:
    """An input that does what it is told."""

    def __init__(self, story: list[str], life: Callable[[asyncio.Event], object]) -> None:
        self._story, self._life = story, life
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        self._story.append("run")
        result = self._life(self._stopping)
        if asyncio.iscoroutine(result):
            await result

    async def stop(self) -> None:
        self._story.append("stop")
        self._stopping.set()

    async def close(self) -> None:
        self._story.append("close")

    def status(self, *, details: bool = False) -> InputStatus:
        return InputStatus("source", words="well")


def supervised(
    story: list[str], life: Callable[[asyncio.Event], object], finished: Callable[[], None] = lambda: None
) -> SupervisedInput:
    settings = InputSettings("one", "source", None, None, (), "")  # type: ignore[arg-type]  # nobody routes here

    async def flushed() -> None:
        story.append("flushed")

    return SupervisedInput(
        settings,
        lambda: Source(story, life),
        flushed=flushed,
        teller=Teller(),
        finished=finished,
        backoff=Backoff(1, 1),
    )


def run(work: Callable[[], object]) -> None:
    async def main() -> None:
        async with asyncio.timeout(within(20)):
            await work()  # type: ignore[misc]

    asyncio.run(main())


def test_what_failed_is_ended_in_order_before_it_begins_again() -> None:
    story: list[str] = []
    lives = iter([OSError("gone"), ValueError(), None])

    def life(stopping: asyncio.Event) -> object:
        wrong = next(lives)
        if wrong is not None:
            raise wrong
        return stopping.wait()

    async def work() -> None:
        one = supervised(story, life)
        one.start()
        while one.restarts < 2 or one.state != "running":
            await asyncio.sleep(0)
        assert one.failure == "ValueError"
        await one.stop()
        assert one.state == "stopped"
        await one.close()

    run(work)
    assert story == ["run", "stop", "flushed", "close"] * 2 + ["run", "stop", "close"]


def test_while_it_waits_it_says_why() -> None:
    async def work() -> None:
        one = supervised([], _fail)
        one._backoff = Backoff(60_000, 60_000)
        one.start()
        while one.state != "waiting" or one._input is not None:
            await asyncio.sleep(0)
        status = one.status(details=False)
        assert (status.words, status.last_error) == ("failed, and is started again: no such port", "no such port")
        await one.stop()
        assert one.state == "stopped"

    run(work)


def _fail(stopping: asyncio.Event) -> object:
    raise OSError("no such port")


def test_one_that_comes_to_its_end_is_finished_and_stays_so() -> None:
    told: list[int] = []

    async def work() -> None:
        one = supervised([], lambda stopping: None, lambda: told.append(1))
        one.start()
        while one.state != "finished":
            await asyncio.sleep(0)
        await one.stop()
        await one.close()
        assert one.state == "finished"
        assert one.status(details=False).words == "well"

    run(work)
    assert told == [1]


def test_one_that_does_not_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.agent.supervision.RETURN_WITHIN_S", 0.01)

    async def work() -> None:
        one = supervised([], lambda stopping: asyncio.Event().wait())
        one.start()
        while one.state != "running":
            await asyncio.sleep(0)
        await one.stop()
        assert "does not end" in one._teller.last_error

    run(work)
