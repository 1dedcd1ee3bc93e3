"""What the properties of a node say about the security of one listener: TLS and logins, overrides taken into account.

`listener.name.<lower case>.<property>` holds for one listener, the bare property for all that have no own. Those who
listen and those who dial that listener read the same: a node shows there the certificate that is configured for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.model.config.broker import BROKER_CONFIGS
from penstock.transport.tls.settings import read_settings

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings
    from penstock.model.config.definition import ConfigValue
    from penstock.transport.tls.settings import TlsSettings
    from penstock.transport.web import Allowed

CLIENT_AUTH: Final = "ssl.client.auth"
ADMIN: Final = "ADMIN"
"""The admin port, where listeners are told apart by their names."""
ADMIN_PROTOCOL: Final = "penstock.admin.security.protocol"
_TLS_NAMES: Final = tuple(name for name in BROKER_CONFIGS if name.startswith("ssl."))


def tls_settings(settings: BrokerSettings, listener_name: str) -> TlsSettings:
    """The `ssl.*` properties as they hold for one listener. `BadTls` when they contradict themselves.

    Only what was given is handed on, because a default would hide what a store's own content tells. A login says who
    a client is, so on SASL_SSL a certificate is asked for only where that listener itself says so; and so on the admin
    port, whose scrapers have none.
    """
    given: dict[str, ConfigValue] = {}
    for name in _TLS_NAMES:
        if (prefixed := prefixed_name(listener_name, name)) in settings:
            given[name] = settings[prefixed]
        elif name in settings.properties:
            given[name] = settings[name]
    protocol = settings.listener_security_protocol_map.get(listener_name.upper())
    if (protocol == "SASL_SSL" or listener_name == ADMIN) and prefixed_name(listener_name, CLIENT_AUTH) not in settings:
        given.pop(CLIENT_AUTH, None)
    return read_settings(given)


def prefixed_name(listener_name: str, name: str) -> str:
    """The property that holds for one listener alone."""
    return f"listener.name.{listener_name.lower()}.{name}"


def allowed_addresses(settings: BrokerSettings) -> Allowed:
    """Where this node may fetch keys and tokens. Nowhere, unless its file says so: these are not dynamic."""
    from penstock.transport.web import Allowed

    urls, files = (settings[f"penstock.sasl.oauthbearer.allowed.{name}"] for name in ("urls", "files"))
    assert isinstance(urls, tuple), "a list"
    assert isinstance(files, tuple), "a list"
    return Allowed(frozenset(urls), frozenset(files))
