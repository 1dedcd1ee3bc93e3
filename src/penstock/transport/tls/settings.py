"""The `ssl.*` properties of one listener or one dialler, under Kafka's names, checked before any file is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from penstock.model.config.definition import ConfigValue
from penstock.model.errors import PenstockError
from penstock.model.secret import Secret

TLS_1_2: Final = "TLSv1.2"
TLS_1_3: Final = "TLSv1.3"
PROTOCOLS: Final = (TLS_1_2, TLS_1_3)
CLIENT_AUTH: Final = ("none", "requested", "required")
PEM, PKCS12, JKS = "PEM", "PKCS12", "JKS"
STORE_TYPES: Final = (PEM, PKCS12, JKS)

KEY_STORE: Final = "ssl.keystore"
TRUST_STORE: Final = "ssl.truststore"
_OUTDATED: Final = frozenset({"SSLv2Hello", "SSLv2", "SSLv3", "TLSv1", "TLSv1.1"})


class BadTls(PenstockError):
    """Settings of TLS that contradict themselves, or a store that cannot be used. Names properties, never secrets."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where a key store or trust store is: a file, or texts. None is what nobody gave."""

    prefix: str
    """`ssl.keystore` or `ssl.truststore`."""
    location: str | None = None
    type: str | None = None
    """PEM, PKCS12 or JKS; None lets the content tell."""
    password: Secret | None = None
    certificates: Secret | None = None
    """`ssl.keystore.certificate.chain` or `ssl.truststore.certificates`: PEM text."""
    key: Secret | None = None
    """`ssl.keystore.key`: PEM text."""
    key_password: Secret | None = None
    """`ssl.key.password`."""
    key_location: str | None = None
    """A file of its own for the key that belongs to the chain in `location`: no property of Kafka's has that."""

    @property
    def inline(self) -> bool:
        return self.certificates is not None or self.key is not None

    @property
    def given(self) -> bool:
        return self.location is not None or self.inline


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """What TLS has to be on a listener, or when dialling one."""

    key_store: StoreSettings
    trust_store: StoreSettings
    protocols: tuple[str, ...] = PROTOCOLS
    """`ssl.enabled.protocols`."""
    cipher_suites: tuple[str, ...] = ()
    """`ssl.cipher.suites`, in Java's names or OpenSSL's; empty takes what OpenSSL and Python hold to be safe."""
    client_auth: str = "none"
    """`ssl.client.auth`: whether clients need not, may or must show a certificate."""
    checks_host: bool = True
    """`ssl.endpoint.identification.algorithm` is https."""
    allow_dn_changes: bool = False
    allow_san_changes: bool = False

    def watched_paths(self) -> tuple[str, ...]:
        """The files whose change may mean a new certificate or other trust."""
        files = (self.key_store.location, self.key_store.key_location, self.trust_store.location)
        return tuple(path for path in files if path is not None)


def read_settings(given: Mapping[str, ConfigValue]) -> TlsSettings:
    """From the properties that were given for this listener or dialler, prefixes taken off; other names are ignored.

    What has a default and was not given must not be in there: only then the content of a store may tell its type.
    """
    settings = TlsSettings(
        key_store=StoreSettings(
            KEY_STORE,
            location=_text(given, "ssl.keystore.location"),
            type=_text(given, "ssl.keystore.type"),
            password=_secret(given, "ssl.keystore.password"),
            certificates=_secret(given, "ssl.keystore.certificate.chain"),
            key=_secret(given, "ssl.keystore.key"),
            key_password=_secret(given, "ssl.key.password"),
        ),
        trust_store=StoreSettings(
            TRUST_STORE,
            location=_text(given, "ssl.truststore.location"),
            type=_text(given, "ssl.truststore.type"),
            password=_secret(given, "ssl.truststore.password"),
            certificates=_secret(given, "ssl.truststore.certificates"),
        ),
        protocols=_protocols(_names(given, "ssl.enabled.protocols", PROTOCOLS)),
        cipher_suites=_names(given, "ssl.cipher.suites", ()),
        client_auth=_client_auth(_text(given, "ssl.client.auth") or "none"),
        checks_host=_checks_host(_plain(given, "ssl.endpoint.identification.algorithm")),
        allow_dn_changes=_flag(given, "ssl.allow.dn.changes"),
        allow_san_changes=_flag(given, "ssl.allow.san.changes"),
    )
    check_key_store(settings.key_store)
    check_trust_store(settings.trust_store)
    return settings


