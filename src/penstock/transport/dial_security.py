"""What makes a dialled connection safe, from the properties of a client or of one listener of a node.

PLAINTEXT       nothing of this: such a dial is made without one
SSL             a source of TLS contexts
SASL_PLAINTEXT  credentials
SASL_SSL        both
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from penstock.transport.login import Credentials
    from penstock.transport.tls.settings import TlsSettings
    from penstock.transport.tls.source import ContextSource

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
PROTOCOLS: Final = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)

Run = Callable[..., Awaitable[Any]]
"""Runs a function off the loop: `asyncio.to_thread`, `Offload.call`."""


def has_tls(protocol: str) -> bool:
    return protocol in (SSL, SASL_SSL)


def has_sasl(protocol: str) -> bool:
    return protocol in (SASL_PLAINTEXT, SASL_SSL)


class DialSecurity:
    """For the dials of one loop. `run` is for whatever takes long: reading stores, salting passwords."""

    __slots__ = ("credentials", "run", "tls")

    def __init__(
        self,
        tls: TlsSettings | Callable[[], TlsSettings] | None,
        credentials: Credentials | None,
        run: Run = asyncio.to_thread,
    ) -> None:
        """`tls` may be a function, which is asked at every dial: settings may change while a node runs."""
        self.tls: ContextSource | None = None
        self.credentials = credentials
        self.run = run
        if tls is not None:
            from penstock.transport.tls.source import ContextSource

            self.tls = ContextSource(tls if callable(tls) else lambda: tls, run)
