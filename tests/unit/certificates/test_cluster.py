"""A secured cluster's directory: made where it is missing, kept where it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.certificates import BadCertificate, SecuredCluster, leaf_of, show

NOW = datetime.now(UTC).replace(microsecond=0)
CLUSTER = "Xk2aCqkDQ-6hT0eB3v9T_A"
HOSTS = {1: ["127.0.0.1", "localhost"], 2: ["127.0.0.1", "localhost"]}


def files_in(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


@pytest.fixture
def secured(tmp_path: Path) -> SecuredCluster:
    secured = SecuredCluster(tmp_path / "security")
    secured.prepare(CLUSTER, HOSTS, now=NOW)
    return secured


def test_everything_is_made_at_once(secured: SecuredCluster) -> None:
    secured.invite(["127.0.0.1:9092"])
    assert set(files_in(secured.directory.path)) == {
        "ca.pem", "cluster-ca/ca.pem", "cluster-ca/ca.key", "clients-ca/ca.pem", "clients-ca/ca.key",
        "nodes/node-1.pem", "nodes/node-2.pem", "admin.properties", "admin.librdkafka",
    }  # fmt: skip
    (node,) = show(secured.directory.node(2), now=NOW)
    assert (node.subject, node.names) == (f"CN=node-2,O={CLUSTER}", ("127.0.0.1", "localhost"))
    assert secured.cluster_id() == CLUSTER


def test_what_is_there_stays(secured: SecuredCluster) -> None:
    password = secured.invite(["127.0.0.1:9092"])
    before = files_in(secured.directory.path)
    again = SecuredCluster(secured.directory.path)
    again.prepare(CLUSTER, HOSTS, now=NOW + timedelta(days=300))
    assert again.invite(["127.0.0.1:9092"]) == password
    assert files_in(secured.directory.path) == before


def test_a_cluster_goes_on_without_the_key_that_signs_but_takes_no_new_node(secured: SecuredCluster) -> None:
    (secured.directory.path / "cluster-ca" / "ca.key").unlink()
    secured.prepare(CLUSTER, HOSTS, now=NOW + timedelta(days=350))
    assert secured.cluster_id() is None
    with pytest.raises(BadCertificate, match=r"ca\.key"):
        secured.prepare(CLUSTER, {3: ["localhost"]}, now=NOW)


def test_a_node_whose_certificate_ends_soon_gets_another(secured: SecuredCluster) -> None:
    before = leaf_of(secured.directory.node(1))
    secured.prepare(CLUSTER, HOSTS, now=NOW + timedelta(days=340))
    after = leaf_of(secured.directory.node(1))
    assert after.subject == before.subject
    assert after.not_valid_after_utc == NOW + timedelta(days=340 + 365)


def test_new_addresses_keep_the_password_and_lost_files_stay_lost(secured: SecuredCluster) -> None:
    password = secured.invite(["127.0.0.1:9092"])
    assert secured.reach(["127.0.0.1:9999"])
    assert secured.admin.password() == password
    assert "bootstrap.servers=127.0.0.1:9999\n" in secured.admin.librdkafka.read_text()
    secured.admin.java.unlink()
    assert not secured.reach(["127.0.0.1:9999"])
    assert not secured.admin.java.exists()


def test_the_fingerprint_is_of_the_file_that_clients_are_given(secured: SecuredCluster) -> None:
    (shown,) = show(secured.directory.trusted, now=NOW)
    assert secured.fingerprint == shown.fingerprint
