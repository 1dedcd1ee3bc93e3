"""TLS between a socket and a FrameStream, which notices nothing: the same object is the protocol of the socket's
transport and the transport of the stream.

Ciphertext is read into a scratch that all connections of a loop share, and decrypted straight into the stream's buffer
(`Intake`'s scratch, or the buffer of a large frame). What a stream writes is encrypted at once, in pieces; it writes
only while the socket drains, so nothing waits here.

| state | bytes come | handshake done | stream closes | peer says close_notify or FIN | time is up |
|---|---|---|---|---|---|
| greeting (servers) | kept until a whole record is there, then shaking | - | - | failed | failed |
| shaking | a step, when it is its turn | the stream is made, open | - | failed | failed |
| open | to the stream, unless it has paused | - | close_notify, closed | the stream may finish its replies | - |
| closed | dropped | - | - | - | - |
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Any, Final, Protocol, cast

from penstock.transport.tls.failures import Kind, TlsFailure
from penstock.transport.tls.greeting import check_answer, hello_bytes
from penstock.transport.tls.layer import PIECE_BYTES, TlsLayer
from penstock.transport.tls.turns import HandshakeTurns

HANDSHAKE_TIMEOUT_S: Final = 10.0
CIPHERTEXT_BYTES: Final = 64 << 10
"""What is read from a socket at once. More costs a connection that pauses the memory of it."""


UNREAD_BYTES_MAX: Final = 1 << 20
"""A stream stops writing long before this much waits for the peer."""


class State(Enum):
    GREETING = auto()
    SHAKING = auto()
    OPEN = auto()
    CLOSED = auto()


class TlsShared:
    """What all TLS connections of a loop share: a scratch for ciphertext, and turns of handshakes."""

    __slots__ = ("loop", "turns", "view")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.turns = HandshakeTurns(loop)
        self.view = memoryview(bytearray(CIPHERTEXT_BYTES))


Told = Callable[["TlsStream", TlsFailure | None], None]
"""Told that a handshake is done (None), or why a connection failed, before that or afterwards.

