"""From a descriptor to the channel, line by line, no faster than there is room."""

from __future__ import annotations

from penstock.agent.inputs.input import Channel, InputStatus
from penstock.agent.inputs.lines import Framed, LineFraming
from penstock.agent.inputs.process.reading import DescriptorReader
from penstock.agent.inputs.streams import nothing
from penstock.agent.portion import TRUNCATED, Portion


class Pump:
    """One descriptor's way. Counts into `status`, which several may share."""

    def __init__(self, reader: DescriptorReader, channel: Channel, status: InputStatus, line_bytes_max: int) -> None:
        self._reader, self._channel, self._status = reader, channel, status
        self._framing = LineFraming(line_bytes_max)
        self._origin = channel.origin()

    async def run(self) -> None:
        """Until the end, or until the reader is stopped. Who cancels it while it waits for room loses a portion."""
        while data := await self._reader.read():
            await self._put(self._framing.feed(data))
        last = self._framing.end()
        if last.messages and self._reader.stopped:
            # The rest of that line will be read by nobody.
            last.cut = [0]
        await self._put(last)

    async def _put(self, framed: Framed) -> None:
        count = len(framed.messages)
        if not count:
            return
        portion = Portion(self._origin, framed.messages, marks=dict.fromkeys(framed.cut, TRUNCATED))
        if not self._channel.offer(portion, nothing):
            try:
                await self._channel.put(portion, nothing)
            except BaseException:
                self._status.dropped += count
                raise
        self._status.events += count
        self._status.bytes += sum(map(len, framed.messages))
        self._status.truncated += len(framed.cut)
