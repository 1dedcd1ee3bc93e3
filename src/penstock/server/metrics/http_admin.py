"""The admin port: `/metrics`, `/healthz` and `/readyz` over the least HTTP/1.1 that scrapers and probes need.

One request per connection, GET or HEAD, no body. Heads over 8 KB, slow clients and more connections than a few are
cut off, because this port shares the loop with the quorum and the heartbeats. So it answers also when the loop that
serves clients is held; what that loop would tell is missing on the page then.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple, cast

from penstock.model.ports import Bound, Net
from penstock.server.loops.slices import LoopTime, finished_in_slices
from penstock.server.metrics.page import Families, Metrics, together, written
from penstock.transport.prometheus import MEDIA_TYPE

_log = logging.getLogger("penstock.server.http_admin")

HEAD_BYTES_MAX = 8 << 10
CONNECTIONS_MAX = 32
PATIENCE_S = 5.0
"""For a request to come, and again for its answer to be made and taken."""
SLICE_MS = 2.0
"""A node with ten thousand partitions has a hundred thousand numbers to tell, and nobody hurries for them."""
OTHERS_WITHIN_S = 4.0

_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}

Reasons = Callable[[], list[str]]
"""Why the node is not well, or not ready; empty when it is."""


class Page(NamedTuple):
    """A reply: status, media type and body, which may be in pieces: a large one is never copied as a whole."""

    status: int
    media_type: str
    body: bytes | list[bytes]


class AdminServer:
    """The listener of the admin port and the pages behind it."""

    __slots__ = ("_bound", "_connections", "_health", "_loop", "_metrics", "_others", "_readiness", "host", "port")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        metrics: Metrics,
        *,
        health: Reasons,
        readiness: Reasons,
        others: Callable[[], Awaitable[Families]] | None = None,
    ) -> None:
        """`others` are numbers that are gathered on another loop, which may be held."""
        self._loop = loop
        self._metrics, self._others = metrics, others
        self._health = health
        self._readiness = readiness
        self._connections: set[_Exchange] = set()
        self._bound: Bound | None = None
        self.host = ""
        self.port = 0

    async def open(self, net: Net, host: str, port: int) -> None:
        self._bound = bound = await net.listen(
            host, port, lambda: _Exchange(self._loop, self._answer, self._connections)
        )
        self.host, self.port = host, bound.port
        _log.info("metrics and health on http://%s:%d", host or "*", self.port)

    def close(self) -> None:
        if self._bound is not None:
            self._bound.close()
        for exchange in list(self._connections):
            exchange.abort()

    def _answer(self, path: str) -> Page | Awaitable[Page]:
        if path == "/metrics":
            return self._metrics_page()
        if path == "/healthz":
            return _verdict(self._health(), "healthy")
        if path == "/readyz":
            return _verdict(self._readiness(), "ready")
        return Page(404, "text/plain; charset=utf-8", b"there are /metrics, /healthz and /readyz\n")

    async def _metrics_page(self) -> Page:
        families = await gathered(self._metrics)
        if self._others is not None:
            try:
                async with asyncio.timeout(OTHERS_WITHIN_S):
                    families = together(families, await self._others())
            except TimeoutError:
                families[" others"] = [f"# the broker's numbers are missing: its loop is held for {OTHERS_WITHIN_S} s"]
        body = await finished_in_slices(LoopTime(self._loop), written(families), SLICE_MS)
        return Page(200, MEDIA_TYPE, body)


async def gathered(metrics: Metrics) -> Families:
    """What the sources of one loop tell."""
    await metrics.prepared()
    return await finished_in_slices(LoopTime(asyncio.get_running_loop()), metrics.gathering(), SLICE_MS)


def _verdict(reasons: list[str], word: str) -> Page:
    body = json.dumps({"status": word if not reasons else f"not {word}", "reasons": reasons}).encode() + b"\n"
    return Page(503 if reasons else 200, "application/json", body)


class _Exchange(asyncio.Protocol):
    """One connection: a request head in, a page out, closed."""

    __slots__ = ("_answer", "_head", "_loop", "_making", "_peers", "_replied", "_timer", "_transport")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        answer: Callable[[str], Page | Awaitable[Page]],
        peers: set[_Exchange],
    ) -> None:
        self._loop = loop
        self._answer = answer
        self._peers = peers
        self._head = bytearray()
        self._replied = False
        self._making: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods of asyncio.Transport but are no subclass of it.
        self._transport = transport = cast(asyncio.Transport, transport)
        if len(self._peers) >= CONNECTIONS_MAX:
            transport.abort()
            return
        self._peers.add(self)
        self._be_patient()

    def _be_patient(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(PATIENCE_S, self.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._peers.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._making is not None:
            self._making.cancel()

    def data_received(self, data: bytes) -> None:
        if self._replied or self._making is not None:
            return
        self._head += data
        end = self._head.find(b"\r\n\r\n")
        if end < 0 and len(self._head) <= HEAD_BYTES_MAX:
            return
        if end < 0 or end > HEAD_BYTES_MAX:
            self._reply(Page(431, "text/plain", b"the request is too large\n"))
            return
        self._serve(bytes(self._head[: self._head.find(b"\r\n")]))

    def _serve(self, line: bytes) -> None:
        words = line.decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            self._reply(Page(400, "text/plain", b"this is no HTTP/1.1 request\n"))
            return
        self._be_patient()
        method, target, _ = words
        if method not in ("GET", "HEAD"):
            self._reply(Page(405, "text/plain", b"only GET and HEAD\n"))
            return
        self._making = self._loop.create_task(self._make(target, body=method == "GET"), name="admin page")

    async def _make(self, target: str, *, body: bool) -> None:
        try:
            page = self._answer(target.partition("?")[0])
            if not isinstance(page, Page):
                page = await page
        except Exception:  # a broken page must not end the node
            _log.exception("the admin page %s failed", target)
            page = Page(500, "text/plain", b"this page failed; the log says why\n")
        self._reply(page, body=body)

    def _reply(self, page: Page, *, body: bool = True) -> None:
        assert self._transport is not None, "a page nobody waits for any more is not made to its end"
        self._replied = True
        pieces = [page.body] if isinstance(page.body, bytes) else page.body
        head = (
            f"HTTP/1.1 {page.status} {_REASONS[page.status]}\r\n"
            f"Content-Type: {page.media_type}\r\nContent-Length: {sum(map(len, pieces))}\r\nConnection: close\r\n\r\n"
        ).encode("latin-1")
        self._transport.writelines([head, *pieces] if body else [head])
        self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
