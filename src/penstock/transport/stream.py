"""One connection: whole frames in, lists of parts out, and no more memory than the peer has earned.

A frame is four bytes of size and that many bytes. Frames that lie whole in the shared scratch are copied out; an
incomplete one gets a buffer of its own, into which the socket then reads directly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from struct import Struct
from typing import Any, cast

from penstock.transport.intake import Intake
from penstock.transport.outbox import CHUNK_BYTES, Buffer, Outbox, joined
from penstock.transport.pacing import unpace

IN_FLIGHT_MAX = 16
IN_FLIGHT_BYTES_MAX = 4 << 20

# A read can bring thousands of tiny frames. After this many the loop gets a turn, so that others are served too.
FRAMES_PER_TURN = 32
BYTES_PER_TURN = 1 << 20

# What is written while frames of one read are being answered is joined, because every write is a system call.
_CORK_BYTES_MAX = 16 << 10

# The transport takes a chunk and is full until the socket has drained most of it.
_WRITE_HIGH_BYTES = 64 << 10
_WRITE_LOW_BYTES = 32 << 10

# A peer that we want to close gets this long to take its replies. One that has closed its half has most often gone
# altogether, which cannot be told apart, so it gets less.
LINGER_S = 5.0
EOF_LINGER_S = 1.0

_UNASKED = -2
_SIZE = Struct(">i")
_PLAIN = (bytes, bytearray)


class FrameStream(asyncio.BufferedProtocol):
    """The protocol under `server.connection` and `transport.dial`.

    Subclasses answer `frame`, and may answer `opened`, `refused`, `drained` and `lost`. A frame that `frame` has not
    finished with counts as in flight until `done(size)`; at `in_flight_max` frames or 4 MB reading stops.
    """

    __slots__ = (
        "_cork",
        "_eager",
        "_earned",
        "_eof",
        "_filled",
        "_full",
        "_head",
        "_linger",
        "_outbox",
        "_own",
        "_own_bytes",
        "_parsing",
        "_reading",
        "_rest",
        "_socket_fd",
        "bytes_in",
        "bytes_out",
        "closing",
        "frame_bytes_max",
        "in_flight",
        "in_flight_bytes",
        "in_flight_max",
        "intake",
        "loop",
        "touched",
        "transport",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, intake: Intake, frame_bytes_max: int) -> None:
        self.loop = loop
        self.intake = intake
        self.frame_bytes_max = frame_bytes_max
        self.transport: asyncio.Transport | None = None
        self.touched = intake.tick
        self.closing = False
        self.in_flight = 0
        self.in_flight_bytes = 0
        self.in_flight_max = IN_FLIGHT_MAX
        self.bytes_in = 0
        self.bytes_out = 0
        self._head = b""  # fewer than four bytes of a size
        self._own: bytearray | None = None  # the buffer of an incomplete frame
        self._own_bytes = 0  # what that frame announced
        self._filled = 0  # what of it has arrived
        self._earned = 0  # the largest frame that came to its end
        self._rest: bytearray | None = None  # frames that were read but may not be delivered yet
        self._parsing = False
        self._reading = True
        self._eof = False
        self._linger: asyncio.TimerHandle | None = None
        self._cork: list[Buffer] | None = None
        self._outbox: Outbox | None = None
        self._full = False  # the transport holds more than it wants to
        self._eager = False  # the transport wants to hold nothing
        self._socket_fd = _UNASKED  # where files can be handed over; negative when they cannot

    # What subclasses answer.

    def opened(self) -> None:
        """The connection stands."""

    def frame(self, frame: bytearray) -> bool:
        """One whole frame without its size. True when it is finished with; else `done` must follow."""
        raise AssertionError("a stream without a reader")

    def no_frame(self, beginning: bytes, size: int) -> str:
        """Words for a size that cannot be one, with the usual mistakes named."""
        if beginning[:1] == b"\x16" and beginning[1:2] == b"\x03":
            return "this looks like a TLS handshake on a plaintext listener"
        if beginning in (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"PATC", b"CONN", b"PRI "):
            return "this looks like HTTP; metrics and health are on the admin port"
        if size < 0:
            return f"a frame announces {size} bytes"
        return f"a frame announces {size} bytes; socket.request.max.bytes allows {self.frame_bytes_max}"

    def refused(self, why: str) -> None:
        """The peer sent something that is no frame; the connection is about to be closed."""

    def failed(self, why: str, cause: Exception) -> None:
        """A part could not be read while a reply was half sent; the connection is about to be cut."""

    def drained(self) -> None:
        """Everything that was sent has gone to the transport."""

    def lost(self, cause: Exception | None) -> None:
        """The connection is gone. Called once, after `opened`."""

    # Frames in.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods of asyncio.Transport but are no subclass of it.
        self.transport = transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(_WRITE_HIGH_BYTES, _WRITE_LOW_BYTES)
        unpace(transport)
        self.opened()

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._own is not None:
            return memoryview(self._own)[self._filled :]
        head = len(self._head)
        if not head:
            return self.intake.view
        self.intake.scratch[:head] = self._head
        return self.intake.view[head:]

    def buffer_updated(self, nbytes: int) -> None:
        intake = self.intake
        self.touched = intake.tick
        self.bytes_in += nbytes
        if self.closing:
            return
        if self._own is not None:
            self._fill(nbytes)
        else:
            end = nbytes + len(self._head)
            self._head = b""
            self._consume(intake.view, 0, end)
        # Asked here and not only there, because nearly every read that leaves something in flight changes nothing.
        if self._rest is not None or not self._reading or (self.in_flight and (self.saturated or intake.exhausted)):
            self._regulate()

    def _consume(self, view: memoryview, at: int, end: int) -> None:
        """Delivers the whole frames of view[at:end] and puts what is left where it belongs."""
        turn = FRAMES_PER_TURN
        self._parsing = True
        self._cork = []
        while end - at >= 4:
            (size,) = _SIZE.unpack_from(view, at)
            if not 0 <= size <= self.frame_bytes_max:
                self._refuse(bytes(view[at : at + 4]), size)
                break
            stop = at + 4 + size
            if stop > end:
                if not self._begin(size, view[at + 4 : end]):
                    self._stash(view[at:end])
                break
            if not turn or self.saturated:
                self._stash(view[at:end])
                break
            turn -= 1
            at = stop
            if not self.frame(bytearray(view[stop - size : stop])):
                self.in_flight += 1
                self.in_flight_bytes += size
                self.intake.hold(size)
            if self.closing:
                break
        else:
            self._head = bytes(view[at:end])
        self._parsing = False
        self._uncork()

    def _fill(self, nbytes: int) -> None:
        """Bytes that the socket wrote into the frame's own buffer."""
        own = self._own
        assert own is not None
        filled = self._filled + nbytes
        if filled < self._own_bytes:
            self._filled = filled
            if filled == len(own):
                self._own = self._grown(memoryview(own))
            return
        self._own = None
        self._earned = max(self._earned, filled)
        if self.frame(own):
            self.intake.release(self._own_bytes)
        else:
            self.in_flight += 1
            self.in_flight_bytes += self._own_bytes
        self._own_bytes = 0

    def _begin(self, size: int, arrived: memoryview) -> bool:
        """Gives an incomplete frame its own buffer; False when the budget has no room or others come first."""
        if self.saturated or self.intake.exhausted:
            return False
        self.intake.hold(size)
        self._own_bytes = size
        self._filled = len(arrived)
        self._own = self._grown(arrived)
        return True

    def _grown(self, arrived: memoryview) -> bytearray:
        """A larger buffer with the same beginning.

        An announced size alone is worth one scratch of memory. A peer that has sent a large frame whole gets room for
        another one like it at once: a buffer that grows is copied.
        """
        intake = self.intake
        grown = intake.room(min(self._own_bytes, max(len(intake.scratch), self._earned, 4 * len(arrived))))
        grown[: len(arrived)] = arrived
        return grown

    def _stash(self, left: memoryview) -> None:
        """Keeps frames that may not start yet. Reading stops until they are consumed."""
        self._rest = bytearray(left)
        self.intake.stash(len(left))

    def _consume_rest(self) -> None:
        rest = self._rest
        assert rest is not None
        self._rest = None
        self._consume(memoryview(rest), 0, len(rest))
        self.intake.unstash(len(rest))

    @property
    def saturated(self) -> bool:
        return self.in_flight >= self.in_flight_max or self.in_flight_bytes >= IN_FLIGHT_BYTES_MAX

    def _regulate(self) -> None:
        """Reads exactly while there is something to do with what would be read."""
        if self.closing or self.transport is None:
            return
        stuck = self.saturated
        if self._rest is not None or (self.in_flight and self.intake.exhausted and self._own is None):
            if not stuck:
                if self.intake.exhausted:
                    self.intake.wait(self)
                elif self._rest is not None:
                    self.loop.call_soon(self._resume)
            stuck = True
        if stuck == self._reading and not self._eof:
            self._reading = not stuck
            if stuck:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()

    def _resume(self) -> None:
        if self._rest is not None and not self.closing and not self.saturated:
            self._consume_rest()
        self._regulate()
        self._close_if_finished()

    def budget_freed(self) -> None:
        self._resume()

    def done(self, size: int) -> None:
        """A frame in flight is finished with."""
        if self.transport is None:
            return
        self.in_flight -= 1
        self.in_flight_bytes -= size
        self.intake.release(size)
        if not self._parsing and not self._reading:
            self._regulate()
        if self._eof:
            self._close_if_finished()

    def _refuse(self, beginning: bytes, size: int) -> None:
        self._uncork()
        self.refused(self.no_frame(beginning, size))
        self.close()

    # Parts out.

    def send(self, parts: Sequence[Any]) -> None:
        """Sends at least one part, bytes or file spans, in order. Never blocks.

        `backed_up` tells when the peer reads more slowly than we write.
        """
        if self.closing or self.transport is None:
            return
        part = parts[0]
        if self._outbox is None and len(parts) == 1 and part.__class__ in _PLAIN and not self._full:
            if self._cork is None:
                if len(part) <= CHUNK_BYTES:
                    self._write(part)
                    return
            elif len(part) <= _CORK_BYTES_MAX:
                self._cork.append(part)
                return
        if self._cork:
            self._write(b"".join(self._cork))
            self._cork.clear()
        self._emit(parts)

    @property
    def backed_up(self) -> bool:
        """Whether replies wait for the peer to read."""
        return self._outbox is not None

    def _uncork(self) -> None:
        cork = self._cork
        self._cork = None
        if cork and self.transport is not None:
            self._write(cork[0] if len(cork) == 1 else b"".join(cork))

    def _emit(self, parts: Sequence[Any]) -> None:
        outbox = self._outbox
        if outbox is not None:
            outbox.put(parts, may_hand_over=self._socket_fd >= 0)
            return
        try:
            whole = joined(parts, CHUNK_BYTES) if not self._full else None
        except Exception as cause:  # a span is somebody else's code
            self._cut(cause)
            return
        if whole is not None:
            if whole:
                self._write(whole)
            return
        if self._socket_fd == _UNASKED:
            self._socket_fd = self._bare_socket()
        self._outbox = outbox = Outbox()
        outbox.put(parts, may_hand_over=self._socket_fd >= 0)
        self._pump()

    def _bare_socket(self) -> int:
        """The descriptor of a socket that takes our bytes as they are; -1 when something stands before it."""
        assert self.transport is not None
        socket = self.transport.get_extra_info("socket")
        if socket is None or self.transport.get_extra_info("ssl_object") is not None:
            return -1
        return cast(int, socket.fileno())

    def _pump(self) -> None:
        """Moves chunks from the outbox to the transport until that is full or the loop deserves a turn."""
        outbox, transport = self._outbox, self.transport
        # The descriptor of a transport that is closing may be somebody else's already.
        if outbox is None or transport is None or transport.is_closing():
            return
        turn = BYTES_PER_TURN
        try:
            while outbox and not self._full and turn > 0:
                if outbox.hands_over:
                    turn -= self._hand_over(outbox, transport, turn)
                    if turn <= 0:
                        break
                # Of a long span this is its edge. If the socket is full, the transport waits with it for room.
                chunk = outbox.take()
                turn -= len(chunk)
                self._write(chunk)
        except ConnectionError:
            self.abort()
            return
        except Exception as cause:  # a span is somebody else's code; whatever it raises, half a reply is out
            self._cut(cause)
            return
        if outbox:
            if not self._full:
                self.loop.call_soon(self._pump)
            return
        self._outbox = None
        if self._eager:
            self._eager = False
            transport.set_write_buffer_limits(_WRITE_HIGH_BYTES, _WRITE_LOW_BYTES)
        if self.closing:
            transport.close()
        else:
            self.drained()
            self._close_if_finished()

    def _hand_over(self, outbox: Outbox, transport: asyncio.Transport, room: int) -> int:
        """Lets the kernel send from the page cache, where nothing of the transport's could be overtaken."""
        if not self._eager:
            # From here on a write is tried at once, and the least that is left of it stops us until it is gone.
            self._eager = True
            transport.set_write_buffer_limits(0)
        if transport.get_write_buffer_size() or transport.is_closing():
            return 0
        sent = outbox.hand_over(self._socket_fd, room)
        self.bytes_out += sent
        return sent

    def _cut(self, cause: Exception) -> None:
        self.failed("a reply could not be read to its end", cause)
        self.abort()

    def _write(self, data: Buffer) -> None:
        assert self.transport is not None
        self.bytes_out += len(data)
        self.transport.write(data)

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self.touched = self.intake.tick
        self._full = False
        self._pump()

    # The end.

    def eof_received(self) -> bool:
        """A peer that closed its sending half still gets the replies it asked for, for a while."""
        if not self.in_flight and self._outbox is None and self._rest is None:
            return False
        self._eof = True
        self._reading = False
        self._linger = self.loop.call_later(EOF_LINGER_S, self.abort)
        return True

    def _close_if_finished(self) -> None:
        if self._eof and not self.in_flight and self._outbox is None and self._rest is None:
            self.close()

    def close(self) -> None:
        """Reads no more; what was sent before still leaves, within the linger time."""
        if self.closing or self.transport is None:
            return
        self._uncork()
        self.closing = True
        if self._outbox is None:
            self.transport.close()
        elif self._reading:
            self._reading = False
            self.transport.pause_reading()
        if self._linger is None:
            self._linger = self.loop.call_later(LINGER_S, self.abort)

    def abort(self) -> None:
        """Cuts the connection now."""
        self.closing = True
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closing = True
        self.transport = None
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        self.intake.forget(self)
        if self._rest is not None:
            self.intake.unstash(len(self._rest))
        self.intake.release(self.in_flight_bytes + self._own_bytes)
        self._own = self._rest = self._outbox = None
        self.lost(exc)
