"""Authorities and certificates: what is in them, who gets none, and that OpenSSL and our own TLS take them."""

from __future__ import annotations

import os
import stat
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from penstock.certificates import (
    Authority,
    BadCertificate,
    Role,
    create_authority,
    issue_client,
    issue_node,
    open_authority,
    renew,
    show,
    write_issued,
)
from penstock.transport.tls.contexts import dialling_context, listening_context
from penstock.transport.tls.failures import TlsFailure
from penstock.transport.tls.settings import read_settings
from penstock.transport.tls.stores import load_key_store, load_trust_store
from penstock.transport.tls.trial import try_handshake
from tests.patience import within

NOW = datetime.now(UTC).replace(microsecond=0)
CLUSTER = "Xk2aCqkDQ-6hT0eB3v9T_A"


@pytest.fixture
def cluster(tmp_path: Path) -> Authority:
    return create_authority(tmp_path / "cluster", Role.CLUSTER, CLUSTER, now=NOW)


@pytest.fixture
def clients(tmp_path: Path) -> Authority:
    return create_authority(tmp_path / "clients", Role.CLIENTS, CLUSTER, now=NOW)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def openssl(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, timeout=within(60))


# Authorities.


def test_an_authority_is_found_again_as_it_was_made(cluster: Authority) -> None:
    found = open_authority(cluster.directory)
    assert (found.role, found.cluster_id, found.trusted) == (Role.CLUSTER, CLUSTER, cluster.trusted)
    assert found.certificate == cluster.certificate
    assert found.key.private_numbers() == cluster.key.private_numbers()
    assert cluster.certificate.subject.rfc4514_string() == f"CN=Penstock cluster CA,O={CLUSTER}"
    assert cluster.certificate.not_valid_after_utc == NOW + timedelta(days=3650)


def test_keys_and_certificates_are_their_owners_alone(cluster: Authority, tmp_path: Path) -> None:
    write_issued(issue_node(cluster, 1, ["a"], now=NOW), tmp_path / "nodes" / "node-1.pem")
    for path in (cluster.directory / "ca.key", cluster.directory / "ca.pem", tmp_path / "nodes" / "node-1.pem"):
        assert mode_of(path) == 0o600
    assert mode_of(cluster.directory) == 0o700
    assert not list(tmp_path.rglob("*.new"))


def test_a_loose_umask_loosens_nothing(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        create_authority(tmp_path / "ca", Role.CLUSTER, CLUSTER, now=NOW)
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "ca" / "ca.key") == 0o600


def test_an_authority_is_not_made_over_another(cluster: Authority) -> None:
    with pytest.raises(BadCertificate, match="already"):
        create_authority(cluster.directory, Role.CLUSTER, CLUSTER, now=NOW)


def test_who_was_killed_while_making_one_can_begin_again(cluster: Authority) -> None:
    (cluster.directory / "ca.pem").unlink()
    again = create_authority(cluster.directory, Role.CLUSTER, CLUSTER, now=NOW)
    assert again.key.private_numbers() == cluster.key.private_numbers()


def test_a_key_that_others_can_read_signs_nothing(cluster: Authority) -> None:
    (cluster.directory / "ca.key").chmod(0o644)
    with pytest.raises(BadCertificate, match="others can get at it"):
        open_authority(cluster.directory)


def test_a_key_of_another_authority_is_noticed(cluster: Authority, clients: Authority) -> None:
    (cluster.directory / "ca.key").write_bytes((clients.directory / "ca.key").read_bytes())
    with pytest.raises(BadCertificate, match="none of the certificates"):
        open_authority(cluster.directory)


def test_an_authority_without_files_is_told_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(BadCertificate, match=r"ca\.key: no such file"):
        open_authority(tmp_path)


def test_secrets_have_no_repr(cluster: Authority) -> None:
    issued = issue_node(cluster, 1, ["a"], now=NOW)
    for thing in (cluster, issued):
        assert "PrivateKey" not in repr(thing)


# Nodes and clients.


def test_a_node_is_called_by_its_number_and_its_cluster(cluster: Authority) -> None:
    issued = issue_node(cluster, 3, ["Broker-3.example", "10.0.0.3", "::1", "10.0.0.3"], now=NOW)
    assert issued.subject == f"CN=node-3,O={CLUSTER}"
    extensions = issued.certificate.extensions
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(each.value) for each in names] == ["broker-3.example", "10.0.0.3", "::1"]
    uses = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(uses) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert issued.certificate.not_valid_after_utc == NOW + timedelta(days=365)


def test_a_client_can_only_dial(clients: Authority) -> None:
    issued = issue_client(clients, "alice", now=NOW)
    assert issued.subject == "CN=alice"
    uses = issued.certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(uses) == [ExtendedKeyUsageOID.CLIENT_AUTH]


@pytest.mark.parametrize("user", ["node-1", "Node-12", "NODE-0", "node-99999"])
def test_the_clients_authority_signs_nobody_who_could_pass_for_a_node(clients: Authority, user: str) -> None:
    with pytest.raises(BadCertificate, match="how nodes are called"):
        issue_client(clients, user, now=NOW)


@pytest.mark.parametrize(
    "user",
    ["", " ", "alice,O=x", "CN=node-1", "a/b", "a\nb", "node-1\0", "аlice", "x" * 65, "-a", "node-1 ", "a+b", "*"],
)
def test_a_name_that_could_be_read_in_two_ways_is_refused(clients: Authority, user: str) -> None:
    with pytest.raises(BadCertificate):
        issue_client(clients, user, now=NOW)


