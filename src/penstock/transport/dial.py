"""The asking side of a connection: requests out, replies back by correlation id. Clients and brokers share it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from struct import Struct
from typing import Any, TypeAlias

from penstock.model.errors import UNSUPPORTED_VERSION, PenstockError, error_of
from penstock.protocol.frame import decode_response, encode_request, encode_request_parts
from penstock.protocol.registry import API_VERSIONS, APIS
from penstock.protocol.wire import Malformed, schema_of
from penstock.transport.intake import Intake
from penstock.transport.stream import FrameStream

_CORRELATION = Struct(">i")
_CORRELATION_MAX = 0x7FFFFFFF
_PRODUCE = 0

OnReply: TypeAlias = Callable[[Any, "LinkError | None"], None]
"""Called in the read callback with (reply, None) or (None, why there is none)."""


class LinkError(PenstockError):
    """A request got no answer. `host` and `port` say from whom."""

    def __init__(self, host: str, port: int, why: str) -> None:
        super().__init__(f"{host}:{port}: {why}")
        self.host, self.port, self.why = host, port, why


class Unreachable(LinkError):
    """No connection could be made."""


class Severed(LinkError):
    """The connection ended before the reply came; whether the request took effect is unknown."""


class TimedOut(LinkError):
    """The reply did not come in time; whether the request took effect is unknown."""


class Unsupported(LinkError):
    """Both sides know the API, but no version of it in common; or the peer lacks it."""


class _Asked:
    """One request that waits for its reply."""

    __slots__ = ("key", "on_reply", "timer", "version")

    def __init__(self, key: int, version: int, on_reply: OnReply) -> None:
        self.key = key
        self.version = version
        self.on_reply = on_reply
        self.timer: asyncio.TimerHandle | None = None


def _reply_version(asked: _Asked, frame: bytearray) -> int:
    """A peer that is older than an ApiVersions request answers in version 0, with the error in front to show it."""
    if asked.key == API_VERSIONS and frame[4:6] == UNSUPPORTED_VERSION.code.to_bytes(2, "big"):
        return 0
    return asked.version


class Link(FrameStream):
    """One connection to a broker. Requests may be pipelined; each gets its own reply, error or timeout."""

    __slots__ = ("_asked", "_next_correlation", "_on_lost", "client_id", "host", "port", "versions", "why_lost")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, intake: Intake, host: str, port: int, frame_bytes_max: int
    ) -> None:
        super().__init__(loop, intake, frame_bytes_max)
        self.host = host
        self.port = port
        self.client_id: str | None = "penstock"
        self.versions: dict[int, tuple[int, int]] = {}
        self.why_lost = ""
        self._asked: dict[int, _Asked] = {}
        self._next_correlation = 0
        self._on_lost: Callable[[], None] | None = None

    @property
    def up(self) -> bool:
        return self.transport is not None and not self.closing

    def when_lost(self, callback: Callable[[], None]) -> None:
        """Calls back once when the link is gone, after all its requests were told."""
        self._on_lost = callback

    def post(self, message: object, version: int, timeout_ms: float, on_reply: OnReply) -> None:
        """Sends a request; `on_reply` is called exactly once, never from inside this call.

        The reply is handled in the read callback itself, so that a quorum's answer is not queued behind other work.
        """
        asked = _Asked(schema_of(message.__class__).key, version, on_reply)
        if not self.up:
            self.loop.call_soon(on_reply, None, Severed(self.host, self.port, self.why_lost or "the link is closed"))
            return
        correlation_id = self._correlation()
        parts = self._encoded(correlation_id, asked.key, message, version)
        self._asked[correlation_id] = asked
        asked.timer = self.loop.call_later(timeout_ms / 1000, self._expire, correlation_id, timeout_ms)
        self.send(parts)

    def tell(self, message: object, version: int) -> None:
        """Sends a request that gets no reply (Produce with acks=0)."""
        if not self.up:
            raise Severed(self.host, self.port, self.why_lost or "the link is closed")
        key = schema_of(message.__class__).key
        self.send(self._encoded(self._correlation(), key, message, version))

    def request(self, message: object, version: int, timeout_ms: float = 30_000) -> asyncio.Future[Any]:
        """The reply message; `Severed` or `TimedOut` when there is none. Awaiting it late loses nothing."""
        future: asyncio.Future[Any] = self.loop.create_future()

        def settle(reply: Any, error: LinkError | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(reply)
            else:
                future.set_exception(error)

        self.post(message, version, timeout_ms, settle)
        return future

    async def negotiate(self, name: str = "penstock", version: str = "0", timeout_ms: float = 30_000) -> None:
        """Asks which versions the peer serves and keeps them in `versions`.

        A peer that is older than our request answers with version 0 and the range that it knows; then we ask again
        in its newest.
        """
        api = APIS[API_VERSIONS]
        ask = api.request()(client_software_name=name, client_software_version=version)
        reply = await self.request(ask, api.max, timeout_ms)
        if reply.error_code == UNSUPPORTED_VERSION.code:
            theirs = max((known.max_version for known in reply.api_keys if known.api_key == API_VERSIONS), default=0)
            reply = await self.request(ask, min(theirs, api.max), timeout_ms)
        if reply.error_code:
            raise Unsupported(self.host, self.port, f"ApiVersions was refused: {error_of(reply.error_code).name}")
        self.versions = {known.api_key: (known.min_version, known.max_version) for known in reply.api_keys}

    def newest(self, key: int, ours_max: int | None = None) -> int:
        """The newest version of an API that both sides know; `Unsupported` when there is none."""
        api = APIS[key]
        if key not in self.versions:
            raise Unsupported(self.host, self.port, f"the broker does not serve {api.name}")
        theirs_min, theirs_max = self.versions[key]
        version = min(theirs_max, api.max if ours_max is None else ours_max)
        if version < max(theirs_min, api.min):
            raise Unsupported(
                self.host, self.port, f"{api.name}: we know {api.min}-{api.max}, the broker {theirs_min}-{theirs_max}"
            )
        return version

    def frame(self, frame: bytearray) -> bool:
        if len(frame) < 4:
            self._sever(f"a reply of {len(frame)} bytes")
            return True
        (correlation_id,) = _CORRELATION.unpack_from(frame)
        asked = self._asked.pop(correlation_id, None)
        if asked is None:
            self._sever(f"a reply to a request that was never sent ({correlation_id})")
            return True
        if asked.timer is None:  # it timed out before; nobody waits any more
            return True
        asked.timer.cancel()
        try:
            _, reply = decode_response(frame, asked.key, _reply_version(asked, frame))
        except Malformed as broken:
            why = f"a malformed {APIS[asked.key].name} reply: {broken}"
            asked.on_reply(None, Severed(self.host, self.port, why))
            self._sever(why)
            return True
        asked.on_reply(reply, None)
        return True

    def refused(self, why: str) -> None:
        self.why_lost = why

    def lost(self, cause: Exception | None) -> None:
        why = self.why_lost or (f"the connection broke: {cause}" if cause else "the broker closed the connection")
        self.why_lost = why
        waiting, self._asked = self._asked, {}
        for asked in waiting.values():
            if asked.timer is not None:
                asked.timer.cancel()
                asked.on_reply(None, Severed(self.host, self.port, why))
        if self._on_lost is not None:
            self._on_lost()

    def _encoded(self, correlation_id: int, key: int, message: object, version: int) -> list[Any]:
        """The frame; batches of records go to the socket from where they lie."""
        if key == _PRODUCE:
            return encode_request_parts(correlation_id, self.client_id, message, version)
        return [encode_request(correlation_id, self.client_id, message, version)]

    def _correlation(self) -> int:
        correlation_id = self._next_correlation
        self._next_correlation = 0 if correlation_id == _CORRELATION_MAX else correlation_id + 1
        return correlation_id

    def _expire(self, correlation_id: int, timeout_ms: float) -> None:
        asked = self._asked.get(correlation_id)
        if asked is not None:
            # The entry stays, so that a late reply is known and dropped.
            asked.timer = None
            name = APIS[asked.key].name
            asked.on_reply(None, TimedOut(self.host, self.port, f"no reply to {name} within {timeout_ms:.0f} ms"))

    def _sever(self, why: str) -> None:
        self.why_lost = why
        self.abort()