Not of clients that come, say nothing and go: load balancers look for a listener that way every few seconds."""


class TlsTerms:
    """What the connections of one listener, or to one kind of listener, have in common.

    `context` may be replaced at any time: whoever says hello from then on gets the new one.
    """

    __slots__ = ("context", "handshake_timeout_s", "server_side", "shared", "told")

    def __init__(
        self,
        shared: TlsShared,
        context: ssl.SSLContext,
        told: Told,
        *,
        server_side: bool,
        handshake_timeout_s: float = HANDSHAKE_TIMEOUT_S,
    ) -> None:
        self.shared = shared
        self.context = context
        self.told = told
        self.server_side = server_side
        self.handshake_timeout_s = handshake_timeout_s


class Behind(Protocol):
    """What is behind the TLS of a connection: a FrameStream, or anything else that reads into buffers of its own."""

    def connection_made(self, transport: asyncio.BaseTransport, /) -> None: ...
    def connection_lost(self, exc: Exception | None, /) -> None: ...
    def get_buffer(self, sizehint: int, /) -> memoryview: ...
    def buffer_updated(self, nbytes: int, /) -> None: ...
    def eof_received(self) -> bool | None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...


class TlsStream(asyncio.BufferedProtocol, asyncio.Transport):
    """One connection. `make` gives what is behind it, and is called when the handshake is done."""

    __slots__ = (
        "_eof", "_failure", "_held", "_hello", "_inner", "_layer", "_make", "_parked", "_paused", "_socket", "_state",
        "_terms", "_timer", "_told", "host",
    )  # fmt: skip

    def __init__(
        self, terms: TlsTerms, make: Callable[[], Behind], *, host: str | None = None, told: Told | None = None
    ) -> None:
        """`host` is whom we dial; `told` hears of this connection instead of `terms.told`."""
        self._terms = terms
        self._make = make
        self._told = told
        self.host = host
        self._socket: asyncio.Transport | None = None
        self._inner: Behind | None = None
        self._layer: TlsLayer | None = None
        self._state = State.GREETING
        self._hello: bytearray | None = None  # what has come of the first record
        self._timer: asyncio.Handle | None = None
        self._failure: TlsFailure | None = None
        self._parked = False  # it waits for its turn
        self._paused = False  # the stream wants nothing more for now
        self._held = False  # it said so before it had all that had come
        self._eof = False  # the peer sends nothing more

    # The protocol of the socket's transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods of asyncio.Transport but are no subclass of it.
        self._socket = cast(asyncio.Transport, transport)
        terms = self._terms
        self._timer = terms.shared.loop.call_later(terms.handshake_timeout_s, self._late)
        if not terms.server_side:
            self._state = State.SHAKING
            self._begin(b"")

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._terms.shared.view

    def buffer_updated(self, nbytes: int) -> None:
        ciphertext = self._terms.shared.view[:nbytes]
        if self._state is State.OPEN:
            if not self._eof:
                self._decrypt(ciphertext)
        elif self._state is State.SHAKING:
            self._shake_with(ciphertext)
        elif self._state is State.GREETING:
            self._greet(ciphertext)

    def eof_received(self) -> bool:
        if self._state is State.OPEN:
            if not self._eof:
                self._end()
        elif self._state is not State.CLOSED:
            self._fail(self._ended_early())
        return True  # whatever is to be closed is closed

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._terms.shared.turns.forget(self)
        if self._state in (State.GREETING, State.SHAKING):
            self._report(self._ended_early())
        self._state = State.CLOSED
        inner, self._inner = self._inner, None
        self._socket = self._layer = self._hello = None
        if inner is not None:
            inner.connection_lost(self._failure or exc)

    # The handshake.

    def _greet(self, ciphertext: memoryview) -> None:
        hello = self._hello
        if hello is None:
            hello = self._hello = bytearray()
        hello += ciphertext
        try:
            wanted = hello_bytes(hello)
        except TlsFailure as failure:
            self._fail(failure)
            return
        if wanted and len(hello) >= wanted:
            self._state = State.SHAKING
            self._await_turn()

    def _shake_with(self, ciphertext: memoryview) -> None:
        layer = self._layer
        assert layer is not None, "nothing is read while the first turn is waited for"
        if not layer.handshake_bytes:
            # A server's first words. A client's were looked at before there was a layer.
            try:
                check_answer(bytes(ciphertext[:4]))
            except TlsFailure as failure:
                self._fail(failure)
                return
        layer.receive(ciphertext)
        self._await_turn()

    def _await_turn(self) -> None:
        """Takes a step, now or in its turn. Meanwhile the socket keeps what comes."""
        if not self._terms.shared.turns.ask(self):
            assert self._socket is not None, "it is connected"
            self._parked = True
            self._socket.pause_reading()

    def take_step(self) -> None:
        """A step of the handshake, in its turn."""
        if self._parked:
            self._parked = False
            assert self._socket is not None, "who is gone is forgotten"
            self._socket.resume_reading()
        hello, self._hello = self._hello, None
        if self._layer is None:
            self._begin(hello or b"")
        else:
            self._shake()

    def _begin(self, hello: bytes | bytearray) -> None:
        terms = self._terms
        self._layer = layer = TlsLayer(terms.context, server_side=terms.server_side, host=self.host)
        if hello:
            layer.receive(hello)
        self._shake()

    def _shake(self) -> None:
        layer, socket = self._layer, self._socket
        assert layer is not None, "steps are taken with a layer"
        assert socket is not None, "steps are taken on a connection"
        try:
            done = layer.shake()
        except TlsFailure as failure:
            self._fail(failure)
            return
        if layer.has_output:
            socket.write(layer.take())
        if done:
            self._open()

    def _open(self) -> None:
        self._stop_timer()
        self._state = State.OPEN
        self._inner = inner = self._make()
        self._report(None)
        inner.connection_made(self)
        self._deliver()

    def _late(self) -> None:
        # After a stall of the loop the answer may lie unread in the socket, and is looked at before the second of
        # these.
        self._timer = self._terms.shared.loop.call_soon(self._later)

    def _later(self) -> None:
        self._timer = self._terms.shared.loop.call_soon(self._expire)

    def _expire(self) -> None:
        seconds = self._terms.handshake_timeout_s
        self._fail(TlsFailure(Kind.TIMED_OUT, f"no TLS handshake within {seconds:g} s"))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ended_early(self) -> TlsFailure:
        if self._terms.server_side:
            return TlsFailure(Kind.ENDED, "the client ended the connection before the TLS handshake was done")
        if self._layer is not None and self._layer.handshake_bytes:
            return TlsFailure(Kind.ENDED, "it ended the connection in the middle of the TLS handshake")
        why = "it ended the connection instead of answering in TLS; is this a plaintext listener?"
        return TlsFailure(Kind.SILENT, why)

    # Bytes in.

    def _decrypt(self, ciphertext: memoryview) -> None:
        layer = self._layer
        assert layer is not None, "an open connection has a layer"
        for at in range(0, len(ciphertext), PIECE_BYTES):
            layer.receive(ciphertext[at : at + PIECE_BYTES])
            if not self._held:
                self._deliver()
            if self._state is not State.OPEN:
                break

    def _deliver(self) -> None:
        """Gives the stream what has come, until that is all or the stream has enough."""
        layer = self._layer
        assert layer is not None, "an open connection has a layer"
        while self._inner is not None and self._state is State.OPEN:
            if self._paused:
                self._held = True
                return
            try:
                count = layer.read_into(self._inner.get_buffer(-1))
            except TlsFailure as failure:
                self._fail(failure)
                return
            if count:
                self._inner.buffer_updated(count)
            if layer.drained:
                break
        if self._state is not State.OPEN:
            return
        if layer.has_output:
            self._answer_update(layer)
        if layer.ended and not self._eof:
            self._end()

    def _end(self) -> None:
        """The peer sends nothing more. The stream may still have replies for it."""
        self._eof = True
        if self._inner is not None and not self._inner.eof_received():
            self.close()

    def _go_on(self) -> None:
        if self._paused or not self._held or self._state is not State.OPEN:
            return
        self._held = False
        self._deliver()
        if self._socket is not None and not self._paused:
            self._socket.resume_reading()

    # The transport of the stream.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What the socket's transport says, `ssl_object`, and `tls_layer`, which knows the peer's certificate."""
        if self._layer is not None and name in ("ssl_object", "tls_layer"):
            return self._layer if name == "tls_layer" else self._layer.ssl_object
        return default if self._socket is None else self._socket.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._state is not State.OPEN or not data:
            return
        layer, socket = self._layer, self._socket
        assert layer is not None, "an open connection has a layer"
        assert socket is not None, "and a socket"
        try:
            if len(data) <= PIECE_BYTES:
                socket.write(layer.encrypt(data))
            else:
                socket.writelines(layer.pieces(data))
        except TlsFailure as failure:
            self._fail(failure)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if self._socket is not None:
            self._socket.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return 0 if self._socket is None else self._socket.get_write_buffer_size()

    def can_write_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return self._state is State.CLOSED or self._socket is None or self._socket.is_closing()

    def is_reading(self) -> bool:
        return not self._paused and not self.is_closing()

    def pause_reading(self) -> None:
        self._paused = True
        if self._socket is not None:
            self._socket.pause_reading()

    def resume_reading(self) -> None:
        self._paused = False
        if self._held:
            # Not from here: the caller is in the middle of its own request.
            self._terms.shared.loop.call_soon(self._go_on)
        elif self._socket is not None:
            self._socket.resume_reading()

    def close(self) -> None:
        """What was written before still leaves, and close_notify after it."""
        if self._state is State.CLOSED or self._socket is None:
            return
        self._state = State.CLOSED
        self._stop_timer()
        self._terms.shared.turns.forget(self)
        if self._layer is not None:
            last = self._layer.farewell()
            if last:
                self._socket.write(last)
        self._socket.close()

    def abort(self) -> None:
        self._state = State.CLOSED
        self._stop_timer()
        # The loop tells of the end of the socket only later, and a turn may come before that.
        self._terms.shared.turns.forget(self)
        if self._socket is not None:
            self._socket.abort()

    # Failures.

    def _answer_update(self, layer: TlsLayer) -> None:
        """Sends what OpenSSL has to say by itself, unless the peer asks and asks and does not read the answers."""
        socket = self._socket
        assert socket is not None, "it is open"
        socket.write(layer.take())
        if socket.get_write_buffer_size() > UNREAD_BYTES_MAX:
            self._fail(TlsFailure(Kind.TOO_MUCH, "key updates are asked for, and the answers are not read"))

    def _fail(self, failure: TlsFailure) -> None:
        """Tells the peer by an alert, if it speaks TLS at all, and us by a sentence; then the connection is over."""
        self._failure = failure
        socket, layer = self._socket, self._layer
        if socket is None or self._state is State.CLOSED:
            return
        self._state = State.CLOSED
        self._stop_timer()
        self._terms.shared.turns.forget(self)
        alert = layer.farewell() if layer is not None else b""
        if alert:
            socket.write(alert)
        self._report(failure)
        # A peer that does not read must not keep a connection that is over.
        if socket.get_write_buffer_size() or failure.kind is Kind.TIMED_OUT:
            socket.abort()
        else:
            socket.close()

    def _report(self, outcome: TlsFailure | None) -> None:
        said_nothing = self._terms.server_side and self._layer is None and self._hello is None
        if outcome is None or outcome.kind is not Kind.ENDED or not said_nothing:
            (self._told or self._terms.told)(self, outcome)


async def dial_tls(
    terms: TlsTerms, make: Callable[[], Behind], host: str, port: int, *, called: str | None = None
) -> TlsStream:
    """A connection whose handshake is done. Raises OSError when there is none, TlsFailure when it is not safe.

    `called` is whom the certificate has to name, if that is not `host`. Bound it in time from outside; the handshake
    has its own bound as well.
    """
    loop = terms.shared.loop
    done: asyncio.Future[None] = loop.create_future()

    def told(_stream: TlsStream, failure: TlsFailure | None) -> None:
        if done.done():
            return
        if failure is None:
            done.set_result(None)
        else:
            done.set_exception(failure)

    stream = TlsStream(terms, make, host=called or host, told=told)
    try:
        await loop.create_connection(lambda: stream, host, port)
        await done
    except BaseException:
        stream.abort()
        if not done.cancel() and not done.cancelled():
            done.exception()  # the peer went while the dial was given up: nobody waits to hear it
        raise
    return stream
