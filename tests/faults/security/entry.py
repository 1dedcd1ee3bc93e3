"""A judge's own way into a secured listener: TLS from the standard library, PLAIN in two requests written by hand."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import NamedTuple

from tests.compat.wire import Connection, blob, request, text

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36


class LoginRefused(ConnectionError):
    """The broker does not believe who we say we are."""


class Person(NamedTuple):
    """Somebody with a password."""

    name: str
    password: str


def tls_context(trusted: Path, certificate: Path | None = None) -> ssl.SSLContext:
    """Whom a client trusts, and what it shows."""
    context = ssl.create_default_context(cafile=str(trusted))
    if certificate is not None:
        context.load_cert_chain(certificate)
    return context


class SecuredConnection(Connection):
    """TLS, and a login unless nobody is named. Every failure is an OSError."""

    def __init__(
        self, host: str, port: int, context: ssl.SSLContext, person: Person | None = None, *, timeout_s: float = 3.0
    ) -> None:
        super().__init__(host, port, timeout_s)
        self._reader.close()
        try:
            self.socket = context.wrap_socket(self.socket, server_hostname=host)
            self._reader = self.socket.makefile("rb", buffering=1 << 18)
            if person is not None:
                self.log_in(person)
        except BaseException:
            self.close()
            raise

    def log_in(self, person: Person) -> None:
        handshake = self.call(request(SASL_HANDSHAKE, 1, text("PLAIN")))
        if handshake.one("h"):
            raise LoginRefused("PLAIN is not offered")
        token = b"\0".join([b"", person.name.encode(), person.password.encode()])
        reply = self.call(request(SASL_AUTHENTICATE, 0, blob(token)))
        if reply.one("h"):
            raise LoginRefused(f"{person.name}: {reply.text()}")

    @property
    def certificate(self) -> bytes:
        """What the other side shows, as DER."""
        assert isinstance(self.socket, ssl.SSLSocket)
        return self.socket.getpeercert(binary_form=True) or b""
