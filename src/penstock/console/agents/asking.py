"""Asks agents how they are: those that the console was told of, when somebody looks, and not again for some seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from penstock.agent.admin.snapshot import Snapshot
from penstock.agent.view.rates import Rate, Rates
from penstock.console.agents.answering import Silent, status

HOLDS_S: Final = 2.0
AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class AskedAgent:
    """One address, and what came of asking it. `snapshot` is that of before where it is silent now."""

    address: str
    at_ms: int = 0
    snapshot: Snapshot | None = None
    rates: Mapping[str, Rate] = field(default_factory=dict)
    silent: str = ""


class Agents:
    """All agents that the console was given."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self.addresses = tuple(dict.fromkeys(addresses))
        self._seen = {address: AskedAgent(address) for address in self.addresses}
        self._rates = {address: Rates() for address in self.addresses}
        self._until = 0.0
        self._asking: asyncio.Task[None] | None = None

    async def look(self) -> list[AskedAgent]:
        if self.addresses and time.monotonic() >= self._until:
            if self._asking is None or self._asking.done():
                self._asking = asyncio.create_task(self._ask_all())
            await asyncio.shield(self._asking)
        return [self._seen[address] for address in self.addresses]

    async def _ask_all(self) -> None:
        few = asyncio.Semaphore(AT_ONCE)

        async def ask(address: str) -> None:
            async with few:
                self._seen[address] = await self._asked(address)

        await asyncio.gather(*map(ask, self.addresses))
        self._until = time.monotonic() + HOLDS_S

    async def _asked(self, address: str) -> AskedAgent:
        before = self._seen[address]
        try:
            found = await asyncio.to_thread(status, address)
        except Silent as why:
            return AskedAgent(address, before.at_ms, before.snapshot, {}, str(why))
        rates = self._rates[address].feed(found.inputs, time.monotonic())
        return AskedAgent(address, time.time_ns() // 1_000_000, found, rates)
