"""How this node makes itself safe when it dials others: with the certificate and login of the listener it dials.

Brokers are dialled at the inter-broker listener, controllers at the first of `controller.listener.names`; what is
configured for the listener of that name here is what this node shows there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.model.errors import PenstockError
from penstock.model.secret import Secret
from penstock.transport.dial_security import PLAINTEXT, DialSecurity, has_sasl, has_tls

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings
    from penstock.model.ports import Offload
    from penstock.transport.login import Credentials
    from penstock.transport.tls.settings import TlsSettings


def towards_brokers(settings: BrokerSettings, offload: Offload) -> DialSecurity | None:
    """None for plaintext. PenstockError when this node could not dial the others."""
    name = settings.inter_broker_listener_name
    return _towards(settings, name, "sasl.mechanism.inter.broker.protocol", offload)


def towards_controllers(settings: BrokerSettings, offload: Offload) -> DialSecurity | None:
    name = settings.controller_listener_names[0]
    return _towards(settings, name, "sasl.mechanism.controller.protocol", offload)


def _towards(settings: BrokerSettings, listener: str, mechanism: str, offload: Offload) -> DialSecurity | None:
    protocol = settings.listener_security_protocol_map.get(listener, PLAINTEXT)
    if protocol == PLAINTEXT:
        return None
    try:
        credentials = _credentials(settings, listener, mechanism) if has_sasl(protocol) else None
        security = DialSecurity(_tls(settings, listener) if has_tls(protocol) else None, credentials, offload.call)
        if security.tls is not None:
            # A node that cannot read its own certificate is told so at its start, and not by others' logs.
            security.tls.load()
    except PenstockError as wrong:
        raise PenstockError(f"listener {listener} ({protocol}) cannot be dialled: {wrong}") from None
    return security


def _tls(settings: BrokerSettings, listener: str) -> Callable[[], TlsSettings]:
    """Asked for again at every dial: a store may be set to another place while the node runs."""
    from penstock.server.securing import tls_settings

    return partial(tls_settings, settings, listener)


def _credentials(settings: BrokerSettings, listener: str, mechanism_property: str) -> Credentials:
    from penstock.security.oauth.messages import MECHANISM as OAUTHBEARER
    from penstock.transport.login import BadLogin, credentials_of

    mechanism = settings.text(mechanism_property)
    prefix = f"listener.name.{listener.lower()}."
    wanted = f"{prefix}{mechanism.lower()}.sasl.jaas.config"
    found = None
    for name in (wanted, f"{prefix}sasl.jaas.config", "sasl.jaas.config"):
        text = settings.get(name)
        if isinstance(text, Secret):
            found = text.reveal()
            break
    if mechanism == OAUTHBEARER:
        return _bearer(settings, listener, found)
    if found is None:
        raise BadLogin(f"{mechanism_property} is {mechanism}, but there is no {wanted}")
    return credentials_of(mechanism, found)


def _bearer(settings: BrokerSettings, listener: str, jaas: str | None) -> Credentials:
    """Access tokens of this node's own, from where its file allows it."""
    from penstock.security.oauth.renewal import RenewalPolicy
    from penstock.server.securing import allowed_addresses
    from penstock.transport.bearer import BearerProperties, bearer_credentials

    def of(name: str) -> Any:
        return settings.for_listener(listener, f"sasl.{name}")

    policy = RenewalPolicy(
        of("login.refresh.window.factor"),
        of("login.refresh.window.jitter"),
        of("login.refresh.min.period.seconds") * 1_000,
        of("login.refresh.buffer.seconds") * 1_000,
        max(of("login.retry.backoff.ms"), 1),
        max(of("login.retry.backoff.max.ms"), 1),
    )
    given = BearerProperties(
        of("oauthbearer.token.endpoint.url"),
        of("oauthbearer.client.credentials.client.id"),
        of("oauthbearer.client.credentials.client.secret"),
        of("oauthbearer.scope"),
        jaas,
    )
    return bearer_credentials(given, policy=policy, check=allowed_addresses(settings).check)
