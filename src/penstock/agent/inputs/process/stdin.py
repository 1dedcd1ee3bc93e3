"""Standard input, until its end."""

from __future__ import annotations

import asyncio

from penstock.agent.inputs.input import Channel, InputStatus
from penstock.agent.inputs.process.pumping import Pump
from penstock.agent.inputs.process.reading import DescriptorReader
from penstock.agent.inputs.process.settings import StdinSettings
from penstock.agent.inputs.streams import STOP_WITHIN_S

STDIN = 0


class StdinInput:
    """`run` returns at the end of the input; `status().words` then begin with `finished`."""

    def __init__(self, settings: StdinSettings, channel: Channel, *, descriptor: int = STDIN) -> None:
        self._status = InputStatus("stdin", "reading standard input")
        self._reader = DescriptorReader(descriptor)
        self._pump = Pump(self._reader, channel, self._status, settings.line_bytes_max)
        self._pumping: asyncio.Task[None] | None = None
        self.addresses: list[str] = []

    async def run(self) -> None:
        self._pumping = asyncio.create_task(self._pump.run())
        try:
            await asyncio.wait((self._pumping,))
        finally:
            await self.stop()
        if self._pumping.cancelled():
            return
        self._pumping.result()
        if self._status.words != "stopped":
            self._status.words = "finished: standard input has ended"

    async def stop(self) -> None:
        self._reader.stop()
        pumping = self._pumping
        if pumping is None or pumping.done():
            return
        self._status.words = "stopped"
        await asyncio.wait((pumping,), timeout=STOP_WITHIN_S)
        pumping.cancel()
        await asyncio.wait((pumping,))

    async def close(self) -> None:
        await self.stop()

    def status(self, *, details: bool = False) -> InputStatus:
        return self._status
