"""`penstock cert`: two authorities and what they sign, through their whole life, as files."""

from __future__ import annotations

import ssl
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.certificates import CertificateDirectory, Role, issue_node, write_issued
from tests.cli.command import Said, penstock


@pytest.fixture
def certs(tmp_path: Path) -> Path:
    assert penstock("cert", "create-ca", "--dir", tmp_path / "certs", "--cluster-id", "Xk2aCqkDQ").code == 0
    return tmp_path / "certs"


def cert(*words: str | Path, certs: Path) -> Said:
    return penstock("cert", *words, "--dir", certs, "--format", "json")


def node(certs: Path) -> Path:
    """A node's certificate, which no command of this group issues."""
    directory = CertificateDirectory(certs)
    write_issued(issue_node(directory.open(Role.CLUSTER), 1, ["a.example"], now=datetime.now(UTC)), directory.node(1))
    return directory.node(1)


def test_both_authorities_are_made_at_once_and_never_again(certs: Path) -> None:
    before = {path: path.read_bytes() for path in certs.rglob("*") if path.is_file()}
    again = cert("create-ca", certs=certs)
    assert again.code == 1
    assert "holds both authorities already" in again.err
    assert {path: path.read_bytes() for path in before} == before
    assert {path.relative_to(certs).as_posix() for path in before} == {
        "ca.pem", "cluster-ca/ca.pem", "cluster-ca/ca.key", "clients-ca/ca.pem", "clients-ca/ca.key",
    }  # fmt: skip
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in before)
    assert (certs / "ca.pem").read_bytes() == (certs / "cluster-ca" / "ca.pem").read_bytes()


def test_an_authority_that_is_missing_is_made_for_the_same_cluster(certs: Path) -> None:
    for path in (certs / "clients-ca").iterdir():
        path.unlink()
    (made,) = cert("create-ca", certs=certs).data
    assert made["subject"] == "CN=Penstock clients CA,O=Xk2aCqkDQ"


def test_a_client_gets_one_file_that_every_client_can_use(certs: Path) -> None:
    said = cert("issue", "alice", "--days", "30", certs=certs)
    (issued,) = said.data
    assert (issued["subject"], issued["days_left"], issued["authority"]) == ("CN=alice", 29, False)
    path = certs / "clients" / "alice.pem"
    assert issued["file"] == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert f"ssl.keystore.location={path}" in said.err
    ssl.create_default_context().load_cert_chain(path)


def test_a_node_that_was_made_without_a_certificate_gets_one(certs: Path) -> None:
    (issued,) = cert("issue-node", "7", "kafka-7", "10.0.0.7", certs=certs).data
    assert (issued["subject"], issued["names"]) == ("CN=node-7,O=Xk2aCqkDQ", ["kafka-7", "10.0.0.7"])
    path = certs / "nodes" / "node-7.pem"
    assert issued["file"] == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert cert("issue-node", "7", "kafka-7", certs=certs).code == 1


def test_a_file_that_is_there_stays(certs: Path) -> None:
    cert("issue", "alice", certs=certs)
    before = (certs / "clients" / "alice.pem").read_bytes()
    again = cert("issue", "alice", certs=certs)
    assert again.code == 1
    assert "is there already" in again.err
    assert (certs / "clients" / "alice.pem").read_bytes() == before
    assert [path.name for path in (certs / "clients").iterdir()] == ["alice.pem"]


@pytest.mark.parametrize("user", ["node-1", "NODE-7", "a,O=b", "../alice"])
def test_nobody_is_issued_the_name_of_a_node_or_of_somebody_else(certs: Path, user: str) -> None:
    refused = cert("issue", user, certs=certs)
    assert refused.code == 1
    assert not (certs / "clients").exists()


