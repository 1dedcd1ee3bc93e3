"""Accepting connections, counted and bounded, with or without TLS."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final, cast

from penstock.agent.listening.addresses import TlsFiles

_log = logging.getLogger(__name__)

HANDSHAKE_TIMEOUT_S: Final = 10.0
_BACKLOG: Final = 512
_FAREWELL_S: Final = 1.0
_BREATH_S: Final = 0.2
_OUT_OF_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Guest(asyncio.Protocol):
    """One accepted connection. `peer` is the sender's address without its port."""

    transport: asyncio.Transport | None = None
    peer: str = ""
    _left: Callable[[Guest], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, cause: Exception | None) -> None:
        if self._left is not None:
            self._left(self)

    def end(self) -> None:
        """The listener closes: finish in order if that takes a moment, else go."""
        if self.transport is not None:
            self.transport.close()


def tls_context(files: TlsFiles) -> ssl.SSLContext:
    """For the listening side. Raises OSError with the file's name in it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(files.cert, files.key)
        if files.client_ca is not None:
            context.load_verify_locations(files.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except OSError as wrong:
        raise OSError(
            f"the TLS files do not work together ({wrong}): look at {files.cert}, {files.key}"
            + (f" and {files.client_ca}" if files.client_ca else "")
        ) from wrong
    return context


async def resolve(host: str, port: int, kind: socket.SocketKind) -> tuple[socket.AddressFamily, tuple[str, int]]:
    """One address for the name; IPv4 comes first, because that is what most senders are told."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=kind, flags=socket.AI_PASSIVE)
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, cast("tuple[str, int]", address)


async def bound_socket(host: str, port: int, kind: socket.SocketKind) -> socket.socket:
    """A non-blocking socket at the address. Raises OSError that names it."""
    try:
        family, address = await resolve(host, port, kind)
        made = socket.socket(family, kind)
        try:
            made.setblocking(False)
            if kind == socket.SOCK_STREAM:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
        except BaseException:
            made.close()
            raise
    except OSError as wrong:
        advice = {
            errno.EADDRINUSE: "; another process listens there, choose another port or stop it",
            errno.EACCES: "; ports below 1024 need CAP_NET_BIND_SERVICE, or choose a higher one",
            errno.EADDRNOTAVAIL: "; this machine has no such address, 0.0.0.0 means all of them",
        }.get(wrong.errno or 0, "")
        raise OSError(wrong.errno, f"cannot listen on {host}:{port}: {wrong.strerror or wrong}{advice}") from wrong
    return made


class StreamListener:
    """Accepts connections and makes a guest of each.

    `make` is called for each accepted connection. Beyond `connections_max` a connection is sent `refusal` (nothing
    over TLS, where it would be noise) and closed.
    """

    def __init__(
        self,
        make: Callable[[], Guest],
        *,
        connections_max: int,
        tls: ssl.SSLContext | None = None,
        refusal: bytes = b"",
    ) -> None:
        self._make, self._connections_max = make, connections_max
        self._tls, self._refusal = tls, refusal
        self._socket: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._arriving: set[asyncio.Task[None]] = set()
        self._guests: set[Guest] = set()
        self._empty = asyncio.Event()
        self._empty.set()
        self.refused = 0
        self.failed_handshakes = 0
        self.last_failure = ""

    @property
    def connections(self) -> int:
        """Those that still shake hands among them."""
        return len(self._guests)

    @property
    def guests(self) -> list[Guest]:
        """Those who are through with it."""
        return [guest for guest in self._guests if guest.transport is not None]

    async def start(self, host: str, port: int) -> int:
        """Listens, and gives the port back, which is the real one if `port` is 0."""
        self._socket = await bound_socket(host, port, socket.SOCK_STREAM)
        self._socket.listen(_BACKLOG)
        self._accepting = asyncio.create_task(self._accept(self._socket))
        return int(self._socket.getsockname()[1])

    async def stop_accepting(self) -> None:
        """No new connections; those that are there stay."""
        await _end_tasks([self._accepting] if self._accepting is not None else [])
        self._accepting = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def close(self) -> None:
        """Also ends those that are there: each may finish for a moment, then it is cut."""
        await self.stop_accepting()
        await _end_tasks(list(self._arriving))
        for guest in self.guests:
            guest.end()
        try:
            async with asyncio.timeout(_FAREWELL_S):
                await self._empty.wait()
        except TimeoutError:
            for guest in self.guests:
                if guest.transport is not None:
                    guest.transport.abort()
            await self._empty.wait()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(listening)
            except OSError as wrong:
                if wrong.errno in _OUT_OF_RESOURCES:
                    _log.warning("no further connections for a moment: %s", wrong)
                    await asyncio.sleep(_BREATH_S)
                elif wrong.errno == errno.EBADF:
                    return
                continue
            if self.connections >= self._connections_max:
                self._refuse(accepted)
            else:
                task = asyncio.create_task(self._welcome(accepted, _without_port(address)))
                self._arriving.add(task)
                task.add_done_callback(self._arriving.discard)
            # A backlog that never empties must not keep the loop from everything else.
            await asyncio.sleep(0)

    def _refuse(self, accepted: socket.socket) -> None:
        self.refused += 1
        try:
            if self._refusal and self._tls is None:
                accepted.send(self._refusal)
        except OSError:
            pass
        finally:
            accepted.close()

    async def _welcome(self, accepted: socket.socket, peer: str) -> None:
        guest = self._make()
        guest.peer, guest._left = peer, self._leave
        self._guests.add(guest)
        self._empty.clear()
        tls = self._tls
        try:
            accepted.setblocking(False)
            _keep_alive(accepted)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: guest,
                accepted,
                ssl=tls,
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if tls else None,
            )
        except OSError as wrong:
            # Scanners and senders without the right certificate end here; they are counted, not told one by one.
            self._leave(guest)
            accepted.close()
            self.failed_handshakes += 1
            self.last_failure = f"a connection of {peer} did not come about: {wrong}"
        except BaseException:
            self._leave(guest)
            accepted.close()
            raise

    def _leave(self, guest: Guest) -> None:
        self._guests.discard(guest)
        if not self._guests:
            self._empty.set()


def _keep_alive(accepted: socket.socket) -> None:
    """A peer whose machine died says nothing for ever; after two minutes of silence the kernel asks."""
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 120)
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 20)
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 6)


def _without_port(address: object) -> str:
    return str(address[0]) if isinstance(address, tuple) and address else ""


async def _end_tasks(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
