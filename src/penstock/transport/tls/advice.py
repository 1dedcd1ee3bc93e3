"""What a dialler is told when TLS failed: why, and what to try."""

from __future__ import annotations

from typing import Final

from penstock.model.errors import PenstockError
from penstock.transport.tls.failures import Kind, TlsFailure

_TRY: Final = {
    Kind.UNTRUSTED: "name the authority that signed it in cafile or ssl.truststore.location",
    Kind.EXPIRED: "have it renewed, and compare the clocks of both machines",
    Kind.HOST_NAME: (
        "dial it by a name in its certificate, or have that name put into the certificate's subjectAltName; an empty "
        "ssl.endpoint.identification.algorithm switches the check off"
    ),
    Kind.PLAINTEXT: "set security.protocol to PLAINTEXT or SASL_PLAINTEXT, or dial its TLS listener",
    Kind.SILENT: "then set security.protocol to PLAINTEXT or SASL_PLAINTEXT",
    Kind.FOREIGN: "is this the port of a broker?",
    Kind.NOTHING_IN_COMMON: "compare ssl.enabled.protocols and ssl.cipher.suites of both sides",
}
_CERTIFICATE_WANTED: Final = (
    "it may want a certificate of its own authority: name one in certfile and keyfile, or ssl.keystore.location; "
    "its log says more"
)
PASSING: Final = (Kind.ENDED, Kind.TIMED_OUT)
"""What may be over with the next try: a broker that is being stopped ends connections at any point."""


def why_dialling_failed(failure: TlsFailure, *, shows_certificate: bool) -> str:
    """The failure with what to try."""
    if failure.kind is Kind.REFUSED_BY_PEER and not shows_certificate:
        return f"{failure.why}; {_CERTIFICATE_WANTED}"
    advice = _TRY.get(failure.kind)
    return failure.why if advice is None else f"{failure.why}; {advice}"


def why_ended(failure: PenstockError) -> str:
    """The same for a connection that TLS ended after its handshake.

    In TLS 1.3 a client has finished its handshake before the server looks at its certificate.
    """
    if isinstance(failure, TlsFailure) and failure.kind is Kind.REFUSED_BY_PEER:
        return f"{failure.why}; {_CERTIFICATE_WANTED}"
    return f"the connection broke: {failure}"