def test_a_renewed_certificate_has_the_same_names_and_another_key(certs: Path) -> None:
    path = node(certs)
    (before,) = cert("show", path, certs=certs).data
    old = path.read_bytes()
    (after,) = cert("renew", path, certs=certs).data
    assert (after["subject"], after["names"]) == (before["subject"], ["a.example"])
    assert after["fingerprint"] != before["fingerprint"]
    assert path.read_bytes() != old


def test_a_stranger_is_not_renewed_and_nobody_else_either(certs: Path, tmp_path: Path) -> None:
    cert("issue", "alice", certs=certs)
    other = tmp_path / "other"
    penstock("cert", "create-ca", "--dir", other)
    cert("issue", "eve", certs=other)
    before = (certs / "clients" / "alice.pem").read_bytes()
    refused = cert("renew", certs / "clients" / "alice.pem", other / "clients" / "eve.pem", certs=certs)
    assert refused.code == 1
    assert f"CN=eve was issued by no authority in {certs}" in refused.err
    assert (certs / "clients" / "alice.pem").read_bytes() == before


def test_what_to_renew_is_named_or_everything(certs: Path) -> None:
    assert cert("renew", certs=certs).code == 2
    cert("issue", "alice", certs=certs)
    node(certs)
    renewed = cert("renew", "--all", certs=certs)
    assert [each["subject"] for each in renewed.data] == ["CN=node-1,O=Xk2aCqkDQ", "CN=alice"]


def test_the_authority_of_nodes_is_replaced_in_three_steps(certs: Path) -> None:
    node(certs)
    old = cert("show", certs / "ca.pem", certs=certs).data[0]["fingerprint"]
    begun = cert("rotate-ca", "cluster", "begin", certs=certs)
    assert begun.data["fingerprint"] == old
    assert f"give {certs}/ca.pem to every node and client" in begun.err
    assert [each["fingerprint"] for each in cert("show", certs / "ca.pem", certs=certs).data] == begun.data["trusted"]

    new = cert("rotate-ca", "cluster", "switch", certs=certs).data["fingerprint"]
    assert new == begun.data["trusted"][1]
    early = cert("rotate-ca", "cluster", "finish", "--yes", certs=certs)
    assert early.code == 1
    assert "CN=node-1,O=Xk2aCqkDQ was issued by the old authority" in early.err

    assert cert("renew", "--all", certs=certs).code == 0
    assert cert("rotate-ca", "cluster", "finish", "--yes", certs=certs).data["step"] == "none"
    assert [each["fingerprint"] for each in cert("show", certs / "ca.pem", certs=certs).data] == [new]


def test_the_old_authority_is_dropped_only_when_somebody_says_so(certs: Path) -> None:
    cert("rotate-ca", "clients", "begin", certs=certs)
    cert("rotate-ca", "clients", "switch", certs=certs)
    asked = penstock("cert", "rotate-ca", "clients", "finish", "--dir", certs, stdin="n\n")
    assert asked.code == 1
    assert len(cert("show", certs / "clients-ca" / "ca.pem", certs=certs).data) == 2


def test_all_certificates_are_shown_with_the_days_that_are_left(certs: Path) -> None:
    node(certs)
    cert("issue", "alice", "--days", "30", certs=certs)
    shown = cert("show", certs=certs).data
    assert [(each["subject"], each["days_left"]) for each in shown] == [
        ("CN=Penstock cluster CA,O=Xk2aCqkDQ", 3649),
        ("CN=Penstock clients CA,O=Xk2aCqkDQ", 3649),
        ("CN=node-1,O=Xk2aCqkDQ", 364),
        ("CN=alice", 29),
    ]
    text = penstock("cert", "show", "--dir", certs).out
    assert text.splitlines()[0].split() == ["FILE", "SUBJECT", "NAMES", "NOT", "AFTER", "DAYS", "LEFT"]


def test_where_nothing_is_it_says_how_to_begin(tmp_path: Path) -> None:
    for words in (("show",), ("issue", "alice")):
        said = cert(*words, certs=tmp_path)
        assert said.code == 1
        assert "penstock cert create-ca" in said.err
