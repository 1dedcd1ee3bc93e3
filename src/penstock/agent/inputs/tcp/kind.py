"""The settings of a TCP input, and the input."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from penstock.agent.environment import Environment
from penstock.agent.inputs.input import Channel, InputStatus
from penstock.agent.inputs.lines import Framed, LineFraming
from penstock.agent.inputs.streams import StreamIntake
from penstock.agent.listening.addresses import Address, TlsFiles, read_addresses, read_tls_for
from penstock.agent.listening.streams import StreamListener, tls_context
from penstock.agent.portion import TRUNCATED, Portion
from penstock.declared.fields import Table

SCHEMES: Final = ("tcp", "tls")
_BUDGET_SHARE: Final = 4
_PORTION_EVENTS_MAX: Final = 20_000


@dataclass(frozen=True, slots=True)
class TcpSettings:
    listen: tuple[Address, ...]
    tls: TlsFiles | None
    line_bytes_max: int
    connections_max: int
    idle_timeout_ms: int


def read(table: Table, folder: Path) -> TcpSettings:
    listen = read_addresses(table, "listen", SCHEMES)
    return TcpSettings(
        listen=listen,
        tls=read_tls_for(table, folder, listen),
        line_bytes_max=table.size_bytes("line_bytes_max", 1 << 20, low=1 << 10, high=64 << 20),
        connections_max=table.integer("connections_max", 1_024, 1, 65_536),
        idle_timeout_ms=table.duration_ms("idle_timeout", 600_000, low=100),
    )


def make(settings: TcpSettings, channel: Channel, env: Environment) -> TcpInput:
    return TcpInput(settings, channel, env)


class TcpInput:
    """`addresses` are those it listens on, with their real ports, once it runs."""

    def __init__(self, settings: TcpSettings, channel: Channel, env: Environment) -> None:
        self._settings, self._channel = settings, channel
        self._status = InputStatus("tcp", "starting")
        self._intake = StreamIntake(
            channel,
            lambda: LineFraming(settings.line_bytes_max, keep_empty=False),
            self._compose,
            budget_bytes=max(env.bounded_memory_bytes // _BUDGET_SHARE, 1 << 20),
            idle_timeout_s=settings.idle_timeout_ms / 1000,
            portion_events_max=_PORTION_EVENTS_MAX,
        )
        self._listeners: list[StreamListener] = []
        self._stopped = asyncio.Event()
        self.addresses: list[Address] = []

    async def run(self) -> None:
        try:
            for address in self._settings.listen:
                await self._listen(address)
            self._status.words = f"listening on {', '.join(map(str, self.addresses))}"
            await self._stopped.wait()
        finally:
            await self.stop()

    async def stop(self) -> None:
        self._stopped.set()
        for listener in self._listeners:
            await listener.stop_accepting()
        await self._intake.stop()
        for listener in self._listeners:
            await listener.close()
        self._status.words = "stopped"

    async def close(self) -> None:
        await self.stop()

    def status(self, *, details: bool = False) -> InputStatus:
        self._status.connections = sum(listener.connections for listener in self._listeners)
        self._status.refused = sum(listener.refused for listener in self._listeners)
        self._status.errors = sum(listener.failed_handshakes for listener in self._listeners)
        failures = [listener.last_failure for listener in self._listeners if listener.last_failure]
        self._status.last_error = failures[-1] if failures else ""
        self._status.dropped = self._intake.dropped
        return self._status

    @property
    def held_bytes(self) -> int:
        """Read and neither handed on nor given up."""
        return self._intake.part_bytes + self._intake.waiting_bytes

    async def _listen(self, address: Address) -> None:
        files = self._settings.tls if address.scheme == "tls" else None
        tls = tls_context(files) if files is not None else None
        listener = StreamListener(self._intake.guest, connections_max=self._settings.connections_max, tls=tls)
        port = await listener.start(address.host, address.port)
        self._listeners.append(listener)
        self.addresses.append(replace(address, port=port))

    def _compose(self, framed: Framed, peer: str) -> Portion:
        portion = Portion(self._channel.origin(peer=peer), framed.messages, marks=dict.fromkeys(framed.cut, TRUNCATED))
        self._status.events += len(framed.messages)
        self._status.bytes += sum(map(len, framed.messages))
        self._status.truncated += len(framed.cut)
        return portion
