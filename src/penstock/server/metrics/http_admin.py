"""The admin port: `/metrics`, `/healthz` and `/readyz` over the least HTTP/1.1 that scrapers and probes need.

One request per connection, GET or HEAD, no body. Heads over 8 KB, slow clients and more connections than a few are
cut off, because this port shares the loop with the quorum and the heartbeats. So it answers also when the loop that
serves clients is held; what that loop would tell is missing on the page then.

Where a login is set, `admin_guard.py` says who gets which page. TLS is a layer between the socket and an exchange.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from penstock.model.ports import Bound, Net
from penstock.server.loops.slices import LoopTime, finished_in_slices
from penstock.server.metrics.admin_pages import Page, verdict, words
from penstock.server.metrics.page import Families, Metrics, together, written
from penstock.transport.net import plain_host
from penstock.transport.prometheus import MEDIA_TYPE

if TYPE_CHECKING:
    from penstock.server.metrics.admin_guard import AdminGuard

_log = logging.getLogger("penstock.server.http_admin")

HEAD_BYTES_MAX = 8 << 10
CONNECTIONS_MAX = 32
PATIENCE_S = 5.0
"""For a request to come, and again for its answer to be made and taken."""
SLICE_MS = 2.0
"""A node with ten thousand partitions has a hundred thousand numbers to tell, and nobody hurries for them."""
OTHERS_WITHIN_S = 4.0
PART_BYTES: Final = 256 << 10
READ_BYTES: Final = 64 << 10
"""All exchanges read into one buffer. What is left unread when one is closed would cost its client the answer."""

METRICS, HEALTH, READINESS = PATHS = ("/metrics", "/healthz", "/readyz")

_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}

Reasons = Callable[[], list[str]]
"""Why the node is not well, or not ready; empty when it is."""


class Asked(NamedTuple):
    """A request: the path, the header Authorization if there is one, and the address that it came from."""

    path: str
    authorization: str | None
    host: str


class TlsLayers(Protocol):
    """TLS in front of exchanges; whoever makes it opens it."""

    def accept(self, make_connection: Callable[[], _Exchange]) -> asyncio.BaseProtocol: ...
    def close(self) -> None: ...


class AdminServer:
    """The listener of the admin port and the pages behind it."""

    __slots__ = (
        "_bound", "_connections", "_guard", "_health", "_loop", "_metrics", "_others", "_readiness", "_scratch", "_tls",
        "host", "port",
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        metrics: Metrics,
        *,
        health: Reasons,
        readiness: Reasons,
        others: Callable[[], Awaitable[Families]] | None = None,
        guard: AdminGuard | None = None,
        tls: TlsLayers | None = None,
    ) -> None:
        """`others` are numbers that are gathered on another loop, which may be held."""
        self._guard, self._tls = guard, tls
        self._scratch = memoryview(bytearray(READ_BYTES))
        self._loop = loop
        self._metrics, self._others = metrics, others
        self._health = health
        self._readiness = readiness
        self._connections: set[_Exchange] = set()
        self._bound: Bound | None = None
        self.host = ""
        self.port = 0

    async def open(self, net: Net, host: str, port: int) -> None:
        self._bound = bound = await net.listen(host, port, self._accept)
        self.host, self.port = host, bound.port
        _log.info("metrics and health on %s://%s:%d", "http" if self._tls is None else "https", host or "*", self.port)

    def _accept(self) -> asyncio.BaseProtocol:
        return self._exchange() if self._tls is None else self._tls.accept(self._exchange)

    def _exchange(self) -> _Exchange:
        return _Exchange(self._loop, self._answer, self._connections, self._scratch)

    def close(self) -> None:
        if self._tls is not None:
            self._tls.close()
        if self._bound is not None:
            self._bound.close()
        for exchange in list(self._connections):
            exchange.abort()

    def _answer(self, asked: Asked) -> Page | Awaitable[Page]:
        if asked.path not in PATHS:
            return words(404, "there are /metrics, /healthz and /readyz")
        if self._guard is not None:
            if asked.path == HEALTH and asked.authorization is None:
                # Whoever starts and stops nodes has to know, and has no password.
                return verdict(self._health(), "healthy", told_why=False)
            refusal = self._guard.refusal(asked.authorization, asked.host)
            if refusal is not None:
                return refusal
        if asked.path == METRICS:
            return self._metrics_page()
        if asked.path == HEALTH:
            return verdict(self._health(), "healthy")
        return verdict(self._readiness(), "ready")

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


class _Exchange(asyncio.BufferedProtocol):
    """One connection: a request head in, a page out, closed."""

    __slots__ = (
        "_answer", "_head", "_host", "_loop", "_making", "_peers", "_replied", "_scratch", "_timer", "_transport",
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        answer: Callable[[Asked], Page | Awaitable[Page]],
        peers: set[_Exchange],
        scratch: memoryview,
    ) -> None:
        self._loop = loop
        self._answer = answer
        self._peers = peers
        self._host = ""
        self._scratch = scratch
        self._head = bytearray()
        self._replied = False
        self._making: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods of asyncio.Transport but are no subclass of it.
        self._transport = transport = cast(asyncio.Transport, transport)
        self._host = plain_host((transport.get_extra_info("peername") or ("", 0))[0])
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

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._scratch

    def buffer_updated(self, nbytes: int) -> None:
        if self._replied or self._making is not None:
            return
        self._head += self._scratch[:nbytes]
        end = self._head.find(b"\r\n\r\n")
        if end < 0 and len(self._head) <= HEAD_BYTES_MAX:
            return
        if end < 0 or end > HEAD_BYTES_MAX:
            self._reply(words(431, "the request is too large"))
            return
        self._serve(self._head[:end].decode("latin-1").split("\r\n"))

    def _serve(self, lines: list[str]) -> None:
        request = lines[0].split(" ")
        if len(request) != 3 or not request[2].startswith("HTTP/1."):
            self._reply(words(400, "this is no HTTP/1.1 request"))
            return
        self._be_patient()
        method, target, _ = request
        if method not in ("GET", "HEAD"):
            self._reply(words(405, "only GET and HEAD"))
            return
        headers = (line.partition(":") for line in lines[1:])
        logins = [value.strip() for name, _, value in headers if name.strip().lower() == "authorization"]
        if len(logins) > 1:
            self._reply(words(400, "more than one login"))
            return
        asked = Asked(target.partition("?")[0], logins[0] if logins else None, self._host)
        self._making = self._loop.create_task(self._make(asked, body=method == "GET"), name="admin page")

    async def _make(self, asked: Asked, *, body: bool) -> None:
        try:
            page = self._answer(asked)
            if not isinstance(page, Page):
                page = await page
        except Exception:  # a broken page must not end the node
            _log.exception("the admin page %s failed", asked.path)
            page = words(500, "this page failed; the log says why")
        await self._send(page, body=body)

    async def _send(self, page: Page, *, body: bool) -> None:
        """A large page is handed over with a breath after each part: with TLS it is encrypted here."""
        pieces = [page.body] if isinstance(page.body, bytes) else page.body
        part, part_bytes = [_head_of(page, sum(map(len, pieces)))], 0
        for piece in pieces if body else ():
            part.append(piece)
            part_bytes += len(piece)
            if part_bytes >= PART_BYTES:
                self._write(part)
                part, part_bytes = [], 0
                await asyncio.sleep(0)
        self._write(part)
        self._end()

    def _reply(self, page: Page) -> None:
        """A page of words."""
        assert isinstance(page.body, bytes), "it is in one piece"
        self._write([_head_of(page, len(page.body)), page.body])
        self._end()

    def _write(self, pieces: list[bytes]) -> None:
        assert self._transport is not None, "a page nobody waits for any more is not made to its end"
        if pieces:
            self._transport.writelines(pieces)

    def _end(self) -> None:
        assert self._transport is not None, "it was just written to"
        self._replied = True
        self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _head_of(page: Page, body_bytes: int) -> bytes:
    lines = [
        f"HTTP/1.1 {page.status} {_REASONS[page.status]}",
        f"Content-Type: {page.media_type}",
        f"Content-Length: {body_bytes}",
        "Connection: close",
        *(f"{name}: {value}" for name, value in page.headers),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
