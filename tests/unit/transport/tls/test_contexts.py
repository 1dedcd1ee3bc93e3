"""What a context lets through, by handshakes in memory: versions, suites, names, certificates of clients."""

from __future__ import annotations

import os
import ssl
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509 import load_pem_x509_certificate

from penstock.transport.tls.contexts import dialling_context, listening_context
from penstock.transport.tls.failures import Kind, TlsFailure
from penstock.transport.tls.settings import BadTls
from penstock.transport.tls.stores import KeyStore, TrustStore, load_key_store
from penstock.transport.tls.trial import try_handshake
from tests.unit.transport.tls.made import self_signed
from tests.unit.transport.tls.world import (
    HOST,
    Wire,
    client_context,
    key_store,
    leaf,
    server_context,
    settings,
    trusting,
)


def failure(server: ssl.SSLContext, client: ssl.SSLContext, host: str = HOST) -> TlsFailure:
    with pytest.raises(TlsFailure) as found:
        try_handshake(server, client, host)
    return found.value


def pem_key(key: Any) -> str:
    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()).decode()


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_both_versions_are_served_and_can_be_demanded(version: str) -> None:
    wire = Wire(server_context(), client_context(enabled_protocols=version)).shake()
    assert wire.server.ssl_object.version() == version
    wire = Wire(server_context(enabled_protocols=version), client_context()).shake()
    assert wire.client.ssl_object.version() == version


def test_versions_without_a_common_one_are_told() -> None:
    server, client = server_context(enabled_protocols="TLSv1.3"), client_context(enabled_protocols="TLSv1.2")
    assert failure(server, client).kind is Kind.NOTHING_IN_COMMON


def test_a_client_of_an_outdated_version_gets_nowhere() -> None:
    client = client_context()
    # OpenSSL takes the flags of old versions only below the security that we and Python ask for.
    client.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="deprecated"):
        client.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="deprecated"):
        client.maximum_version = ssl.TLSVersion.TLSv1_1
    assert failure(server_context(), client).kind is Kind.NOTHING_IN_COMMON


@pytest.mark.parametrize(
    ("suite", "version"),
    [("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLSv1.2"), ("TLS_AES_256_GCM_SHA384", "TLSv1.3")],
)
def test_a_list_of_suites_bounds_what_is_agreed_on(suite: str, version: str) -> None:
    wire = Wire(server_context(cipher_suites=suite), client_context()).shake()
    assert wire.client.ssl_object.version() == version
    if version == "TLSv1.2":
        assert wire.client.ssl_object.cipher()[0] == "ECDHE-ECDSA-AES128-GCM-SHA256"


def test_suites_without_a_common_one_are_told() -> None:
    server = server_context(cipher_suites="TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")
    client = client_context(cipher_suites="TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")
    assert failure(server, client).kind is Kind.NOTHING_IN_COMMON


def test_a_list_without_a_suite_of_the_enabled_versions_is_a_mistake() -> None:
    with pytest.raises(BadTls, match=r"no suite of TLSv1\.2"):
        server_context(cipher_suites="TLS_AES_256_GCM_SHA384", enabled_protocols="TLSv1.2")


# Whom one speaks to.


def test_the_name_that_was_dialled_must_be_in_the_certificate() -> None:
    found = failure(server_context(), client_context(), "other.example")
    assert found.kind is Kind.HOST_NAME
    assert "other.example" in found.why
    try_handshake(server_context(), client_context(endpoint_identification_algorithm=""), "other.example")


def test_an_address_must_be_in_the_certificate_as_an_address() -> None:
    with_address = server_context(leaf("127.0.0.1", "::1"))
    for host in ("127.0.0.1", "::1"):
        try_handshake(with_address, client_context(), host)
    assert failure(with_address, client_context(), "127.0.0.2").kind is Kind.HOST_NAME
    assert failure(server_context(leaf("localhost")), client_context(), "127.0.0.1").kind is Kind.HOST_NAME


def test_a_common_name_is_no_host_name() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = self_signed(key, common_name=HOST)
    server = settings(keystore_key=pem_key(key), keystore_certificate_chain=certificate)
    client = client_context(truststore_certificates=certificate)
    context = listening_context(server, load_key_store(server.key_store), None)
    assert failure(context, client).kind is Kind.HOST_NAME


def test_a_stranger_is_not_trusted_whatever_its_name() -> None:
    found = failure(server_context(leaf(by="others")), client_context())
    assert found.kind is Kind.UNTRUSTED
    assert (
        failure(server_context(leaf(by="others")), client_context(endpoint_identification_algorithm="")).kind
        is Kind.UNTRUSTED
    )


