"""Searches run beside the console: they hold nobody up, and what becomes of them is always told."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from penstock.blocking import Admin, Producer
from penstock.console.messages.searching import SearchBounds, SearchOrder, search
from penstock.console.messages.tailing import TailOrder, tail
from penstock.operations.records.matching import Matcher
from penstock.testing import EmbeddedBroker
from tests.console.running import RunningConsole
from tests.patience import until, wait_for, within

TAB = "a-tab-that-searches-01"
RECORDS = 20_000
ENDLESS = {"seconds": 120, "bytes": 4_000_000_000, "records": 50_000_000}


@pytest.fixture(scope="module")
def many(node: EmbeddedBroker) -> str:
    with Admin(**node.client_settings) as admin:
        admin.create_topic("many", 2, 1)
    with Producer(**node.client_settings) as producer:
        for number in range(RECORDS):
            producer.send("many", json.dumps({"n": number, "text": "x" * 200}), partition=number % 2)
    return "many"


def searchers() -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process().children(recursive=True)
        if any("messages.searcher" in word for word in child.cmdline())
    ]


def test_a_search_is_a_process_of_its_own_and_its_login_is_not_on_show(console: RunningConsole, many: str) -> None:
    with console.events(TAB) as events:
        next(events)
        order = {"kind": "search", "topic": many, "contains": "nowhere", "limits": ENDLESS}
        console.send("POST", f"tabs/{TAB}/subscriptions", order)
        last = next(data for name, data in events if name == "search" and data["state"] == "stopped")
        assert (last["why"], last["scanned"]) == ("end", str(RECORDS))
        running = searchers()
        assert running
        assert all("bootstrap" not in " ".join(child.cmdline()) for child in running)


def test_a_search_whose_process_is_gone_says_so_and_goes_on(console: RunningConsole, many: str) -> None:
    slow = " or ".join(f'value.text matches "(x|y)*{number}$"' for number in range(40))
    with console.events(TAB) as events:
        next(events)
        order = {"kind": "search", "topic": many, "where": slow, "limits": ENDLESS}
        console.send("POST", f"tabs/{TAB}/subscriptions", order)
        first = next(data for name, data in events if name == "search")
        assert first["state"] == "running", first
        for child in searchers():
            os.kill(child.pid, signal.SIGKILL)
        last = next(data for name, data in events if name == "search" and data["state"] == "stopped")
        assert last["why"] == "failed", last
        assert last["error"]["code"] == "failed"
        assert last["next"]
        order = {"kind": "search", "topic": many, "contains": "nowhere", "cursor": last["next"], "limits": ENDLESS}

        def begun() -> bool:
            return console.client.post(f"api/v1/tabs/{TAB}/subscriptions", json=order).is_success

        wait_for("the place of the search that broke off to be free", begun, timeout_s=30)
        again = next(data for name, data in events if name == "search" and data["state"] == "stopped")
        assert again["why"] == "end"
        assert int(again["scanned"]) + sum(map(int, last["positions"].values())) == RECORDS


def test_a_search_that_is_stopped_anywhere_goes_on_with_the_next_record(node: EmbeddedBroker, many: str) -> None:
    """It is cancelled in the middle of what was fetched, many times over; together they see every record once."""

    async def main() -> None:
        froms, tos = {0: 0, 1: 0}, {0: RECORDS // 2, 1: RECORDS // 2}
        scanned, rounds, words = 0, 0, list[dict[str, Any]]()
        while froms != tos:
            order = SearchOrder(many, froms, tos, contains="nowhere", bounds=SearchBounds(seconds=60.0))
            task = asyncio.create_task(search(node.client_settings, order, words.append))
            for _ in range(20 * rounds):
                await asyncio.sleep(0)
                if task.done():
                    break
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            if words:
                scanned += int(words[-1]["scanned"])
                froms = {int(each): int(offset) for each, offset in words[-1]["positions"].items()}
                words.clear()
            rounds += 1
        assert (scanned, rounds > 2) == (RECORDS, True)

    asyncio.run(main())


def test_many_large_hits_do_not_end_their_tab(console: RunningConsole, node: EmbeddedBroker) -> None:
    with Admin(**node.client_settings) as admin:
        admin.create_topic("wide", 1, 1)
    with Producer(**node.client_settings) as producer:
        for number in range(400):
            producer.send("wide", b"x" * 20_000, key=b"%d" % number, headers=[("h", b"y" * 5_000)] * 3)
    with console.events(TAB) as events:
        next(events)
        order = {"kind": "search", "topic": "wide", "contains": "x", "limits": {**ENDLESS, "hits": 400}}
        console.send("POST", f"tabs/{TAB}/subscriptions", order)
        hits = 0
        for name, data in events:
            assert name != "bye", data
            if name == "search":
                hits += len(data["hits"])
                assert all(hit["value"]["cut"] for hit in data["hits"])
                if data["state"] == "stopped":
                    break
        assert hits == 400


@pytest.mark.parametrize("begin", ["tail", "search"])
def test_what_breaks_off_for_a_reason_that_nobody_thought_of_is_told(begin: str) -> None:
    """It is no failure that clients have a name for, and no silence either."""
    words: list[dict[str, Any]] = []
    keywords: dict[str, Any] = {
        "bootstrap_servers": ["127.0.0.1:1"],
        "cafile": object(),
        "username": "u",
        "password": "p",
    }
    works: dict[str, Callable[[], Any]] = {
        "tail": lambda: tail(keywords, TailOrder("any", (0,), Matcher()), words.append),
        "search": lambda: search(keywords, SearchOrder("any", {0: 0}, {0: 1}), words.append),
    }
    asyncio.run(works[begin]())
    assert words[-1]["error"]["message"]


def test_a_tail_of_a_topic_that_is_gone_says_so(node: EmbeddedBroker) -> None:
    words: list[dict[str, Any]] = []
    with Admin(**node.client_settings) as admin:
        admin.create_topic("passing", 1, 1)

        async def main() -> None:
            order = TailOrder("passing", (0,), Matcher())
            tailing = asyncio.create_task(tail(node.client_settings, order, words.append))
            await until(lambda: words, "a tail to say where it stands", timeout_s=30)
            await asyncio.to_thread(admin.delete_topic, "passing")
            await asyncio.wait_for(tailing, within(30))

        asyncio.run(main())
    assert words[-1]["error"]["code"] == "unknown_topic"
