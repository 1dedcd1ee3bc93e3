"""Reply parts on their way out: bytes and file spans, given out in chunks as the peer drains."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias

from penstock.protocol.wire import Spans

Buffer: TypeAlias = bytes | bytearray | memoryview

# Larger chunks fall out of the processor's caches between the read and the write: 256 KB cost twice the CPU of 128.
CHUNK_BYTES = 128 << 10


class Span(Protocol):
    """Bytes that live elsewhere, usually in a segment file, and are read when the socket has room."""

    @property
    def size(self) -> int: ...
    def read(self, at: int = 0, size: int | None = None) -> bytes: ...


class Outbox:
    """A queue of parts. Spans stay unread until their turn, so a waiting reply of 50 MB costs a few references."""

    __slots__ = ("_at", "_parts")

    def __init__(self) -> None:
        self._parts: deque[Any] = deque()
        self._at = 0  # how much of the first part is gone

    def __bool__(self) -> bool:
        return bool(self._parts)

    def put(self, parts: Iterable[Any]) -> None:
        for part in parts:
            if isinstance(part, Spans):
                self.put(part.parts)
            elif part.size if hasattr(part, "size") else len(part):
                self._parts.append(part)

    def take(self, room: int = CHUNK_BYTES) -> Buffer:
        """The next bytes, at most `room`; small neighbours are joined. Raises what reading a span raises."""
        pieces: list[Buffer] = []
        while room > 0 and self._parts:
            piece = self._first(room)
            pieces.append(piece)
            room -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _first(self, room: int) -> Buffer:
        part = self._parts[0]
        plain = isinstance(part, (bytes, bytearray, memoryview))
        whole = len(part) if plain else part.size
        wanted = min(room, whole - self._at)
        if not plain:
            piece: Buffer = part.read(self._at, wanted)
            if len(piece) != wanted:
                raise EOFError(f"a span of {whole} bytes gave {len(piece)} of {wanted} at {self._at}")
        elif wanted == whole:
            piece = part
        else:
            piece = memoryview(part)[self._at : self._at + wanted]
        self._at += wanted
        if self._at == whole:
            self._parts.popleft()
            self._at = 0
        return piece
