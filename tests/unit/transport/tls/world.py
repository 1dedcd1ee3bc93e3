"""Authorities, certificates and handshakes in memory for the tests of TLS. Others made the certificates."""

from __future__ import annotations

import functools
import ssl
from pathlib import Path
from typing import Any

import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from penstock.transport.tls.contexts import dialling_context, listening_context
from penstock.transport.tls.layer import TlsLayer
from penstock.transport.tls.settings import TlsSettings, read_settings
from penstock.transport.tls.stores import KeyStore, load_key_store, load_trust_store

HOST = "broker-1.example"


def authority(name: str = "authority") -> trustme.CA:
    return _authority(name)


@functools.cache
def _authority(name: str) -> trustme.CA:
    return trustme.CA(organization_name=name)


@functools.cache
def leaf(*hosts: str, common_name: str | None = None, by: str = "authority") -> trustme.LeafCert:
    return authority(by).issue_cert(*(hosts or (HOST,)), common_name=common_name)


def chain_text(of: trustme.LeafCert) -> str:
    return b"".join(each.bytes() for each in of.cert_chain_pems).decode()


def key_text(of: trustme.LeafCert) -> str:
    return of.private_key_pem.bytes().decode()


def key_of(of: trustme.LeafCert) -> Any:
    return load_pem_private_key(of.private_key_pem.bytes(), None)


def certificate_of(of: trustme.LeafCert) -> x509.Certificate:
    return x509.load_pem_x509_certificate(of.cert_chain_pems[0].bytes())


def der_of(of: trustme.LeafCert) -> bytes:
    return certificate_of(of).public_bytes(Encoding.DER)


def authority_text(name: str = "authority") -> str:
    return authority(name).cert_pem.bytes().decode()


def write_private(path: Path, data: bytes | str) -> str:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    path.chmod(0o600)
    return str(path)


def settings(**given: Any) -> TlsSettings:
    """`keystore_key=` is `ssl.keystore.key`."""
    return read_settings({"ssl." + name.replace("_", "."): value for name, value in given.items()})


def shown_by(of: trustme.LeafCert | None) -> dict[str, str]:
    return {} if of is None else {"keystore_key": key_text(of), "keystore_certificate_chain": chain_text(of)}


def trusting(*names: str) -> dict[str, str]:
    return {"truststore_certificates": "".join(map(authority_text, names or ("authority",)))}


def server_context(of: trustme.LeafCert | None = None, **given: Any) -> ssl.SSLContext:
    read = settings(**shown_by(of or leaf()), **given)
    return listening_context(read, load_key_store(read.key_store), load_trust_store(read.trust_store))


def client_context(of: trustme.LeafCert | None = None, **given: Any) -> ssl.SSLContext:
    read = settings(**shown_by(of), **({} if "truststore_certificates" in given else trusting()), **given)
    return dialling_context(read, load_key_store(read.key_store), load_trust_store(read.trust_store))


def key_store(of: trustme.LeafCert | None = None) -> KeyStore:
    loaded = load_key_store(settings(**shown_by(of or leaf())).key_store)
    assert loaded is not None
    return loaded


class Wire:
    """A server's layer and a client's, and the bytes between them."""

    def __init__(
        self, server: ssl.SSLContext | None = None, client: ssl.SSLContext | None = None, host: str = HOST
    ) -> None:
        self.server = TlsLayer(server or server_context(), server_side=True)
        self.client = TlsLayer(client or client_context(), server_side=False, host=host)

    def shake(self) -> Wire:
        """To the end, or raises what one of them raises."""
        for _ in range(10):
            for side, other in ((self.client, self.server), (self.server, self.client)):
                if not side.established:
                    side.shake()
                self.carry(side, other)
            if self.client.established and self.server.established:
                return self
        raise AssertionError("they never come to an end")

    @staticmethod
    def carry(side: TlsLayer, other: TlsLayer) -> None:
        if side.has_output:
            other.receive(side.take())

    def to_server(self, plaintext: bytes) -> bytes:
        """As the server reads it."""
        for piece in self.client.pieces(plaintext):
            self.server.receive(piece)
        return read_all(self.server)

    def to_client(self, plaintext: bytes) -> bytes:
        for piece in self.server.pieces(plaintext):
            self.client.receive(piece)
        return read_all(self.client)


def read_all(layer: TlsLayer, room_bytes: int = 1 << 16) -> bytes:
    room = memoryview(bytearray(room_bytes))
    got = b""
    while True:
        count = layer.read_into(room)
        got += bytes(room[:count])
        if layer.drained:
            return got
