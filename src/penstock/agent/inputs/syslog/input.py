"""The syslog input: what listens, and what becomes of messages."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import replace
from typing import Final

from penstock.agent.environment import Environment
from penstock.agent.inputs.input import Channel, InputStatus
from penstock.agent.inputs.lines import Framed
from penstock.agent.inputs.streams import StreamIntake, Waiting, nothing
from penstock.agent.inputs.syslog.framing import SyslogFraming
from penstock.agent.inputs.syslog.parsing import SyslogParser
from penstock.agent.inputs.syslog.settings import SyslogSettings
from penstock.agent.inputs.syslog.udp import DatagramReader
from penstock.agent.listening.addresses import Address
from penstock.agent.listening.streams import StreamListener, tls_context
from penstock.agent.portion import EVENT_OVERHEAD_BYTES, MALFORMED, TRUNCATED, Portion

_log = logging.getLogger(__name__)

_BUDGET_SHARE: Final = 4
_PORTION_EVENTS_MAX: Final = 1_000
"""Parsing so many takes about ten milliseconds, during which nobody else has a turn."""
_AHEAD_MS_MAX: Final = 30 * 60_000
"""Brokers refuse records from the future. Whose clock is so far ahead gets the time of arrival as the record's."""
_FIELDS_OVERHEAD_BYTES: Final = 600
_WATCH_S: Final = 1.0
_TELL_S: Final = 60.0


class SyslogInput:
    """`addresses` are those it listens on, with their real ports, once it runs."""

    def __init__(self, settings: SyslogSettings, channel: Channel, env: Environment) -> None:
        self._settings, self._channel, self._env = settings, channel, env
        self._parser = SyslogParser(settings.format, settings.zone)
        self._status = InputStatus("syslog", "starting")
        self._intake = StreamIntake(
            channel,
            lambda: SyslogFraming(settings.message_bytes_max),
            self._compose,
            budget_bytes=max(env.bounded_memory_bytes // _BUDGET_SHARE, 1 << 20),
            idle_timeout_s=settings.idle_timeout_ms / 1000,
            portion_events_max=_PORTION_EVENTS_MAX,
        )
        self._listeners: list[StreamListener] = []
        self._readers: list[DatagramReader] = []
        self._line: deque[Waiting] = deque()
        """Of datagrams that wait for room. Nothing is read meanwhile, so it is one burst at most for each socket."""
        self._stopped = asyncio.Event()
        self._told_dropped = 0
        self._tell_at_ms = 0.0
        self.addresses: list[Address] = []

    async def run(self) -> None:
        try:
            for address in self._settings.listen:
                await self._listen(address)
            self._status.words = f"listening on {', '.join(map(str, self.addresses))}"
            while not self._stopped.is_set():
                self._tell_drops()
                try:
                    async with asyncio.timeout(_WATCH_S):
                        await self._stopped.wait()
                except TimeoutError:
                    continue
        finally:
            await self.stop()

    async def stop(self) -> None:
        self._stopped.set()
        for reader in self._readers:
            reader.close()
        for listener in self._listeners:
            await listener.stop_accepting()
        await self._intake.stop()
        for listener in self._listeners:
            await listener.close()
        self._tell_drops()
        self._status.words = "stopped"

    async def close(self) -> None:
        await self.stop()

    def status(self, *, details: bool = False) -> InputStatus:
        self._status.connections = sum(listener.connections for listener in self._listeners)
        self._status.refused = sum(listener.refused for listener in self._listeners)
        self._status.errors = sum(listener.failed_handshakes for listener in self._listeners)
        failures = [listener.last_failure for listener in self._listeners if listener.last_failure]
        self._status.last_error = failures[-1] if failures else ""
        self._status.dropped = self._intake.dropped + sum(reader.dropped for reader in self._readers)
        return self._status

    @property
    def held_bytes(self) -> int:
        """Read and neither handed on nor given up."""
        return self._intake.part_bytes + self._intake.waiting_bytes

    async def _listen(self, address: Address) -> None:
        if address.scheme == "udp":
            reader = DatagramReader(
                self._take_datagrams, self._settings.message_bytes_max, self._settings.receive_buffer_bytes
            )
            port = await reader.start(address.host, address.port)
            self._readers.append(reader)
        else:
            files = self._settings.tls if address.scheme == "tls" else None
            listener = StreamListener(
                self._intake.guest,
                connections_max=self._settings.connections_max,
                tls=tls_context(files) if files is not None else None,
            )
            port = await listener.start(address.host, address.port)
            self._listeners.append(listener)
        self.addresses.append(replace(address, port=port))

    def _take_datagrams(self, by_peer: dict[str, list[bytes]]) -> bool:
        limit = self._settings.message_bytes_max
        for peer, messages in by_peer.items():
            cut = [at for at, message in enumerate(messages) if len(message) > limit]
            for at in cut:
                messages[at] = messages[at][:limit]
            framed = Framed(messages, cut)
            portion = self._compose(framed, peer)
            if self._line or not self._channel.offer(portion, nothing):
                self._line.append(Waiting(framed, peer, portion))
                self._intake.weigh(portion.size_bytes)
                if len(self._line) == 1:
                    self._intake.carry(self._line, self._went_on)
        return not self._line

    def _went_on(self) -> None:
        if not self._stopped.is_set():
            for reader in self._readers:
                reader.resume()

    def _compose(self, framed: Framed, peer: str) -> Portion:
        now_ms = self._env.now_ms()
        latest_ms = now_ms + _AHEAD_MS_MAX
        parse, keep_raw = self._parser.parse, self._settings.keep_raw
        fields, times_ms, marks = [], [], dict.fromkeys(framed.cut, TRUNCATED)
        for at, message in enumerate(framed.messages):
            parsed = parse(message, now_ms)
            if parsed.malformed:
                marks.setdefault(at, MALFORMED)
                self._status.malformed += 1
            if peer:
                parsed.fields.setdefault("host", peer)
            if keep_raw:
                parsed.fields["raw"] = message.decode("utf-8", "backslashreplace")
            fields.append(parsed.fields)
            time_ms = parsed.time_ms
            times_ms.append(time_ms if time_ms is not None and 0 <= time_ms <= latest_ms else now_ms)
        total_bytes = sum(map(len, framed.messages))
        self._status.events += len(fields)
        self._status.bytes += total_bytes
        self._status.truncated += len(framed.cut)
        return Portion(
            self._channel.origin(peer=peer),
            framed.messages,
            fields=fields,
            timestamps_ms=times_ms,
            marks=marks,
            size_bytes=2 * total_bytes + (EVENT_OVERHEAD_BYTES + _FIELDS_OVERHEAD_BYTES) * len(fields),
        )

    def _tell_drops(self) -> None:
        """At most once in a while: a flood is no reason for another one in the log."""
        dropped, now_ms = self.status().dropped, self._env.monotonic_ms()
        if dropped > self._told_dropped and now_ms >= self._tell_at_ms:
            self._tell_at_ms = now_ms + _TELL_S * 1000
            _log.warning(
                "input %s: %d messages were dropped since it was last told (%d in all): datagrams came faster than they"
                " could be handed on; a larger receive_buffer (and net.core.rmem_max), a spool, or tcp:// would help",
                *(self._env.input, dropped - self._told_dropped, dropped),
            )
            self._told_dropped = dropped
