"""The four ports through which a node reaches the world: Clock, Files, Net, Offload.

Types only. A node is given all four at construction, so the simulator can run the real drivers in virtual time on
files in memory. Nothing outside the implementations of these ports calls os, time, socket, random or threading.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, TypeVarTuple

from penstock.model.ids import Millis

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Clock(Protocol):
    """Wall time for timestamps people see, monotonic time for deadlines."""

    def now_ms(self) -> Millis: ...
    def monotonic_ms(self) -> float: ...


class File(Protocol):
    """One open file. Positions are explicit; there is no cursor to share by accident."""

    path: str

    def pread(self, size: int, position: int) -> bytes:
        """Up to `size` bytes at `position`; shorter only at the end of the file."""

    def pwritev(self, buffers: Sequence[bytes | bytearray | memoryview], position: int) -> int:
        """Writes all buffers back to back at `position`, looping on short writes; returns the bytes written."""

    def truncate(self, size: int) -> None: ...
    def sync(self) -> None:
        """Data is on the platter when this returns. Slow; call it through Offload."""

    def size(self) -> int: ...
    def fileno(self) -> int:
        """A descriptor for sendfile, or -1 for files in memory."""

    def close(self) -> None: ...


class Files(Protocol):
    """The disk. Errors are OSError; storage turns them into StorageFailed."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File: ...
    def exists(self, path: str) -> bool: ...
    def listdir(self, path: str) -> list[str]:
        """Sorted names."""

    def isdir(self, path: str) -> bool: ...
    def makedirs(self, path: str) -> None: ...
    def size(self, path: str) -> int: ...
    def mtime_ms(self, path: str) -> Millis: ...
    def set_mtime_ms(self, path: str, at: Millis) -> None: ...
    def read(self, path: str) -> bytes: ...
    def write_atomic(self, path: str, data: bytes) -> None:
        """Writes `path`.tmp, syncs it, renames it over `path` and syncs the directory."""

    def rename(self, source: str, target: str) -> None: ...
    def remove(self, path: str) -> None: ...
    def rmtree(self, path: str) -> None: ...
    def sync_dir(self, path: str) -> None: ...
    def one_sync(self, path: str) -> AbstractContextManager[None]:
        """Inside, syncs on the volume of `path` are put off; on leaving, all of them are made up for by one.

        For the end of a node with thousands of logs. What is read back meanwhile may miss `write_atomic`.
        """

    def lock(self, path: str) -> File:
        """Takes an exclusive lock that dies with the process; OSError when somebody else has it."""

    def usage(self, path: str) -> tuple[int, int]:
        """(total bytes, usable bytes) of the volume that holds `path`."""


class Offload(Protocol):
    """Work that must not run on the loop."""

    def call(self, work: Callable[[*Ts], T], *args: *Ts) -> Awaitable[T]:
        """Runs one C call that releases the GIL (fsync, a bulk write, crc of a large buffer) in a thread."""

    def run(self, task: str, arguments: dict[str, object]) -> Awaitable[dict[str, object]]:
        """Runs a named task of `penstock.server.loops.worker` in a helper process started by exec."""

    def close(self) -> None:
        """Ends what still runs; nothing is taken any more."""


class Connection(Protocol):
    """A byte stream to a peer, as the transport makes it."""

    def send(self, parts: Sequence[Any]) -> None: ...
    def close(self) -> None: ...


class Bound(Protocol):
    """An address that is listened on."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int:
        """The one really bound, also when 0 was asked for."""

    async def serve(self) -> None: ...
    def close(self) -> None: ...


class Net(Protocol):
    """Listening and dialling."""

    def listen(self, host: str, port: int, accept: Callable[[], Any], *, serving: bool = True) -> Awaitable[Bound]:
        """Binds an address; without `serving` nobody is accepted until `serve` of what it gives is called."""

    def dial(self, host: str, port: int, timeout_ms: int, security: Any = None) -> Awaitable[Any]:
        """A link; `security` is None for plaintext, else the transport's `DialSecurity`."""

    def host_name(self) -> str:
        """What others may call this machine; stands in where a listener is on all interfaces."""


@dataclass(frozen=True, slots=True)
class Ports:
    """All four, as a node is given them."""

    clock: Clock
    files: Files
    net: Net
    offload: Offload
