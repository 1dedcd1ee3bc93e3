"""Settings that let in more than their author may think, in words. They are served all the same.

| weak | because |
|---|---|
| PLAIN on a SASL_PLAINTEXT listener | passwords can be read on the way |
| SASL_PLAINTEXT beyond the loopback | records can be read and changed on the way |
| certificates not required between nodes | whoever reaches the port is a node |
| nodes that do not check host names | whoever has any certificate of the cluster can stand in for a node |
| ANONYMOUS among the super users | nobody has to log in |
| signing keys of access tokens over http, beyond the loopback | they can be changed on the way |
| access tokens of any issuer, for any audience, or unsigned | what was given to others opens this cluster |
| an admin port beyond the loopback without TLS or a login | others read what topics and groups there are |
| logins without an authorizer, or one that allows what no ACL names | a login opens everything |
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from penstock.model.config.broker import LISTENER_PREFIX

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings
    from penstock.model.config.endpoints import Endpoint

SASL_PLAINTEXT: Final = "SASL_PLAINTEXT"
ANONYMOUS: Final = "User:ANONYMOUS"
_HOST_CHECK: Final = "ssl.endpoint.identification.algorithm"
_CLIENT_AUTH: Final = "ssl.client.auth"
_ADMIN_LISTENER: Final = "penstock.admin.listener"
_ADMIN_LOGINS: Final = ("penstock.admin.username", "penstock.admin.bearer.token")
_JWKS: Final = "sasl.oauthbearer.jwks.endpoint.url"
_HANDLER: Final = "sasl.server.callback.handler.class"


class Weakness(NamedTuple):
    """A property, and what it opens."""

    name: str
    why: str


def weak_settings(settings: BrokerSettings) -> list[Weakness]:
    """All of them, by property; none in what `penstock server init --secure` makes."""
    return [
        *_logins_in_the_clear(settings),
        *_trusting_tokens(settings),
        *_open_between_nodes(settings),
        *_unchecked_hosts(settings),
        *_open_admin_port(settings),
        *_open_to_all(settings),
    ]


def _logins_in_the_clear(settings: BrokerSettings) -> Iterator[Weakness]:
    for endpoint in settings.listeners:
        if endpoint.security_protocol != SASL_PLAINTEXT:
            continue
        mechanisms = settings.for_listener(endpoint.name, "sasl.enabled.mechanisms")
        if isinstance(mechanisms, tuple) and "PLAIN" in mechanisms:
            name = _given_name(settings, endpoint.name, "sasl.enabled.mechanisms")
            yield Weakness(name, f"PLAIN on {endpoint.name} sends passwords for all to read; SASL_SSL hides them")
        if not _loopback(endpoint.host):
            yield Weakness(
                "listeners",
                f"{endpoint.name} is SASL_PLAINTEXT beyond this machine: what is sent after the login can be read and "
                "changed on the way; SASL_SSL protects it",
            )


def _trusting_tokens(settings: BrokerSettings) -> Iterator[Weakness]:
    for endpoint in settings.listeners:
        mechanisms = settings.for_listener(endpoint.name, "sasl.enabled.mechanisms")
        if not endpoint.security_protocol.startswith("SASL_"):
            continue
        if not isinstance(mechanisms, tuple) or "OAUTHBEARER" not in mechanisms:
            continue
        for name in sorted(settings.properties):
            if _bare(name).endswith(_HANDLER) and "UnsecuredValidator" in settings.properties[name]:
                yield Weakness(name, f"{endpoint.name} believes tokens that nobody signed: anybody can be anybody")
        for name in ("sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.expected.audience"):
            if not settings.for_listener(endpoint.name, name):
                yield Weakness(name, f"not set: {endpoint.name} takes tokens that were meant for others")
        url = urlsplit(str(settings.for_listener(endpoint.name, _JWKS) or ""))
        if url.scheme == "http" and not _loopback(url.hostname or ""):
            name = _given_name(settings, endpoint.name, _JWKS)
            yield Weakness(name, "http: whoever changes the keys on the way can be anybody; https protects them")


def _open_between_nodes(settings: BrokerSettings) -> Iterator[Weakness]:
    """What nodes tell each other is believed, so listeners between them have to know who speaks."""
    secured = [each for each in settings.listeners if each.security_protocol != "PLAINTEXT"]
    for endpoint in _between_nodes(settings):
        if endpoint.security_protocol == "SSL":
            asked = settings.for_listener(endpoint.name, _CLIENT_AUTH)
            if asked != "required":
                yield Weakness(
                    _given_name(settings, endpoint.name, _CLIENT_AUTH),
                    f"{endpoint.name} takes connections without a certificate, and nodes are believed there; "
                    "ssl.client.auth=required lets in nodes only",
                )
        elif endpoint.security_protocol == "PLAINTEXT" and secured:
            yield Weakness(
                "listener.security.protocol.map",
                f"{endpoint.name} is PLAINTEXT, and nodes are believed there: whoever reaches it gets around "
                f"{secured[0].name}",
            )


def _unchecked_hosts(settings: BrokerSettings) -> Iterator[Weakness]:
    for name in sorted(settings.properties):
        if _bare(name) == _HOST_CHECK and not (settings[name] or ""):
            yield Weakness(name, "empty: this node does not check whom it reached when it dials others; https does")


def _open_admin_port(settings: BrokerSettings) -> Iterator[Weakness]:
    host, _, port = settings.text(_ADMIN_LISTENER).rpartition(":")
    if not port or _loopback(host.strip("[]")):
        return
    tls = settings.text("penstock.admin.security.protocol") == "SSL"
    if not tls:
        yield Weakness(
            _ADMIN_LISTENER,
            "metrics and logins can be read on the way, beyond this machine; penstock.admin.security.protocol=SSL "
            "hides them",
        )
    by_certificate = tls and settings.properties.get(f"listener.name.admin.{_CLIENT_AUTH}") == "required"
    if not by_certificate and not any(settings.properties.get(name) for name in _ADMIN_LOGINS):
        yield Weakness(
            _ADMIN_LISTENER,
            "whoever reaches it reads the names of topics and groups; penstock.admin.username and .password, or "
            ".bearer.token, ask who it is",
        )


def _open_to_all(settings: BrokerSettings) -> Iterator[Weakness]:
    if not settings.text("authorizer.class.name"):
        if any(endpoint.security_protocol.startswith("SASL_") for endpoint in settings.listeners):
            yield Weakness("authorizer.class.name", "not set: whoever logs in may do everything")
        return
    given = settings.properties
    if ANONYMOUS in [user.strip() for user in given.get("super.users", "").split(";")]:
        yield Weakness("super.users", f"{ANONYMOUS} may do everything, and that is everybody who does not log in")
    if given.get("allow.everyone.if.no.acl.found", "").strip().lower() == "true":
        yield Weakness("allow.everyone.if.no.acl.found", "what no ACL names is open to everybody who gets in")


def _between_nodes(settings: BrokerSettings) -> Iterator[Endpoint]:
    names = {settings.inter_broker_listener_name, *settings.controller_listener_names}
    return (endpoint for endpoint in settings.listeners if endpoint.name in names)


def _given_name(settings: BrokerSettings, listener: str, name: str) -> str:
    prefixed = f"listener.name.{listener.lower()}.{name}"
    return prefixed if prefixed in settings.properties else name


def _bare(name: str) -> str:
    prefixed = re.fullmatch(LISTENER_PREFIX, name)
    return name if prefixed is None else str(prefixed[1])


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
