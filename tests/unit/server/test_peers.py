"""Links to other nodes: kept while they answer, given up when they are silent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from penstock.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from penstock.server.loops.ports import SystemClock
from penstock.server.peers import SILENCE_MS, Address, Carried, NetPeers
from penstock.transport.dial import TimedOut
from tests.patience import within

OTHER = Address("other", 9093)


class SilentLink:
    """A connection that the system believes in, with nobody at its other end."""

    def __init__(self) -> None:
        self.up, self.client_id = True, ""
        self.asked, self.answered, self.bytes_in, self.bytes_out = 2, 1, 30, 40

    async def negotiate(self, timeout_ms: float) -> None:
        return None

    def newest(self, key: int, ours_max: int | None = None) -> int:
        return 1

    def post(self, message: Any, version: int, timeout_ms: float, on_reply: Callable[[Any, Exception], None]) -> None:
        late = TimedOut(OTHER.host, OTHER.port, "no reply")
        asyncio.get_running_loop().call_later(0.001, on_reply, None, late)

    def when_lost(self, callback: Callable[[], None]) -> None:
        self.lost = callback

    def abort(self) -> None:
        self.up = False
        self.lost()


class Lines:
    """A Net that remembers what was dialled."""

    def __init__(self) -> None:
        self.dialled: list[SilentLink] = []

    async def dial(self, host: str, port: int, timeout_ms: int, security: object) -> SilentLink:
        self.dialled.append(SilentLink())
        return self.dialled[-1]


async def ask_twice(timeout_ms: float) -> list[bool]:
    net = Lines()
    peers = NetPeers(net, SystemClock(), client_id="me")  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(TimedOut):
            await peers.ask(OTHER, BrokerHeartbeatRequest(), 1, purpose="controller", timeout_ms=timeout_ms)
    return [link.up for link in net.dialled]


def test_a_link_on_which_a_request_was_left_unanswered_is_dialled_anew() -> None:
    assert asyncio.run(ask_twice(SILENCE_MS)) == [False, False]


def test_a_request_that_had_no_time_left_proves_nothing() -> None:
    assert asyncio.run(ask_twice(SILENCE_MS / 10)) == [True]


def test_a_silent_link_is_given_up_even_if_whoever_asked_has_turned_away() -> None:
    async def turn_away() -> list[bool]:
        net = Lines()
        peers = NetPeers(net, SystemClock(), client_id="me")  # type: ignore[arg-type]
        asking = asyncio.ensure_future(
            peers.ask(OTHER, BrokerHeartbeatRequest(), 1, purpose="quorum-fetch", timeout_ms=SILENCE_MS)
        )
        await asyncio.sleep(0)
        asking.cancel()
        async with asyncio.timeout(within(20)):
            while any(link.up for link in net.dialled):
                await asyncio.sleep(0.001)
        return [link.up for link in net.dialled]

    assert asyncio.run(turn_away()) == [False]


def test_who_asks_is_told_when_a_link_that_stood_is_lost() -> None:
    async def steps() -> list[str]:
        net, told = Lines(), list[str]()
        peers = NetPeers(net, SystemClock(), client_id="me")  # type: ignore[arg-type]
        peers.on_lost = told.append
        with pytest.raises(TimedOut):
            await peers.ask(OTHER, BrokerHeartbeatRequest(), 1, purpose="heartbeat", timeout_ms=1)
        net.dialled[0].abort()
        with pytest.raises(TimedOut):
            await peers.ask(OTHER, BrokerHeartbeatRequest(), 1, purpose="heartbeat", timeout_ms=1)
        peers.close()
        return told

    assert asyncio.run(steps()) == ["heartbeat"]


def test_what_links_carried_is_counted_by_purpose_also_when_they_are_gone() -> None:
    async def steps() -> None:
        net = Lines()
        peers = NetPeers(net, SystemClock(), client_id="me")  # type: ignore[arg-type]
        for _ in range(2):
            with pytest.raises(TimedOut):
                await peers.ask(OTHER, BrokerHeartbeatRequest(), 1, purpose="quorum", timeout_ms=SILENCE_MS)
        assert [link.up for link in net.dialled] == [False, False]
        assert peers.carried("quorum") == Carried(requests=4, replies=2, bytes_out=80, bytes_in=60)
        assert peers.carried("heartbeat") == Carried()

    asyncio.run(steps())
