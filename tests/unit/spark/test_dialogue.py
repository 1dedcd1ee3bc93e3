"""Callers that cannot await get answers, one private loop and clients that last."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.spark import dialogue
from penstock.spark.dialogue import KEPT_CLIENTS, Dialogue


@pytest.fixture
def talk() -> Iterator[Dialogue]:
    made = Dialogue()
    yield made
    made.close()


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def test_it_gives_what_a_coroutine_gives_and_raises_what_it_raises(talk: Dialogue) -> None:
    async def fail() -> None:
        raise ValueError("no")

    assert talk.run(double(2)) == 4
    with pytest.raises(ValueError, match="no"):
        talk.run(fail())


def test_threads_take_turns(talk: Dialogue) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda number: talk.run(double(number)), range(100))) == list(range(0, 200, 2))


def test_a_caller_inside_a_running_loop_is_answered_too(talk: Dialogue) -> None:
    async def notebook() -> int:
        return talk.run(double(3))

    assert asyncio.run(notebook()) == 6


def test_what_is_iterated_is_closed_when_the_caller_leaves(talk: Dialogue) -> None:
    closed = []

    async def numbers() -> AsyncIterator[int]:
        try:
            for number in range(10):
                yield await double(number)
        finally:
            await asyncio.sleep(0)
            closed.append(True)

    assert list(talk.iterate(numbers())) == list(range(0, 20, 2))
    for number in talk.iterate(numbers()):
        if number == 4:
            break
    del number
    assert closed == [True, True]


class Client:
    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.closed = False

    async def close(self) -> None:
        self.closed = True


def test_clients_are_kept_by_their_settings_and_the_least_used_closed(talk: Dialogue) -> None:
    first = talk.kept("x", {"a": "0"}, Client)
    made = [talk.kept("x", {"a": str(number)}, Client) for number in range(1, KEPT_CLIENTS)]
    assert talk.kept("x", {"a": "0"}, Client) is first
    talk.kept("x", {"a": "one more"}, Client)
    assert [client.closed for client in (first, *made)] == [False, True] + [False] * (KEPT_CLIENTS - 2)
    assert talk.kept("y", {"a": "0"}, Client) is not first


def test_a_client_that_was_dropped_is_made_anew(talk: Dialogue) -> None:
    first = talk.kept("x", {}, Client)
    talk.drop(first)
    assert first.closed
    assert talk.kept("x", {}, Client) is not first


def test_closing_closes_the_clients_and_refuses_more() -> None:
    talk = Dialogue()
    client = talk.kept("x", {}, Client)
    talk.close()
    talk.close()
    assert client.closed
    with pytest.raises(RuntimeError, match="closed"):
        talk.run(double(1))


def test_a_forked_process_has_a_dialogue_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = dialogue.for_process()
    assert dialogue.for_process() is ours
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    theirs = dialogue.for_process()
    assert theirs is not ours
    theirs.close()
    ours.close()