def test_each_authority_signs_its_own_kind_only(cluster: Authority, clients: Authority) -> None:
    with pytest.raises(BadCertificate, match="only the cluster's authority"):
        issue_node(clients, 1, ["a"], now=NOW)
    with pytest.raises(BadCertificate, match="signs nodes only"):
        issue_client(cluster, "alice", now=NOW)


@pytest.mark.parametrize("hosts", [[], ["a b"], ["a,b"], ["-a"], ["a/24"], ["x" * 254], ["DNS:a"], ["a..b"]])
def test_a_node_is_somewhere(cluster: Authority, hosts: list[str]) -> None:
    with pytest.raises(BadCertificate):
        issue_node(cluster, 1, hosts, now=NOW)


def test_nothing_outlives_its_authority(cluster: Authority) -> None:
    ends = cluster.certificate.not_valid_after_utc
    issued = issue_node(cluster, 1, ["a"], now=ends - timedelta(days=3))
    assert issued.certificate.not_valid_after_utc == ends
    with pytest.raises(BadCertificate, match="rotate it first"):
        issue_node(cluster, 1, ["a"], now=ends)


def test_a_renewed_certificate_has_everything_but_the_key_and_the_end(cluster: Authority) -> None:
    old = issue_node(cluster, 1, ["a", "10.0.0.1"], now=NOW - timedelta(days=300))
    new = renew(cluster, old.certificate, now=NOW)
    assert new.subject == old.subject
    kind = x509.SubjectAlternativeName
    assert new.certificate.extensions.get_extension_for_class(
        kind
    ) == old.certificate.extensions.get_extension_for_class(kind)
    assert new.certificate.public_key() != old.certificate.public_key()
    assert new.certificate.not_valid_after_utc == NOW + timedelta(days=365)


def test_what_somebody_else_issued_is_not_renewed(cluster: Authority, clients: Authority) -> None:
    node = issue_node(cluster, 1, ["a"], now=NOW)
    with pytest.raises(BadCertificate, match="not issued by this authority"):
        renew(clients, node.certificate, now=NOW)


# Judges.


def test_openssl_finds_nothing_to_complain_about(cluster: Authority, clients: Authority, tmp_path: Path) -> None:
    write_issued(issue_node(cluster, 1, ["a.example"], now=NOW), tmp_path / "node.pem")
    write_issued(issue_client(clients, "alice", now=NOW), tmp_path / "alice.pem")
    for purpose, authority, name in (
        ("sslserver", cluster, "node.pem"),
        ("sslclient", cluster, "node.pem"),
        ("sslclient", clients, "alice.pem"),
    ):
        trusted = authority.directory / "ca.pem"
        said = openssl("verify", "-x509_strict", "-purpose", purpose, "-CAfile", trusted, tmp_path / name)
        assert said.returncode == 0, said.stderr
    said = openssl("verify", "-purpose", "sslserver", "-CAfile", clients.directory / "ca.pem", tmp_path / "alice.pem")
    assert said.returncode != 0
    said = openssl("verify", "-CAfile", clients.directory / "ca.pem", tmp_path / "node.pem")
    assert said.returncode != 0


def test_nodes_know_each_other_and_no_client_passes_for_one(
    cluster: Authority, clients: Authority, tmp_path: Path
) -> None:
    write_issued(issue_node(cluster, 1, ["a.example"], now=NOW), tmp_path / "node.pem")
    write_issued(issue_client(clients, "alice", now=NOW), tmp_path / "alice.pem")
    trusted = str(cluster.directory / "ca.pem")

    def context(name: str, *, listens: bool):  # type: ignore[no-untyped-def]
        given = {"ssl.keystore.location": str(tmp_path / name), "ssl.truststore.location": trusted}
        read = read_settings(given | {"ssl.client.auth": "required"})
        make = listening_context if listens else dialling_context
        return make(read, load_key_store(read.key_store), load_trust_store(read.trust_store))

    node = context("node.pem", listens=True)
    try_handshake(node, context("node.pem", listens=False), "a.example")
    with pytest.raises(TlsFailure, match="client's certificate is not trusted"):
        try_handshake(node, context("alice.pem", listens=False), "a.example")


def test_what_is_shown_is_whose_where_and_until_when(cluster: Authority, tmp_path: Path) -> None:
    write_issued(issue_node(cluster, 1, ["a.example", "10.0.0.1"], now=NOW), tmp_path / "node.pem")
    (node,) = show(tmp_path / "node.pem", now=NOW + timedelta(days=300))
    assert (node.subject, node.names) == (f"CN=node-1,O={CLUSTER}", ("a.example", "10.0.0.1"))
    assert (node.days_left, node.signs_others) == (65, False)
    (authority,) = show(cluster.directory / "ca.pem", now=NOW)
    assert authority.signs_others
    assert authority.fingerprint == cluster.fingerprint
    assert node.issuer == authority.subject
    said = openssl("x509", "-noout", "-fingerprint", "-sha256", "-in", cluster.directory / "ca.pem")
    assert said.stdout.strip().endswith(cluster.fingerprint)
    with pytest.raises(BadCertificate):
        show(tmp_path / "nowhere", now=NOW)
