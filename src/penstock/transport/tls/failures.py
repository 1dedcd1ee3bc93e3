"""Why a TLS connection failed: a kind to count, and a sentence for the log, because the peer is told nearly nothing."""

from __future__ import annotations

import ssl
from enum import StrEnum
from typing import Final

from penstock.model.errors import PenstockError


class Kind(StrEnum):
    """Few and fixed, so that they can be a label of a metric."""

    PLAINTEXT = "plaintext"
    FOREIGN = "foreign"
    TIMED_OUT = "timed-out"
    ENDED = "ended"
    SILENT = "silent"
    NO_CERTIFICATE = "no-certificate"
    UNTRUSTED = "untrusted"
    EXPIRED = "expired"
    HOST_NAME = "host-name"
    REFUSED_BY_PEER = "refused-by-peer"
    NOTHING_IN_COMMON = "nothing-in-common"
    TOO_MUCH = "too-much"
    BROKEN = "broken"


class TlsFailure(PenstockError):
    """This connection is over. The words say why, for people."""

    def __init__(self, kind: Kind, why: str) -> None:
        super().__init__(why)
        self.kind, self.why = kind, why


# OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH.
_WRONG_NAME: Final = (62, 64)
# X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED.
_OUT_OF_TIME: Final = (9, 10)
_NOTHING_IN_COMMON: Final = {
    "NO_SHARED_CIPHER": "no cipher suite in common",
    "UNSUPPORTED_PROTOCOL": "no version of TLS in common; ssl.enabled.protocols says which are served",
    "VERSION_TOO_LOW": "no version of TLS in common; ssl.enabled.protocols says which are served",
    "WRONG_SSL_VERSION": "no version of TLS in common; ssl.enabled.protocols says which are served",
    "NO_PROTOCOLS_AVAILABLE": "no version of TLS in common; ssl.enabled.protocols says which are served",
    "NO_SUITABLE_SIGNATURE_ALGORITHM": "no signature algorithm in common with the certificate's key",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the peer refused: no version of TLS in common",
}


def failure_of(error: ssl.SSLError, *, server_side: bool) -> TlsFailure:
    """OpenSSL's word as ours."""
    reason = error.reason or ""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _WRONG_NAME:
            return TlsFailure(Kind.HOST_NAME, f"the certificate is for somebody else: {error.verify_message}")
        whose = "client's" if server_side else "server's"
        if error.verify_code in _OUT_OF_TIME:
            return TlsFailure(Kind.EXPIRED, f"the {whose} certificate is not valid now: {error.verify_message}")
        return TlsFailure(Kind.UNTRUSTED, f"the {whose} certificate is not trusted: {error.verify_message}")
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return TlsFailure(Kind.NO_CERTIFICATE, "the client showed no certificate, and ssl.client.auth is required")
    if reason in _NOTHING_IN_COMMON:
        return TlsFailure(Kind.NOTHING_IN_COMMON, _NOTHING_IN_COMMON[reason])
    if isinstance(error, ssl.SSLEOFError) or reason == "UNEXPECTED_EOF_WHILE_READING":
        return TlsFailure(Kind.ENDED, "the peer ended the connection in the middle of TLS")
    _, is_alert, alert = reason.partition("_ALERT_")
    if is_alert:
        return TlsFailure(Kind.REFUSED_BY_PEER, f"the peer refused: {_words(alert)}")
    return TlsFailure(Kind.BROKEN, f"this is no proper TLS: {_words(reason) or 'OpenSSL says no more'}")


def _words(reason: str) -> str:
    return reason.replace("_", " ").lower()
