"""Contexts of OpenSSL from settings and stores, one for listening and one for dialling.

A context that is in use is never touched: chains of another key type would stay beside the new one, and trust can only
be added. Whoever reloads makes a new context, and new connections take it.
"""

from __future__ import annotations

import base64
import os
import ssl
from typing import Final

from penstock.transport.tls.ciphers import choose
from penstock.transport.tls.settings import TLS_1_2, BadTls, TlsSettings
from penstock.transport.tls.stores import KeyStore, TrustStore

_VERSIONS: Final = {TLS_1_2: ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


def listening_context(
    settings: TlsSettings, key_store: KeyStore | None, trust_store: TrustStore | None
) -> ssl.SSLContext:
    """For connections that come in. `BadTls` when there is nothing to show, or nobody to trust where that is needed."""
    if key_store is None:
        raise BadTls(
            "a listener with TLS needs a certificate: ssl.keystore.location, or ssl.keystore.key with its chain"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _bound(context, settings)
    context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    # A resumed session is not asked for its certificate again, which may have been taken back or run out since, and it
    # costs as much as a whole handshake. Tickets of TLS 1.2 can stay: they end with the context.
    context.num_tickets = 0
    _show(context, key_store)
    if settings.client_auth != "none":
        if trust_store is None:
            raise BadTls(
                f"ssl.client.auth is {settings.client_auth}, but there is no ssl.truststore: "
                "any customer of any public authority would be let in"
            )
        _trust(context, trust_store)
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    return context


def dialling_context(
    settings: TlsSettings, key_store: KeyStore | None, trust_store: TrustStore | None
) -> ssl.SSLContext:
    """For connections that go out. Without a trust store the system's authorities are believed, as Java does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _bound(context, settings)
    # The name in a subject is what somebody is called, not where; only alternative names are checked.
    context.hostname_checks_common_name = False
    context.check_hostname = settings.checks_host
    context.verify_mode = ssl.CERT_REQUIRED
    if trust_store is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _trust(context, trust_store)
    if key_store is not None:
        _show(context, key_store)
    return context


def _bound(context: ssl.SSLContext, settings: TlsSettings) -> None:
    chosen = choose(settings.cipher_suites)
    versions = [_VERSIONS[name] for name in settings.protocols if name in chosen.protocols]
    if not versions:
        raise BadTls(f"ssl.cipher.suites has no suite of {' or '.join(settings.protocols)}")
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    # Another handshake in the middle of a connection has only ever been of use to attackers.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    if chosen.openssl:
        try:
            context.set_ciphers(chosen.openssl)
        except ssl.SSLError:
            raise BadTls(f"ssl.cipher.suites: OpenSSL offers none of {', '.join(settings.cipher_suites)}") from None
    choose_1_3 = getattr(context, "set_ciphersuites", None)  # from Python 3.15 on
    if choose_1_3 is not None and chosen.suites_1_3:
        choose_1_3(":".join(chosen.suites_1_3))


def _trust(context: ssl.SSLContext, trust_store: TrustStore) -> None:
    # As in Java, whatever is in the store is believed, not only roots.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=b"".join(trust_store.anchors))
    except ssl.SSLError:
        raise BadTls("a certificate of the trust store cannot be read") from None


def _show(context: ssl.SSLContext, key_store: KeyStore) -> None:
    """OpenSSL takes a chain and its key only from a path. This one has no name and no disk behind it."""
    descriptor = os.memfd_create("chain", os.MFD_CLOEXEC)
    try:
        text = b"".join([*(_pem("CERTIFICATE", each) for each in key_store.chain), _pem("PRIVATE KEY", key_store.key)])
        os.write(descriptor, text)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    except ssl.SSLError as refusal:
        why = (refusal.reason or "").replace("_", " ").lower()
        raise BadTls(f"OpenSSL does not take the certificate: {why}") from None
    finally:
        os.close(descriptor)


def _pem(label: str, der: bytes) -> bytes:
    return b"-----BEGIN %b-----\n%b-----END %b-----\n" % (label.encode(), base64.encodebytes(der), label.encode())
