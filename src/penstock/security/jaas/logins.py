"""What the known login modules mean by their options. Any other class is refused (CVE-2023-25194 and its heirs)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from penstock.model.secret import Secret
from penstock.security.jaas.entry import BadJaas, Entry, parse_entry

_KAFKA: Final = "org.apache.kafka.common.security."
PLAIN_MODULE: Final = _KAFKA + "plain.PlainLoginModule"
SCRAM_MODULE: Final = _KAFKA + "scram.ScramLoginModule"
OAUTH_MODULE: Final = _KAFKA + "oauthbearer.OAuthBearerLoginModule"
KERBEROS_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"

_MODULE_OF: Final = {
    "PLAIN": PLAIN_MODULE,
    "SCRAM-SHA-256": SCRAM_MODULE,
    "SCRAM-SHA-512": SCRAM_MODULE,
    "OAUTHBEARER": OAUTH_MODULE,
    "GSSAPI": KERBEROS_MODULE,
}
_USER: Final = "user_"
_EXTENSION: Final = "extension_"


@dataclass(frozen=True, slots=True)
class PlainLogin:
    """`users` may log in here; `name` and `password` are what this node or client itself sends, if anything."""

    name: str | None
    password: Secret | None
    users: Mapping[str, Secret] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScramLogin:
    """`token`: the name is the id of a delegation token and the password its HMAC."""

    name: str | None
    password: Secret | None
    token: bool = False


@dataclass(frozen=True, slots=True)
class OAuthLogin:
    """Credentials at the identity provider; `extensions` go into the first message."""

    client_id: str | None
    client_secret: Secret | None
    scope: str | None
    extensions: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Secret] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KerberosLogin:
    """Named so that it can be refused by name: Kerberos is not offered here."""


Login: TypeAlias = PlainLogin | ScramLogin | OAuthLogin | KerberosLogin


def parse_login(text: str, mechanism: str) -> Login:
    """What the JAAS text of `mechanism` means. BadJaas when it means nothing, or another mechanism."""
    return login_of(parse_entry(text), mechanism)


def login_of(entry: Entry, mechanism: str) -> Login:
    if entry.module not in _MODULE_OF.values():
        known = ", ".join(sorted(set(_MODULE_OF.values())))
        raise BadJaas(f"login module {entry.module[:200]!r} is not known here; these are: {known}")
    wanted = _MODULE_OF.get(mechanism)
    if entry.module != wanted:
        raise BadJaas(f"{entry.module} does not log in by {mechanism}" + (f": use {wanted}" if wanted else ""))
    match entry.module:
        case "org.apache.kafka.common.security.plain.PlainLoginModule":
            return _plain(entry)
        case "org.apache.kafka.common.security.scram.ScramLoginModule":
            return _scram(entry)
        case "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule":
            return _oauth(entry)
    return KerberosLogin()


def _plain(entry: Entry) -> PlainLogin:
    users = {key.removeprefix(_USER): value for key, value in entry.options.items() if key.startswith(_USER)}
    return PlainLogin(_text(entry, "username"), entry.options.get("password"), users)


def _scram(entry: Entry) -> ScramLogin:
    token = (_text(entry, "tokenauth") or "").lower() == "true"
    return ScramLogin(_text(entry, "username"), entry.options.get("password"), token)


def _oauth(entry: Entry) -> OAuthLogin:
    extensions = {
        key.removeprefix(_EXTENSION): value.reveal()
        for key, value in entry.options.items()
        if key.startswith(_EXTENSION)
    }
    secret = entry.options.get("clientSecret")
    return OAuthLogin(_text(entry, "clientId"), secret, _text(entry, "scope"), extensions, entry.options)


def _text(entry: Entry, key: str) -> str | None:
    value = entry.options.get(key)
    return None if value is None else value.reveal()
