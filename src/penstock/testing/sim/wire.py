"""One end of a simulated TCP connection: a transport that asyncio protocols cannot tell from a real one.

Bytes arrive once, whole and in order, or the connection ends: TCP promises that much. Everything else is up to the
network: when they arrive, in which pieces, whether at all, and whether the other end hears that we are gone.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from penstock.testing.sim.loop import SimLoop

FIN, RST = "FIN", "RST"

SOCKET_BUFFER_BYTES = 256 << 10
"""What the two kernels hold for a connection beyond what the transport itself holds back."""


class Carrier(Protocol):
    """What an end asks of the network between it and its peer."""

    def send(self, end: End, item: bytes | str, /) -> None: ...

    def forget(self, end: End, /) -> None: ...


class End(asyncio.Transport):
    """What one process holds of a connection. `peer` is the other end."""

    peer: End

    def __init__(self, network: Carrier, loop: SimLoop, host: str, port: int) -> None:
        super().__init__()
        self.network, self.loop, self.host, self.port = network, loop, host, port
        self.protocol: Any = None
        self.owed = 0  # arrivals that are held back, by a partition or by a whim
        self.held = False  # by a whim: what was sent first is late, and the rest waits behind it
        self.arrives_last = 0.0
        self.closed = False  # this process has let go of it
        self.cut = False  # the connection was lost: nothing more arrives, and both ends will hear of it
        self.flight: deque[bytes | str] = deque()  # sent by us, not arrived yet
        self.unread_bytes = 0  # sent by us, not read by the peer's protocol yet
        self._closing = False
        self._finished = False  # the peer closed its sending half
        self._inbox: deque[bytes | str] = deque()  # arrived here, not read yet
        self._reading = True
        self._full = False
        self._high, self._low = 64 << 10, 16 << 10

    def __repr__(self) -> str:
        return f"{self.host}:{self.port}->{self.peer.host}:{self.peer.port}"

    def made(self, protocol: Any) -> None:
        """The connection stands, as this end sees it."""
        self.protocol = protocol
        protocol.connection_made(self)
        self._read()

    # -- asyncio's transport

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        match name:
            case "peername":
                return self.peer.host, self.peer.port
            case "sockname":
                return self.host, self.port
        return default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = 64 << 10 if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return max(0, self.unread_bytes - SOCKET_BUFFER_BYTES)

    def is_closing(self) -> bool:
        return self._closing or self.closed

    def is_reading(self) -> bool:
        return self._reading and not self.is_closing()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or self.closed or self.loop.dead or not data:
            return
        self.unread_bytes += len(data)
        self.network.send(self, bytes(data))
        if self.unread_bytes > self._high + SOCKET_BUFFER_BYTES and not self._full:
            self._full = True
            self.protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        if not self._reading:
            self._reading = True
            self.loop.call_soon(self._read)

    def close(self) -> None:
        if self.is_closing() or self.loop.dead:
            return
        self._closing = True
        if not self.get_write_buffer_size():
            self._let_go(FIN)

    def abort(self) -> None:
        if self.closed or self.loop.dead:
            return
        self._closing = True
        self._let_go(RST)

    def _let_go(self, how: str) -> None:
        self.closed = True
        self.network.forget(self)
        self.network.send(self, how)
        self.loop.call_soon(self._lost, None)

    def _lost(self, why: Exception | None) -> None:
        self._inbox.clear()
        protocol, self.protocol = self.protocol, None
        if protocol is not None:
            protocol.connection_lost(why)

    # -- what the network does to us

    def take(self, item: bytes | str) -> None:
        """Something arrives. Runs on our loop."""
        if self.closed:
            if item not in (FIN, RST) and not self.peer.closed:
                self.network.send(self, RST)
            return
        if isinstance(item, str) and item == RST:
            self.reset()
            return
        self._inbox.append(item)
        self._read()

    def reset(self) -> None:
        """The connection is gone, without a farewell."""
        if self.closed:
            return
        self.closed = self._closing = True
        self.network.forget(self)
        self._lost(ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"))

    def _read(self) -> None:
        inbox = self._inbox
        while inbox and self._reading and not self._closing and not self.closed and self.protocol is not None:
            item = inbox.popleft()
            if isinstance(item, str):
                self._finished = True
                if not self.protocol.eof_received():
                    self.close()
                return
            taken = self._feed(item)
            peer = self.peer
            peer.unread_bytes -= taken
            if peer._full or peer._closing:
                peer._was_read()
            if taken < len(item):
                inbox.appendleft(item[taken:])

    def _feed(self, data: bytes) -> int:
        """Gives bytes to the protocol until it has all or wants no more; how many it took."""
        protocol: Any = self.protocol
        if not isinstance(protocol, asyncio.BufferedProtocol):
            protocol.data_received(data)
            return len(data)
        taken, whole = 0, len(data)
        while taken < whole and self._reading and not self._closing and not self.closed:
            buffer: Any = protocol.get_buffer(-1)
            size = min(len(buffer), whole - taken)
            buffer[:size] = data[taken : taken + size]
            taken += size
            protocol.buffer_updated(size)
        return taken

    def _was_read(self) -> None:
        """The peer's protocol took bytes of ours; the word of it travels with the acknowledgements, which are free."""
        if self._full and self.get_write_buffer_size() <= self._low:
            self._full = False
            self.loop.call_soon(self._resume_writing)
        elif self._closing and not self.closed and not self.get_write_buffer_size():
            self.loop.call_soon(self._finish_closing)

    def _resume_writing(self) -> None:
        if self.protocol is not None:
            self.protocol.resume_writing()
        if self._closing and not self.closed and not self.get_write_buffer_size():
            self._let_go(FIN)

    def _finish_closing(self) -> None:
        if not self.closed:
            self._let_go(FIN)
