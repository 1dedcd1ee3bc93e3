"""Reply parts on their way out: bytes and file spans, given out in chunks as the peer drains.

The middle of a long span is handed over: it goes from the page cache to the socket without passing through this
process. Its edges are read like everything else, so that what stands around it leaves in the same packets.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias

from penstock.protocol.wire import Spans

Buffer: TypeAlias = bytes | bytearray | memoryview

# Larger chunks fall out of the processor's caches between the read and the write: 256 KB cost twice the CPU of 128.
CHUNK_BYTES = 128 << 10

# A shorter span costs less when it is read and written in one piece with what stands around it.
LONG_BYTES = 64 << 10
EDGE_BYTES = 4 << 10

# What a file system says that cannot give its pages to a socket.
_UNFIT = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})


class Span(Protocol):
    """Bytes that live elsewhere, usually in a segment file, and are read when the socket has room.

    One that has a `position` in a file and that file's `fileno()`, not negative, can be handed over.
    """

    @property
    def size(self) -> int: ...
    def read(self, at: int = 0, size: int | None = None) -> bytes: ...


class Outbox:
    """A queue of parts. Spans stay unread until their turn, so a waiting reply of 50 MB costs a few references.

    `hands_over` says that there was a span to hand over; then `take` leaves the middle of such spans where it is.
    """

    __slots__ = ("_at", "_parts", "hands_over")

    def __init__(self) -> None:
        self._parts: deque[Any] = deque()
        self._at = 0  # how much of the first part is gone
        self.hands_over = False

    def __bool__(self) -> bool:
        return bool(self._parts)

    def put(self, parts: Iterable[Any], *, may_hand_over: bool = False) -> None:
        for part in parts:
            if isinstance(part, Spans):
                self.put(part.parts, may_hand_over=may_hand_over)
            elif isinstance(part, (bytes, bytearray, memoryview)):
                if part:
                    self._parts.append(part)
            elif part.size:
                self._parts.append(part)
                if may_hand_over and part.size >= LONG_BYTES and _descriptor(part) >= 0:
                    self.hands_over = True

    def take(self, room: int = CHUNK_BYTES) -> Buffer:
        """The next bytes, at most `room`; small neighbours are joined. Raises what reading a span raises."""
        pieces: list[Buffer] = []
        while room > 0 and self._parts:
            if self.hands_over and self._middle():
                pieces.append(self._first(min(room, EDGE_BYTES)))
                break
            piece = self._first(room)
            pieces.append(piece)
            room -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def hand_over(self, socket_fd: int, room: int) -> int:
        """Hands at most `room` bytes to a socket that holds nothing of ours: as many as it takes, possibly none.

        Raises what reading the file raises, and ConnectionError when the peer is gone.
        """
        wanted = min(self._middle(), room)
        if wanted <= 0:
            return 0
        part = self._parts[0]
        try:
            sent = os.sendfile(socket_fd, part.fileno(), part.position + self._at, wanted)
        except BlockingIOError:
            return 0
        except OSError as refusal:
            if refusal.errno not in _UNFIT:
                raise
            self.hands_over = False
            return 0
        if not sent:
            raise EOFError(f"a span of {part.size} bytes gave nothing of {wanted} at {self._at}")
        self._at += sent
        return sent

    def _middle(self) -> int:
        """How much of the first part can be handed over."""
        part = self._parts[0]
        if isinstance(part, (bytes, bytearray, memoryview)):
            return 0
        left: int = part.size - self._at
        return left - EDGE_BYTES if left >= LONG_BYTES and _descriptor(part) >= 0 else 0

    def _first(self, room: int) -> Buffer:
        part = self._parts[0]
        plain = isinstance(part, (bytes, bytearray, memoryview))
        whole = len(part) if plain else part.size
        wanted = min(room, whole - self._at)
        if not plain:
            piece = _read(part, self._at, wanted)
        elif wanted == whole:
            piece = part
        else:
            piece = memoryview(part)[self._at : self._at + wanted]
        self._at += wanted
        if self._at == whole:
            self._parts.popleft()
            self._at = 0
        return piece


def joined(parts: Sequence[Any], room: int) -> Buffer | None:
    """All parts in one piece, spans read; None, and nothing is read, when that is more than `room`."""
    flat: list[Any] = []
    spans = 0
    for part in parts:
        pieces = part.parts if part.__class__ is Spans else (part,)
        for piece in pieces:
            if isinstance(piece, (bytes, bytearray, memoryview)):
                room -= len(piece)
            else:
                room -= piece.size
                spans += 1
            if room < 0 or piece.__class__ is Spans:
                return None
            flat.append(piece)
    if spans:
        flat = [p if isinstance(p, (bytes, bytearray, memoryview)) else _read(p, 0, p.size) for p in flat]
    return flat[0] if len(flat) == 1 else b"".join(flat)


def _read(span: Span, at: int, size: int) -> Buffer:
    piece = span.read(at, size)
    if len(piece) != size:
        raise EOFError(f"a span of {span.size} bytes gave {len(piece)} of {size} at {at}")
    return piece


def _descriptor(span: Any) -> int:
    fileno = getattr(span, "fileno", None)
    return fileno() if fileno is not None else -1
