"""Links from this node to other nodes: dialled when first needed, kept, dialled again after a pause when they break.

A peer serves the requests of one connection one after the other, so whoever asks for something that waits at the other
end (a fetch) has a *purpose* of its own: there is one link for each (address, purpose), and a long fetch never stands
in front of a heartbeat.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from penstock.protocol.wire import schema_of
from penstock.transport.dial import LinkError, LoginFailed, TimedOut, Unreachable, Untrusted

if TYPE_CHECKING:
    from penstock.model.ports import Clock, Net
    from penstock.transport.dial import Link, OnReply, Reader
    from penstock.transport.dial_security import DialSecurity

log = logging.getLogger("penstock.peers")

BACKOFF_FIRST_MS = 20.0
BACKOFF_MAX_MS = 1_000.0
DIAL_FIRST_MS = 10_000.0
DIAL_MAX_MS = 30_000.0
SILENCE_MS = 400.0
"""A peer that leaves a request unanswered for so long, and longer than was agreed, is not waited for on this link."""


class Address(NamedTuple):
    """Where a node listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Peers(Protocol):
    """What drivers see of other nodes."""

    async def ask(self, to: Address, message: Any, version: int, *, purpose: str, timeout_ms: float) -> Any:
        """The reply; `LinkError` when there is none in time. `version` is lowered to what the peer serves."""


class Carried(NamedTuple):
    """What went over links: requests, their replies, and bytes both ways."""

    requests: int = 0
    replies: int = 0
    bytes_out: int = 0
    bytes_in: int = 0

    def with_link(self, link: Link) -> Carried:
        return Carried(
            self.requests + link.asked,
            self.replies + link.answered,
            self.bytes_out + link.bytes_out,
            self.bytes_in + link.bytes_in,
        )


class _Line:
    """One link and what is known of its failures."""

    __slots__ = ("failures", "link", "lock", "not_before_ms", "warned_of")

    def __init__(self) -> None:
        self.link: Link | None = None
        self.lock = asyncio.Lock()
        self.failures = 0
        self.not_before_ms = 0.0
        self.warned_of = ""


class NetPeers:
    """Peers over the Net port. A peer that cannot be reached is not dialled again before a growing pause has passed."""

    def __init__(
        self,
        net: Net,
        clock: Clock,
        *,
        client_id: str,
        dial_first_ms: float = DIAL_FIRST_MS,
        dial_max_ms: float = DIAL_MAX_MS,
        security: DialSecurity | None = None,
    ) -> None:
        """Dialling may take `dial_first_ms`, and twice as long after each failure, up to `dial_max_ms`."""
        self._security = security
        self._net, self._clock, self._client_id = net, clock, client_id
        self._dial_first_ms, self._dial_max_ms = dial_first_ms, dial_max_ms
        self._lines: dict[tuple[Address, str], _Line] = {}
        self._standing: dict[Link, str] = {}
        self._past: dict[str, Carried] = {}
        self._closed = False
        self.on_lost: Callable[[str], None] = lambda _purpose: None
        """Told the purpose of a link that broke while it stood."""

    async def ask(self, to: Address, message: Any, version: int, *, purpose: str, timeout_ms: float) -> Any:
        """The reply; `LinkError` when there is none in time. `version` is lowered to what the peer serves."""
        line = self._lines.get((to, purpose))
        if line is None:
            line = self._lines[to, purpose] = _Line()
        link = line.link
        if link is None or not link.up:
            link = await self._dialled(line, to, purpose, timeout_ms)
        agreed = link.newest(schema_of(message.__class__).key, version)
        return await self._answer(link, message, agreed, timeout_ms)

    def post(
        self,
        to: Address,
        key: int,
        version: int,
        body: bytes | bytearray,
        *,
        purpose: str,
        timeout_ms: float,
        read: Reader,
        on_reply: OnReply,
    ) -> bool:
        """Sends a request over a link that stands, without a task or future; False when none does in that version.

        `on_reply` is called in the read callback. Whoever is left without an answer hangs up.
        """
        line = self._lines.get((to, purpose))
        link = None if line is None else line.link
        if link is None or not link.up:
            return False
        served = link.versions.get(key)
        if served is None or not served[0] <= version <= served[1]:
            return False
        link.post_encoded(key, version, body, timeout_ms, on_reply, read)
        return True

    def _answer(self, link: Link, message: Any, version: int, timeout_ms: float) -> asyncio.Future[Any]:
        """The reply to come. A link that leaves a request unanswered is given up, also when nobody waits any more.

        The way may be cut while the system still believes in the connection: it would send again after ever longer
        pauses, long after the way is whole. So a new one is dialled; too little time proves nothing.
        """
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def settle(reply: Any, failure: LinkError | None) -> None:
            if isinstance(failure, TimedOut) and timeout_ms >= SILENCE_MS:
                link.abort()
            if future.done():
                return
            if failure is None:
                future.set_result(reply)
            else:
                future.set_exception(failure)

        link.post(message, version, timeout_ms, settle)
        return future

    def hang_up(self, to: Address, purpose: str) -> None:
        """Closes a link that is not needed for now; whoever waits on it is told `Severed`."""
        line = self._lines.pop((to, purpose), None)
        if line is not None and line.link is not None:
            line.link.abort()

    def close(self) -> None:
        """Closes every link and makes none any more."""
        self._closed = True
        lines, self._lines = self._lines, {}
        for line in lines.values():
            if line.link is not None:
                line.link.abort()

    async def _dialled(self, line: _Line, to: Address, purpose: str, timeout_ms: float) -> Link:
        async with line.lock:
            if line.link is not None and line.link.up:
                return line.link
            now = self._clock.monotonic_ms()
            if self._closed:
                raise Unreachable(to.host, to.port, "this node is stopping")
            if now < line.not_before_ms:
                await asyncio.sleep((line.not_before_ms - now) / 1_000)
            try:
                patience_ms = min(self._dial_max_ms, self._dial_first_ms * 2 ** min(line.failures, 10))
                line.link = link = await self._met(to, min(timeout_ms, patience_ms))
            except LinkError as failure:
                line.failures += 1
                self._warn(line, failure)
                pause = min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** min(line.failures - 1, 10))
                line.not_before_ms = self._clock.monotonic_ms() + pause
                raise
            line.failures, line.not_before_ms, line.warned_of = 0, 0.0, ""
            self._standing[link] = purpose
            link.when_lost(lambda: self._lost(link))
            return link

    def _warn(self, line: _Line, failure: LinkError) -> None:
        """What does not mend itself is told, once: nobody else says why two nodes do not find together."""
        if isinstance(failure, (Untrusted, LoginFailed)) and line.warned_of != failure.why:
            line.warned_of = failure.why
            log.warning("%s", failure)

    def _lost(self, link: Link) -> None:
        purpose = self._standing.pop(link)
        self._past[purpose] = self._past.get(purpose, Carried()).with_link(link)
        if not self._closed:
            self.on_lost(purpose)

    def carried(self, purpose: str) -> Carried:
        """What all links for a purpose have carried since the start."""
        carried = self._past.get(purpose, Carried())
        for link, meant in self._standing.items():
            if meant == purpose:
                carried = carried.with_link(link)
        return carried

    async def _met(self, to: Address, timeout_ms: float) -> Link:
        """A new link whose peer has said what it serves."""
        link: Link = await self._net.dial(to.host, to.port, int(timeout_ms), self._security)
        link.client_id = self._client_id
        try:
            await link.negotiate(timeout_ms=timeout_ms)
            if self._closed:
                raise Unreachable(to.host, to.port, "this node is stopping")
        except BaseException:
            link.abort()
            raise
        return link
