"""Cipher suites by Java's names, for a library that has its own names and lets only those of TLS 1.2 be chosen."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from penstock.transport.tls.settings import PROTOCOLS, TLS_1_2, TLS_1_3, BadTls

TLS_1_3_SUITES: Final = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_128_CCM_SHA256",
    "TLS_AES_128_CCM_8_SHA256",
)
OFFERED_1_3: Final = TLS_1_3_SUITES[:3]
"""What OpenSSL offers by itself."""

_SUITE: Final = re.compile(r"TLS_(?P<exchange>[A-Z_]+?)_WITH_(?P<cipher>[A-Z0-9_]+)")
_EXCHANGES: Final = {
    "ECDHE_ECDSA": "ECDHE-ECDSA-",
    "ECDHE_RSA": "ECDHE-RSA-",
    "DHE_RSA": "DHE-RSA-",
    "RSA": "",
}
_CIPHERS: Final = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CCM": "AES128-CCM",
    "AES_256_CCM": "AES256-CCM",
    "AES_128_CCM_8": "AES128-CCM8",
    "AES_256_CCM_8": "AES256-CCM8",
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a list of suites comes to."""

    openssl: str = ""
    """For `set_ciphers`: suites of TLS 1.2; empty leaves OpenSSL its own."""
    suites_1_3: tuple[str, ...] = ()
    protocols: tuple[str, ...] = PROTOCOLS
    """Versions of which the list has any suite."""
    warning: str = ""


def choose(names: Iterable[str]) -> Chosen:
    """`BadTls` for a name that nobody knows, or that protects nothing."""
    names = tuple(names)
    if not names:
        return Chosen()
    newer = tuple(name for name in names if name in TLS_1_3_SUITES)
    older = [openssl_name(name) for name in names if name not in TLS_1_3_SUITES]
    protocols = tuple(version for version, any_of_it in ((TLS_1_2, older), (TLS_1_3, newer)) if any_of_it)
    left_out = [name for name in OFFERED_1_3 if name not in newer]
    warning = ""
    if newer and left_out:
        warning = f"ssl.cipher.suites leaves out {', '.join(left_out)}, which TLS 1.3 offers all the same"
    return Chosen(":".join(older), newer, protocols, warning)


def openssl_name(name: str) -> str:
    """OpenSSL's name of a suite of TLS 1.2; one that is given in it already stays."""
    found = _SUITE.fullmatch(name)
    if found is not None:
        exchange, cipher = _EXCHANGES.get(found["exchange"]), _CIPHERS.get(found["cipher"])
        if exchange is not None and cipher is not None:
            return exchange + cipher
    elif any(name == exchange + cipher for exchange in _EXCHANGES.values() for cipher in _CIPHERS.values()):
        return name
    raise BadTls(f"ssl.cipher.suites: {name!r} is not served: it is unknown, or protects too little")