def check_key_store(store: StoreSettings) -> None:
    """Kafka's contradictions: one half of a pair, two places at once, passwords that mean nothing."""
    _check_type(store)
    if store.inline:
        if store.key is None:
            raise BadTls("ssl.keystore.certificate.chain is given without ssl.keystore.key")
        if store.certificates is None:
            raise BadTls("ssl.keystore.key is given without ssl.keystore.certificate.chain")
        _check_inline(store, "ssl.keystore.key")
    elif store.location is None and store.password is not None:
        raise BadTls("ssl.keystore.password is given, but no ssl.keystore.location")
    elif store.location is not None:
        _check_file(store, needs_password=True)


def check_trust_store(store: StoreSettings) -> None:
    _check_type(store)
    if store.inline:
        _check_inline(store, "ssl.truststore.certificates")
    elif store.location is None and store.password is not None:
        raise BadTls("ssl.truststore.password is given, but no ssl.truststore.location")
    elif store.location is not None:
        _check_file(store, needs_password=False)


def check_password(store: StoreSettings, kind: str) -> None:
    """Once the content has told what a store is: a password where none belongs, or none where one does."""
    if kind == PEM and store.password is not None:
        raise BadTls(
            f"{store.prefix}.password is given, but {store.location} is PEM, which has none"
            + ("; the password of a key is ssl.key.password" if store.prefix == KEY_STORE else "")
        )
    if kind != PEM and store.prefix == KEY_STORE and store.password is None:
        raise BadTls(
            f"{store.prefix}.location is {store.location}, a {kind} store, but {store.prefix}.password is not given"
        )


def _check_type(store: StoreSettings) -> None:
    if store.type is not None and store.type not in STORE_TYPES:
        raise BadTls(
            f"{store.prefix}.type is {store.type}; PEM, PKCS12 and JKS can be read. Convert it with "
            "keytool -importkeystore -srckeystore FILE -srcstoretype TYPE -destkeystore FILE.p12 -deststoretype PKCS12"
        )


def _check_inline(store: StoreSettings, name: str) -> None:
    if store.location is not None:
        raise BadTls(f"{name} and {store.prefix}.location are both given; one of them must go")
    if store.type not in (None, PEM):
        raise BadTls(f"{name} is PEM text, but {store.prefix}.type is {store.type}")
    if store.password is not None:
        raise BadTls(f"{store.prefix}.password is given, but PEM text has none")


def _check_file(store: StoreSettings, *, needs_password: bool) -> None:
    if store.type == PEM or (store.type is not None and needs_password):
        check_password(store, store.type)


def _protocols(names: tuple[str, ...]) -> tuple[str, ...]:
    outdated = sorted(_OUTDATED.intersection(names))
    if outdated:
        raise BadTls(
            f"ssl.enabled.protocols: {', '.join(outdated)} can be broken and is not served; use TLSv1.2,TLSv1.3"
        )
    unknown = [name for name in names if name not in PROTOCOLS]
    if unknown:
        raise BadTls(f"ssl.enabled.protocols: {unknown[0]!r} is no version of TLS; TLSv1.2 and TLSv1.3 are")
    if not names:
        raise BadTls("ssl.enabled.protocols is empty")
    return tuple(name for name in PROTOCOLS if name in names)


def _client_auth(name: str) -> str:
    if name.lower() not in CLIENT_AUTH:
        raise BadTls(f"ssl.client.auth is {name!r}; it can be none, requested or required")
    return name.lower()


def _checks_host(algorithm: str | None) -> bool:
    # Not given means https. Given and empty is how Kafka switches the check off.
    if algorithm is None or algorithm.lower() == "https":
        return True
    if algorithm.strip():
        raise BadTls(f"ssl.endpoint.identification.algorithm is {algorithm!r}; it can be https, or empty for no check")
    return False


def _plain(given: Mapping[str, ConfigValue], name: str) -> str | None:
    value = given.get(name)
    if value is None:
        return None
    return value.reveal() if isinstance(value, Secret) else str(value)


def _text(given: Mapping[str, ConfigValue], name: str) -> str | None:
    return _plain(given, name) or None


def _secret(given: Mapping[str, ConfigValue], name: str) -> Secret | None:
    value = _plain(given, name)
    return None if value is None else Secret(value)


def _names(given: Mapping[str, ConfigValue], name: str, default: tuple[str, ...]) -> tuple[str, ...]:
    value = given.get(name)
    if value is None:
        return default
    if isinstance(value, tuple):
        return value
    return tuple(part.strip() for part in str(value).split(",") if part.strip())


def _flag(given: Mapping[str, ConfigValue], name: str) -> bool:
    value = given.get(name, False)
    return value is True or str(value).lower() == "true"
