"""What happens is told to everybody who may see it, whatever becomes of the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from penstock.console.messages.thread import ReadingThread
from penstock.console.people.seeing import Eyes
from penstock.console.people.vision import ALL, Vision
from penstock.console.sampler.changes import Occurrence
from penstock.console.sampler.sampler import Sampler
from penstock.console.settings import ClusterAddress
from penstock.console.stream import hub as hubs
from penstock.console.stream.hub import Hub
from penstock.console.stream.subscriptions import Subscriptions
from penstock.console.stream.tab import BrowserTab
from tests.patience import at_most

ANNA, BEN = "anna", "ben"


class SilentBroker:
    """Takes connections and answers nothing."""

    def __init__(self) -> None:
        self.address, self.asked = "", asyncio.Event()
        self._writers: list[asyncio.StreamWriter] = []

    async def took(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        await reader.read(1)
        self.asked.set()

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.close()


@asynccontextmanager
async def silent_broker() -> AsyncIterator[SilentBroker]:
    broker = SilentBroker()
    async with await asyncio.start_server(broker.took, "127.0.0.1") as server:
        broker.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield broker
        broker.hang_up()


@asynccontextmanager
async def annas_broker_is_silent() -> AsyncIterator[tuple[SilentBroker, Eyes, Sampler, BrowserTab]]:
    """A hub with two people; what Anna sees is asked of a broker that never answers, Ben sees everything."""
    thread = ReadingThread()
    thread.start()
    async with silent_broker() as broker:
        eyes = Eyes({"bootstrap_servers": broker.address}, thread)

        async def vision_of(owner: str, cluster: str) -> Vision:
            return await eyes.look() if owner == ANNA else ALL

        address = {"bootstrap_servers": broker.address}
        sampler = Sampler(ClusterAddress("local", address, address, address), 1_000)
        hub = Hub([sampler], vision_of, lambda _, __: True, Subscriptions())
        hub.open("the-tab-of-anna-", ANNA)
        try:
            yield broker, eyes, sampler, hub.open("the-tab-of-ben--", BEN)
        finally:
            hub.close()
            await eyes.close()
            await asyncio.to_thread(thread.stop)


async def heard(tab: BrowserTab, text: str) -> None:
    told = b""
    async with at_most(20):
        while text.encode() not in told:
            told = await tab.take()


async def test_one_who_leaves_while_asked_about_ends_nobody_elses_events() -> None:
    async with annas_broker_is_silent() as (broker, eyes, sampler, ben):
        sampler.tell(Occurrence("test", "info", "the first"))
        async with at_most(20):
            await broker.asked.wait()
        await eyes.close()
        sampler.tell(Occurrence("test", "info", "the second"))
        await heard(ben, "the second")


async def test_nobody_waits_for_another_persons_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "ASKED_WITHIN_S", 0.2)
    async with annas_broker_is_silent() as (_, _, sampler, ben):
        for number in range(3):
            sampler.tell(Occurrence("test", "info", f"number {number}"))
            await heard(ben, f"number {number}")
