"""Java's names of cipher suites, as OpenSSL knows them."""

from __future__ import annotations

import ssl
import subprocess

import pytest

from penstock.transport.tls.ciphers import TLS_1_3_SUITES, choose, openssl_name
from penstock.transport.tls.settings import BadTls


def test_every_name_that_is_translated_is_openssls_own_name_of_that_suite() -> None:
    listed = subprocess.run(
        ["openssl", "ciphers", "-stdname", "ALL:@SECLEVEL=0"], capture_output=True, text=True, check=True, timeout=60
    )
    known = {}
    for line in listed.stdout.splitlines():
        standard, _, name, *_ = line.split()
        known[standard] = name
    translated = 0
    for standard, name in known.items():
        if standard in TLS_1_3_SUITES:
            continue
        try:
            assert openssl_name(standard) == name
        except BadTls:
            continue
        translated += 1
    assert translated >= 30


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", "ECDHE-ECDSA-AES256-SHA384"),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
    ],
)
def test_names_in_use(java: str, openssl: str) -> None:
    assert openssl_name(java) == openssl


@pytest.mark.parametrize(
    "name",
    [
        "TLS_RSA_WITH_NULL_SHA256",
        "TLS_DH_anon_WITH_AES_128_CBC_SHA",
        "TLS_RSA_WITH_RC4_128_SHA",
        "SSL_RSA_WITH_3DES_EDE_CBC_SHA",
        "eNULL",
        "ALL",
        "ALL:@SECLEVEL=0",
        "ECDHE-RSA-AES256-GCM-SHA384:eNULL",
        "",
    ],
)
def test_what_protects_nothing_or_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(BadTls, match=r"ssl\.cipher\.suites"):
        openssl_name(name)


def test_a_list_bounds_the_versions_to_those_that_it_has_suites_of() -> None:
    assert choose(["TLS_AES_128_GCM_SHA256"]).protocols == ("TLSv1.3",)
    assert choose(["TLS_RSA_WITH_AES_128_GCM_SHA256"]).protocols == ("TLSv1.2",)
    assert choose(["TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_128_GCM_SHA256"]).protocols == ("TLSv1.2", "TLSv1.3")
    assert choose([]).protocols == ("TLSv1.2", "TLSv1.3")


def test_a_list_that_cannot_be_kept_to_is_warned_of() -> None:
    assert "TLS_CHACHA20_POLY1305_SHA256" in choose(["TLS_AES_256_GCM_SHA384"]).warning
    assert choose(TLS_1_3_SUITES).warning == ""
    assert choose(["TLS_RSA_WITH_AES_128_GCM_SHA256"]).warning == ""


def test_what_is_offered_without_a_list_is_what_openssl_offers() -> None:
    offered = {each["name"] for each in ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).get_ciphers()}
    assert set(TLS_1_3_SUITES[:3]) <= offered
