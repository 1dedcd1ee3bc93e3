"""Dialling with TLS for the Net port: the newest context, and failures as errors of a link with what to try."""

from __future__ import annotations

from collections.abc import Callable

from penstock.transport.dial import Link, LinkError, Silent, Unreachable, Untrusted
from penstock.transport.tls.advice import PASSING, why_dialling_failed
from penstock.transport.tls.failures import Kind, TlsFailure
from penstock.transport.tls.settings import BadTls
from penstock.transport.tls.source import ContextSource
from penstock.transport.tls.stream import TlsShared, TlsStream, TlsTerms, dial_tls


async def connect(shared: TlsShared, source: ContextSource, link: Link, timeout_ms: float) -> None:
    """Returns when `link` stands on a connection whose handshake is done. OSError or a LinkError."""
    link.over_tls = True
    try:
        terms = TlsTerms(
            shared, await source.context(), _tell_nobody, server_side=False, handshake_timeout_s=timeout_ms / 1_000
        )
        make: Callable[[], Link] = lambda: link  # noqa: E731 - the name is for the type
        await dial_tls(terms, make, link.host, link.port)
    except BadTls as unusable:
        raise Untrusted(link.host, link.port, f"TLS cannot be begun: {unusable}") from None
    except TlsFailure as failure:
        why = why_dialling_failed(failure, shows_certificate=source.shows_certificate)
        raise _error(failure)(link.host, link.port, why) from None


def _error(failure: TlsFailure) -> type[LinkError]:
    if failure.kind is Kind.SILENT:
        return Silent
    return Unreachable if failure.kind in PASSING else Untrusted


def _tell_nobody(_stream: TlsStream, _failure: TlsFailure | None) -> None:
    """A failed dial raises; what ends a link later is told to the link."""
