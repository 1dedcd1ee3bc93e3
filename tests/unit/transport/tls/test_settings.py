"""Settings of TLS that contradict themselves are refused before a file is opened, by the name of the property."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.model.secret import Secret
from penstock.transport.tls.settings import BadTls, read_settings

SECRET = "hunter2-secret"


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"ssl.keystore.key": "k"}, "without ssl.keystore.certificate.chain"),
        ({"ssl.keystore.certificate.chain": "c"}, "without ssl.keystore.key"),
        ({"ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c", "ssl.keystore.location": "/x"}, "both given"),
        ({"ssl.truststore.certificates": "c", "ssl.truststore.location": "/x"}, "both given"),
        ({"ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c", "ssl.keystore.password": "p"}, "has none"),
        ({"ssl.truststore.certificates": "c", "ssl.truststore.password": "p"}, "has none"),
        ({"ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c", "ssl.keystore.type": "JKS"}, "PEM text"),
        ({"ssl.truststore.certificates": "c", "ssl.truststore.type": "PKCS12"}, "PEM text"),
        ({"ssl.keystore.type": "PEM", "ssl.keystore.location": "/x", "ssl.keystore.password": "p"}, "is PEM"),
        ({"ssl.truststore.type": "PEM", "ssl.truststore.location": "/x", "ssl.truststore.password": "p"}, "is PEM"),
        ({"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "/x"}, "ssl.keystore.password is not given"),
        ({"ssl.keystore.type": "JKS", "ssl.keystore.location": "/x"}, "ssl.keystore.password is not given"),
        ({"ssl.keystore.password": "p"}, "no ssl.keystore.location"),
        ({"ssl.truststore.password": "p"}, "no ssl.truststore.location"),
        ({"ssl.keystore.type": "BCFKS", "ssl.keystore.location": "/x"}, "keytool -importkeystore"),
        ({"ssl.enabled.protocols": "TLSv1.1,TLSv1.2"}, "TLSv1.1 can be broken"),
        ({"ssl.enabled.protocols": "SSLv3"}, "SSLv3 can be broken"),
        ({"ssl.enabled.protocols": "TLSv9"}, "no version of TLS"),
        ({"ssl.enabled.protocols": ""}, "is empty"),
        ({"ssl.client.auth": "maybe"}, "none, requested or required"),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "https, or empty"),
    ],
)
def test_a_contradiction_is_named(given: dict[str, Any], word: str) -> None:
    with pytest.raises(BadTls, match=word):
        read_settings(given)


def test_secrets_are_in_no_text_of_the_settings_or_their_refusals() -> None:
    given: dict[str, Any] = {
        "ssl.keystore.location": "/x",
        "ssl.keystore.password": SECRET,
        "ssl.key.password": Secret(SECRET),
        "ssl.truststore.location": "/y",
        "ssl.truststore.password": SECRET,
    }
    assert SECRET not in repr(read_settings(given))
    with pytest.raises(BadTls) as refusal:
        read_settings(given | {"ssl.keystore.key": SECRET})
    assert SECRET not in str(refusal.value)


def test_nothing_given_means_kafkas_defaults() -> None:
    read = read_settings({})
    assert (read.protocols, read.cipher_suites, read.client_auth) == (("TLSv1.2", "TLSv1.3"), (), "none")
    assert read.checks_host
    assert not read.allow_dn_changes
    assert not read.allow_san_changes
    assert not read.key_store.given
    assert not read.trust_store.given


def test_values_come_typed_or_as_text() -> None:
    typed = read_settings({"ssl.enabled.protocols": ("TLSv1.3",), "ssl.allow.dn.changes": True})
    as_text = read_settings({"ssl.enabled.protocols": " TLSv1.3 ", "ssl.allow.dn.changes": "true"})
    assert typed == as_text


@pytest.mark.parametrize(("algorithm", "checks"), [("https", True), ("HTTPS", True), ("", False), (" ", False)])
def test_an_empty_algorithm_switches_the_check_of_names_off(algorithm: str, checks: bool) -> None:
    assert read_settings({"ssl.endpoint.identification.algorithm": algorithm}).checks_host is checks


def test_the_files_to_watch_are_those_that_are_given() -> None:
    given = {"ssl.keystore.location": "/k", "ssl.truststore.certificates": "c"}
    assert read_settings(given).watched_paths() == ("/k",)
