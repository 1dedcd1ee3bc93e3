"""The Net port on asyncio: listening sockets and dialled connections."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.transport.dial import Link, Unreachable
from penstock.transport.intake import Intake

if TYPE_CHECKING:
    from penstock.transport.dial_security import DialSecurity
    from penstock.transport.tls.source import ContextSource
    from penstock.transport.tls.stream import TlsShared

# Replies are as large as the asker allowed, so this only stops nonsense.
RESPONSE_BYTES_MAX = 1 << 30

WILDCARDS = ("", "0.0.0.0", "::", "*")


class Listening:
    """One bound address. `port` is the real one, also when 0 was asked for."""

    __slots__ = ("_server", "_socket", "host", "port")

    def __init__(self, server: asyncio.AbstractServer, listening: socket.socket) -> None:
        self._server, self._socket = server, listening
        self.host, self.port = listening.getsockname()[:2]

    async def serve(self) -> None:
        """Begins to accept."""
        await self._server.start_serving()

    def close(self) -> None:
        """Accepts no more. Connections that stand are not touched."""
        if isinstance(self._server, asyncio.Server):
            # asyncio's own close leaves behind, open, what was accepted in this very turn and has no transport yet.
            self._server.get_loop().remove_reader(self._socket)
            self._socket.close()
        else:
            self._server.close()


class AsyncioNet:
    """Listens and dials on one loop. All links it dials share one intake."""

    __slots__ = ("_backlog", "_intake", "_loop", "_receive_buffer_bytes", "_send_buffer_bytes", "_tls")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        backlog: int = 50,
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
        intake: Intake | None = None,
    ) -> None:
        """Buffer sizes of -1 leave the choice to the system, which then tunes them as a connection runs."""
        self._loop = loop
        self._backlog = backlog
        self._send_buffer_bytes = send_buffer_bytes
        self._receive_buffer_bytes = receive_buffer_bytes
        self._intake = intake or Intake(loop)
        self._tls: TlsShared | None = None

    async def listen(self, host: str, port: int, accept: Callable[[], Any], *, serving: bool = True) -> Listening:
        """Binds `host` (empty for all interfaces) and makes a protocol by `accept` for every connection.

        Without `serving` the address is taken, but nobody is accepted before `serve`.

        OSError, with the address in its text, when it cannot be bound.
        """
        listening = await self._bind(host, port)
        # Accepted sockets inherit these from the listening one.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._send_buffer_bytes > 0:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)
        if self._receive_buffer_bytes > 0:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)
        server = await self._loop.create_server(accept, sock=listening, backlog=self._backlog, start_serving=serving)
        return Listening(server, listening)

    async def dial(self, host: str, port: int, timeout_ms: int, security: DialSecurity | None = None) -> Link:
        """A standing link, or `Unreachable` with host, port and cause; `Untrusted` when TLS finds it not to be safe.

        A link with credentials logs in when it negotiates.
        """
        link = self._link(host, port, security)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                if security is not None and security.tls is not None:
                    await self._dial_tls(link, security.tls, timeout_ms)
                else:
                    await self._loop.create_connection(lambda: link, host, port)
        except TimeoutError:
            raise Unreachable(host, port, f"no connection within {timeout_ms} ms") from None
        except OSError as cause:
            raise Unreachable(host, port, _why(cause)) from cause
        return link

    def _link(self, host: str, port: int, security: DialSecurity | None) -> Link:
        if security is None or security.credentials is None:
            return Link(self._loop, self._intake, host, port, RESPONSE_BYTES_MAX)
        from penstock.transport.login import AuthenticatedLink

        return AuthenticatedLink(
            self._loop, self._intake, host, port, RESPONSE_BYTES_MAX, security.credentials, security.run
        )

    async def _dial_tls(self, link: Link, source: ContextSource, timeout_ms: int) -> None:
        # Imported by the first dial that asks for TLS: `ssl` takes longer than many a command.
        from penstock.transport.tls.stream import TlsShared
        from penstock.transport.tls_dialling import connect

        if self._tls is None:
            self._tls = TlsShared(self._loop)
        await connect(self._tls, source, link, timeout_ms)

    def host_name(self) -> str:
        return socket.gethostname()

    async def _bind(self, host: str, port: int) -> socket.socket:
        try:
            if host in WILDCARDS and host != "0.0.0.0" and socket.has_dualstack_ipv6():
                return _bound(("", port), socket.AF_INET6)
            if host in WILDCARDS:
                return _bound(("", port), socket.AF_INET)
            found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            # A name with both kinds of address is bound to the older one, which is also what Kafka does.
            family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
            return _bound(address[:2], family)
        except OSError as cause:
            # The system's own words: Python's tell the address a second time.
            number = cause.errno or 0
            words = os.strerror(number) if number in errno.errorcode else cause.strerror or cause
            raise OSError(cause.errno, f"cannot listen on {host or '*'}:{port}: {words}") from cause


def _bound(address: Any, family: int) -> socket.socket:
    return socket.create_server(address, family=family, dualstack_ipv6=family == socket.AF_INET6 and not address[0])


def _why(cause: OSError) -> str:
    """The system's own word where asyncio tells the address once more, of every address that was tried."""
    errors = {int(number) for number in re.findall(r"\[Errno (\d+)\]", str(cause))}
    return os.strerror(errors.pop()).lower() if len(errors) == 1 else cause.strerror or str(cause)


def plain_host(address: str) -> str:
    """`::ffff:10.0.0.1`, as a socket of both kinds sees an IPv4 peer, becomes `10.0.0.1`."""
    return address.removeprefix("::ffff:") if "." in address else address
