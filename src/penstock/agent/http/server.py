"""The server: a listener whose guests speak HTTP."""

from __future__ import annotations

import asyncio
import ssl as tls
from typing import Final

from penstock.agent.http.connection import Admit, Handle, Host, HttpConnection
from penstock.agent.http.messages import Counts, Limits
from penstock.agent.listening.streams import StreamListener

_REFUSAL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)


class HttpServer:
    """Calls `handle` for each whole request and sends what it returns.

    `admit` is asked when the head is there and the body is not: a response refuses the body before it costs anything.
    """

    def __init__(self, handle: Handle, limits: Limits | None = None, *, admit: Admit | None = None) -> None:
        self.limits = limits or Limits()
        self._host = Host(handle, self.limits, admit)
        self._listeners: list[StreamListener] = []

    @property
    def counts(self) -> Counts:
        return self._host.counts

    @property
    def connections(self) -> int:
        return sum(listener.connections for listener in self._listeners)

    @property
    def refused(self) -> int:
        """Connections beyond the bound."""
        return sum(listener.refused for listener in self._listeners)

    @property
    def failed_handshakes(self) -> int:
        return sum(listener.failed_handshakes for listener in self._listeners)

    async def start(self, host: str, port: int, ssl: tls.SSLContext | None = None) -> int:
        """Listens, and gives the real port back. May be called again for a further address."""
        listener = StreamListener(
            lambda: HttpConnection(self._host),
            connections_max=self.limits.connections_max,
            tls=ssl,
            refusal=_REFUSAL,
        )
        bound = await listener.start(host, port)
        self._listeners.append(listener)
        return bound

    async def close(self, *, within_s: float = 1.0) -> None:
        """Takes no more; what is being answered may finish within the time, then it is cut off."""
        self._host.stopping = True
        for listener in self._listeners:
            await listener.stop_accepting()
        if self._host.answering:
            await asyncio.wait(set(self._host.answering), timeout=within_s)
        for task in set(self._host.answering):
            task.cancel()
        await asyncio.gather(*self._host.answering, return_exceptions=True)
        for listener in self._listeners:
            await listener.close()
        self._listeners.clear()
