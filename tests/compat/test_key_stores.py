"""Stores that keytool writes, read by us; and which settings of stores Kafka's own factory takes."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization as form

from penstock.transport.tls.contexts import dialling_context, listening_context
from penstock.transport.tls.settings import BadTls, read_settings
from penstock.transport.tls.stores import load_key_store, load_trust_store
from penstock.transport.tls.trial import try_handshake
from tests.compat.oracles.jvm import answers
from tests.patience import within
from tests.unit.transport.tls.world import authority_text, chain_text, key_of, leaf, write_private

pytestmark = pytest.mark.compat

STORE, KEY = "store-secret", "key-secret"
HOST = "broker-1.example"


def keytool(*words: str | Path) -> None:
    said = subprocess.run(["keytool", *map(str, words)], capture_output=True, text=True, timeout=within(60))
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root, a node's key with its chain of two, and a trust store, each as JKS and as PKCS12."""
    tmp_path = tmp_path_factory.mktemp("stores")
    for kind in ("JKS", "PKCS12"):
        root, keys, trust = (tmp_path / f"{name}.{kind}" for name in ("root", "keys", "trust"))
        of_key = ("-keypass", KEY) if kind == "JKS" else ()
        common = ("-storetype", kind, "-storepass", STORE)
        keytool("-genkeypair", "-alias", "ca", "-keyalg", "RSA", "-keysize", "2048", "-dname", "CN=root,O=x", "-ext",
                "bc:c", "-keystore", root, *common, *of_key)  # fmt: skip
        keytool("-genkeypair", "-alias", "node", "-keyalg", "EC", "-groupname", "secp256r1", "-dname", "CN=größe,O=x",
                "-keystore", keys, *common, *of_key)  # fmt: skip
        request, signed, anchor = (tmp_path / f"{name}.{kind}" for name in ("request", "signed", "anchor"))
        keytool("-certreq", "-alias", "node", "-keystore", keys, "-file", request, *common, *of_key)
        keytool("-gencert", "-alias", "ca", "-keystore", root, "-infile", request, "-outfile", signed, "-ext",
                f"san=dns:{HOST}", *common, *of_key)  # fmt: skip
        keytool("-exportcert", "-alias", "ca", "-keystore", root, "-file", anchor, *common)
        for store in (keys, trust):
            keytool("-importcert", "-noprompt", "-alias", "ca", "-file", anchor, "-keystore", store, *common)
        keytool("-importcert", "-noprompt", "-alias", "node", "-file", signed, "-keystore", keys, *common, *of_key)
        keys.chmod(0o600)
    return tmp_path


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_store_of_keytool_serves_a_handshake(made: Path, kind: str) -> None:
    given = {
        "ssl.keystore.location": str(made / f"keys.{kind}"),
        "ssl.keystore.password": STORE,
        "ssl.truststore.location": str(made / f"trust.{kind}"),
        "ssl.truststore.password": STORE,
        "ssl.client.auth": "required",
    }
    if kind == "JKS":
        given["ssl.key.password"] = KEY
    read = read_settings(given)
    key_store, trust_store = load_key_store(read.key_store), load_trust_store(read.trust_store)
    assert key_store is not None
    assert len(key_store.chain) == 2
    server = listening_context(read, key_store, trust_store)
    try_handshake(server, dialling_context(read, key_store, trust_store), HOST)


def choices(folder: Path) -> list[dict[str, Any]]:
    """Combinations of what people give and forget."""
    hidden = form.BestAvailableEncryption(KEY.encode())
    encrypted = key_of(leaf()).private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, hidden).decode()
    plain = key_of(leaf()).private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()).decode()
    pem = write_private(folder / "keys.pem", chain_text(leaf()) + plain)
    cases = []
    locations = [None, pem, str(folder / "keys.JKS"), str(folder / "keys.PKCS12")]
    for location, kind, password, key_password, key, chain in itertools.product(
        locations,
        ["PEM", "JKS", "PKCS12"],
        [None, STORE],
        [None, KEY],
        [None, plain, encrypted],
        [None, chain_text(leaf())],
    ):
        given = {
            "ssl.keystore.location": location,
            "ssl.keystore.type": kind,
            "ssl.keystore.password": password,
            "ssl.key.password": key_password,
            "ssl.keystore.key": key,
            "ssl.keystore.certificate.chain": chain,
        }
        cases.append({name: value for name, value in given.items() if value is not None})
    trusts = [
        None,
        write_private(folder / "ca.pem", authority_text()),
        str(folder / "trust.JKS"),
        str(folder / "trust.PKCS12"),
    ]
    for location, kind, password, certificates in itertools.product(
        trusts, ["PEM", "JKS", "PKCS12"], [None, STORE, "wrong-one"], [None, authority_text()]
    ):
        given = {
            "ssl.truststore.location": location,
            "ssl.truststore.type": kind,
            "ssl.truststore.password": password,
            "ssl.truststore.certificates": certificates,
        }
        cases.append({name: value for name, value in given.items() if value is not None})
    return cases


def ours(given: dict[str, Any]) -> str:
    """Why we do not take it; empty when we do."""
    try:
        read = read_settings(given)
        key_store, trust_store = load_key_store(read.key_store), load_trust_store(read.trust_store)
        dialling_context(read, key_store, trust_store)
    except BadTls as refusal:
        return str(refusal)
    return ""


def test_what_kafka_refuses_is_refused_and_what_it_takes_is_taken(made: Path) -> None:
    cases = choices(made)
    differences = []
    for given, theirs in zip(cases, answers("SslEngines.java", cases), strict=True):
        why = ours(given)
        if bool(why) == theirs["ok"] and not known_difference(given):
            differences.append(
                (sorted(given), {n: given[n] for n in given if n.endswith(("type", "location"))}, why, theirs)
            )
    assert not differences, f"{len(differences)} of {len(cases)}: {differences[:5]}"


def known_difference(given: dict[str, Any]) -> bool:
    """Where we are kinder, since nothing is at stake, or stricter, since Kafka would trust nobody without a word."""
    encrypted_by_others = "ENCRYPTED" in given.get("ssl.keystore.key", "")  # Java 17 refuses it; why is not known
    of_pkcs12 = given.get("ssl.keystore.location", "").endswith("keys.PKCS12") and "ssl.key.password" in given
    unlocked = (
        given.get("ssl.truststore.location", "").endswith("trust.PKCS12") and "ssl.truststore.password" not in given
    )
    return encrypted_by_others or of_pkcs12 or unlocked