def test_without_a_trust_store_the_systems_authorities_are_believed_and_ours_is_none_of_them() -> None:
    context = dialling_context(settings(), None, None)
    assert failure(server_context(), context).kind is Kind.UNTRUSTED


def test_a_certificate_that_has_ended_is_not_trusted() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    ended = self_signed(key, hosts=(HOST,), began=timedelta(days=-9), ends=timedelta(days=-1))
    server = settings(keystore_key=pem_key(key), keystore_certificate_chain=ended)
    context = listening_context(server, load_key_store(server.key_store), None)
    found = failure(context, client_context(truststore_certificates=ended))
    assert found.kind is Kind.EXPIRED
    assert "expired" in found.why


def test_whatever_is_in_a_trust_store_is_believed_not_only_roots() -> None:
    root, middle, end = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    root_text = self_signed(root, common_name="root", is_authority=True)
    root_certificate = load_pem_x509_certificate(root_text.encode())
    middle_text = self_signed(middle, common_name="middle", is_authority=True, issuer=(root_certificate, root))
    middle_certificate = load_pem_x509_certificate(middle_text.encode())
    end_text = self_signed(end, common_name="end", hosts=(HOST,), issuer=(middle_certificate, middle))
    server = settings(keystore_key=pem_key(end), keystore_certificate_chain=end_text + middle_text)
    context = listening_context(server, load_key_store(server.key_store), None)
    for trusted in (root_text, middle_text, end_text):
        try_handshake(context, client_context(truststore_certificates=trusted), HOST)


# Certificates of clients.


def test_a_client_need_not_may_or_must_show_a_certificate() -> None:
    bob, stranger = leaf("bob"), leaf("bob", by="others")
    for auth, without in (("none", True), ("requested", True), ("required", False)):
        server = server_context(client_auth=auth, **trusting())
        if without:
            assert Wire(server, client_context()).shake().server.peer_certificate is None
        else:
            assert failure(server, client_context()).kind is Kind.NO_CERTIFICATE
        wire = Wire(server, client_context(bob)).shake()
        assert (wire.server.peer_subject is None) is (auth == "none")
        if auth != "none":
            assert failure(server, client_context(stranger)).kind is Kind.UNTRUSTED


def test_only_the_named_authority_vouches_for_clients() -> None:
    """Listeners between nodes trust the cluster's authority; a client's certificate opens nothing there."""
    server = server_context(client_auth="required", **trusting("cluster"))
    assert failure(server, client_context(leaf("node-1", by="clients"))).kind is Kind.UNTRUSTED
    try_handshake(server, client_context(leaf("node-1", by="cluster")), HOST)


@pytest.mark.parametrize("auth", ["requested", "required"])
def test_certificates_of_clients_without_a_trust_store_would_let_anybody_in(auth: str) -> None:
    with pytest.raises(BadTls, match="any customer of any public authority"):
        server_context(client_auth=auth)


# What must not be.


def test_a_listener_without_a_certificate_is_refused() -> None:
    with pytest.raises(BadTls, match="needs a certificate"):
        listening_context(settings(), None, None)


def test_a_key_too_weak_for_openssl_is_refused_in_words() -> None:
    key = rsa.generate_private_key(65537, 1024)
    der = load_pem_x509_certificate(self_signed(key).encode()).public_bytes(form.Encoding.DER)
    weak = KeyStore((der,), key.private_bytes(form.Encoding.DER, form.PrivateFormat.PKCS8, form.NoEncryption()))
    with pytest.raises(BadTls, match="ee key too small"):
        listening_context(settings(), weak, None)


def test_an_anchor_that_is_none_is_refused() -> None:
    with pytest.raises(BadTls, match="cannot be read"):
        dialling_context(settings(), None, TrustStore((b"\x30\x00",)))


def test_secrets_of_sessions_are_not_written_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    Wire(server_context(), client_context()).shake()
    assert not (tmp_path / "keys").exists()


def test_a_key_leaves_no_descriptor_behind() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        listening_context(settings(), key_store(), None)
    assert len(os.listdir("/proc/self/fd")) == before


def test_no_second_handshake_and_no_tickets() -> None:
    context = server_context()
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert context.num_tickets == 0
    wire = Wire(context, client_context(enabled_protocols="TLSv1.3")).shake()
    assert wire.to_client(b"hello") == b"hello"
    session = wire.client.ssl_object.session
    assert session is None or not session.has_ticket
