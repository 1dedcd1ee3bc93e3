"""A handshake in memory: would these two get along? Asked before a listener between nodes takes a new certificate."""

from __future__ import annotations

import ssl

from penstock.transport.tls.layer import TlsLayer

_ROUNDS_MAX = 10


def try_handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str | None) -> None:
    """Raises TlsFailure as the side would that objects. `host` is whom the client means to dial."""
    there, here = TlsLayer(server, server_side=True), TlsLayer(client, server_side=False, host=host)
    for _ in range(_ROUNDS_MAX):
        for side, other in ((here, there), (there, here)):
            if not side.established:
                side.shake()
            if side.has_output:
                other.receive(side.take())
        if here.established and there.established:
            return
    raise AssertionError("a handshake takes two round trips at most")
