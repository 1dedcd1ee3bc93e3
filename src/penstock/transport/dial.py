"""The asking side of a connection: requests out, replies back by correlation id. Clients and brokers share it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from struct import Struct
from typing import Any, TypeAlias

from penstock.model.errors import (
    SASL_AUTHENTICATION_FAILED,
    UNSUPPORTED_VERSION,
    ErrorCode,
    PenstockError,
    error_of,
)
from penstock.protocol.frame import decode_response, encode_request, encode_request_parts, frame_request
from penstock.protocol.registry import API_VERSIONS, APIS
from penstock.protocol.wire import Malformed, schema_of
from penstock.transport.intake import Intake
from penstock.transport.stream import FrameStream

_CORRELATION = Struct(">i")
_CORRELATION_MAX = 0x7FFFFFFF
_PRODUCE = 0

OnReply: TypeAlias = Callable[[Any, "LinkError | None"], None]
"""Called in the read callback with (reply, None) or (None, why there is none)."""
Reader: TypeAlias = Callable[[bytearray], Any]
"""Makes a reply of its frame without the size. `Malformed` when it is none."""

FIRST_REPLY_BYTES_MAX = 1 << 20
"""A peer that has not introduced itself says no more than which APIs it serves. What another protocol begins with, read
as a size, is hundreds of megabytes."""

# A timer may ring a hair before its time; looking again and again until then would hold the loop.
_EARLY_S = 0.001


class LinkError(PenstockError):
    """A request got no answer. `host` and `port` say from whom."""

    def __init__(self, host: str, port: int, why: str) -> None:
        super().__init__(f"{host}:{port}: {why}")
        self.host, self.port, self.why = host, port, why


class Unreachable(LinkError):
    """No connection could be made."""


class Foreign(LinkError):
    """Somebody answers at the address, and not in Kafka's protocol."""


class Untrusted(LinkError):
    """TLS found no connection that both sides could trust. Trying again does not help before somebody mends it."""


class LoginFailed(LinkError):
    """The peer did not take our login, or did not prove itself. Trying again with the same credentials does not help.

    `error` is the code that it answered.
    """

    def __init__(self, host: str, port: int, why: str, error: ErrorCode = SASL_AUTHENTICATION_FAILED) -> None:
        super().__init__(host, port, why)
        self.error = error


class Severed(LinkError):
    """The connection ended before the reply came; whether the request took effect is unknown."""


class Silent(Severed):
    """The peer ended a new connection without a byte: it is being stopped, or expects something else to be said."""


class TimedOut(LinkError):
    """The reply did not come in time; whether the request took effect is unknown."""


class Unsupported(LinkError):
    """Both sides know the API, but no version of it in common; or the peer lacks it."""


class _Asked:
    """One request that waits for its reply."""

    __slots__ = ("deadline", "key", "late", "on_reply", "read", "timeout_ms", "version")

    def __init__(self, key: int, version: int, on_reply: OnReply, timeout_ms: float, read: Reader | None) -> None:
        self.key = key
        self.version = version
        self.on_reply = on_reply
        self.timeout_ms = timeout_ms
        self.read = read
        self.deadline = 0.0
        self.late = False  # its asker was told that there is no reply


def _reply_version(asked: _Asked, frame: bytearray) -> int:
    """A peer that is older than an ApiVersions request answers in version 0, with the error in front to show it."""
    if asked.key == API_VERSIONS and frame[4:6] == UNSUPPORTED_VERSION.code.to_bytes(2, "big"):
        return 0
    return asked.version


class Link(FrameStream):
    """One connection to a broker. Requests may be pipelined; each gets its own reply, error or timeout."""

    __slots__ = (
        "_asked", "_distrusted", "_foreign", "_next_correlation", "_on_lost", "_unanswered", "_watch", "_watch_at",
        "client_id", "features", "features_epoch", "host", "over_tls", "port", "versions", "why_lost",
    )  # fmt: skip

    def __init__(
        self, loop: asyncio.AbstractEventLoop, intake: Intake, host: str, port: int, frame_bytes_max: int
    ) -> None:
        super().__init__(loop, intake, frame_bytes_max)
        self.host = host
        self.port = port
        self.client_id: str | None = "penstock"
        self.versions: dict[int, tuple[int, int]] = {}
        self.features: dict[str, int] = {}
        self.features_epoch = -1
        self.why_lost = ""
        self._foreign = False  # the peer sent what is no frame
        self._distrusted = False  # TLS ended it
        self.over_tls = False
        self._asked: dict[int, _Asked] = {}
        self._next_correlation = self._unanswered = 0
        self._on_lost: Callable[[], None] | None = None
        # One timer for all that is asked: most replies come, and a timer of their own would be made and thrown away.
        self._watch: asyncio.TimerHandle | None = None
        self._watch_at = 0.0

    @property
    def up(self) -> bool:
        return self.transport is not None and not self.closing

    @property
    def asked(self) -> int:
        """Requests sent over this link."""
        return self._next_correlation

    @property
    def answered(self) -> int:
        return self._next_correlation - self._unanswered - len(self._asked)

    def when_lost(self, callback: Callable[[], None]) -> None:
        """Calls back once when the link is gone, after all its requests were told."""
        self._on_lost = callback

    def post(self, message: object, version: int, timeout_ms: float, on_reply: OnReply) -> None:
        """Sends a request; `on_reply` is called exactly once, never from inside this call.

        The reply is handled in the read callback itself, so that a quorum's answer is not queued behind other work.
        """
        asked = _Asked(schema_of(message.__class__).key, version, on_reply, timeout_ms, None)
        if not self.up:
            self._refuse_to_send(on_reply)
            return
        correlation_id = self._correlation()
        parts = self._encoded(correlation_id, asked.key, message, version)
        self._expect(correlation_id, asked)
        self.send(parts)

    def post_encoded(
        self, key: int, version: int, body: bytes | bytearray, timeout_ms: float, on_reply: OnReply, read: Reader
    ) -> None:
        """As `post`, of a request whose body is encoded already and whose reply `read` decodes."""
        if not self.up:
            self._refuse_to_send(on_reply)
            return
        correlation_id = self._correlation()
        self._expect(correlation_id, _Asked(key, version, on_reply, timeout_ms, read))
        self.send((frame_request(correlation_id, self.client_id, key, version, body),))

    def _refuse_to_send(self, on_reply: OnReply) -> None:
        self.loop.call_soon(on_reply, None, Severed(self.host, self.port, self.why_lost or "the link is closed"))

    def _expect(self, correlation_id: int, asked: _Asked) -> None:
        self._asked[correlation_id] = asked
        asked.deadline = deadline = self.loop.time() + asked.timeout_ms / 1000
        if self._watch is None or deadline < self._watch_at:
            self._watch_until(deadline)

    def _watch_until(self, deadline: float) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self._watch_at = deadline
        self._watch = self.loop.call_at(deadline, self._look_for_late)

    def _look_for_late(self) -> None:
        """Tells those whose time is over that there is no reply, and watches on for the others."""
        self._watch = None
        now = self.loop.time() + _EARLY_S
        late = [asked for asked in self._asked.values() if not asked.late and asked.deadline <= now]
        for asked in late:
            # The entry stays, so that a late reply is known and dropped.
            asked.late = True
        left = [asked.deadline for asked in self._asked.values() if not asked.late]
        if left:
            self._watch_until(min(left))
        for asked in late:
            why = f"no reply to {APIS[asked.key].name} within {asked.timeout_ms:.0f} ms"
            asked.on_reply(None, TimedOut(self.host, self.port, why))

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
        """Asks which versions the peer serves and keeps them in `versions`, and the cluster's levels in `features`.

        A peer that is older than our request answers with version 0 and the range that it knows; then we ask again
        in its newest.
        """
        api = APIS[API_VERSIONS]
        ask = api.request()(client_software_name=name, client_software_version=version)
        whole, self.frame_bytes_max = self.frame_bytes_max, FIRST_REPLY_BYTES_MAX
        try:
            reply = await self.request(ask, api.max, timeout_ms)
        except Severed:
            if self._foreign:
                raise Foreign(self.host, self.port, self.why_lost) from None
            if self._distrusted:
                raise Untrusted(self.host, self.port, self.why_lost) from None
            if not self.bytes_in:
                raise Silent(self.host, self.port, self._why_silent()) from None
            raise
        if reply.error_code == UNSUPPORTED_VERSION.code:
            theirs = max((known.max_version for known in reply.api_keys if known.api_key == API_VERSIONS), default=0)
            reply = await self.request(ask, min(theirs, api.max), timeout_ms)
        self.frame_bytes_max = whole
        if reply.error_code:
            raise Unsupported(self.host, self.port, f"ApiVersions was refused: {error_of(reply.error_code).name}")
        self.versions = {known.api_key: (known.min_version, known.max_version) for known in reply.api_keys}
        self.features = {feature.name: feature.max_version_level for feature in reply.finalized_features}
        self.features_epoch = reply.finalized_features_epoch

    def _why_silent(self) -> str:
        if self.over_tls:
            return f"{self.why_lost} after the TLS handshake; does it want a certificate of ours? Its log says why"
        return (
            f"{self.why_lost} without a word; is this a listener with TLS? "
            "Then set security.protocol to SSL or SASL_SSL"
        )

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
        if asked.late:  # nobody waits any more
            return True
        try:
            if asked.read is not None:
                reply = asked.read(frame)
            else:
                _, reply = decode_response(frame, asked.key, _reply_version(asked, frame))
        except Malformed as broken:
            why = f"a malformed {APIS[asked.key].name} reply: {broken}"
            asked.on_reply(None, Severed(self.host, self.port, why))
            self._sever(why)
            return True
        asked.on_reply(reply, None)
        return True

    def no_frame(self, beginning: bytes, size: int) -> str:
        if beginning[:2] in (b"\x15\x03", b"\x16\x03"):
            return (
                "it answers in TLS, and was dialled without: "
                "set security.protocol to SSL or SASL_SSL, or dial a plaintext listener"
            )
        if beginning in (b"HTTP", b"<htm", b"<HTM", b"<!do", b"<!DO"):
            return "it answers in HTTP, not Kafka"
        if beginning == b"SSH-":
            return "it answers in SSH, not Kafka"
        return f"its answer is no reply of Kafka's: a frame of {size} bytes"

    def refused(self, why: str) -> None:
        self.why_lost = why
        self._foreign = True

    def lost(self, cause: Exception | None) -> None:
        if isinstance(cause, PenstockError):  # the system's own are OSErrors
            from penstock.transport.tls.advice import why_ended

            self._distrusted = True
            self.why_lost = self.why_lost or why_ended(cause)
        why = self.why_lost or (f"the connection broke: {cause}" if cause else "the broker closed the connection")
        self.why_lost = why
        waiting, self._asked = self._asked, {}
        self._unanswered += len(waiting)
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        for asked in waiting.values():
            if not asked.late:
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

    def _sever(self, why: str) -> None:
        self.why_lost = why
        self.abort()
