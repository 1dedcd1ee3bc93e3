"""What a file asks for in matters of security without effect: refused, or told at the start by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from penstock.model.config.broker import LISTENER_PREFIX
from penstock.server.reception.authorize import check_authorizer
from penstock.server.securing import ADMIN, ADMIN_PROTOCOL, prefixed_name

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings

_LOGINS_AND_TLS: Final = r"(.*\.)?(ssl|sasl)\..*"


def check_security(settings: BrokerSettings) -> list[str]:
    """The given properties of TLS and logins that protect no listener; BadAuthorizer when ACLs could be evaded."""
    check_authorizer(settings)
    return [name for name in sorted(settings.properties) if not _protects(settings, name)]


def _protects(settings: BrokerSettings, name: str) -> bool:
    """Whether a property has a listener to hold for, ours or one that is dialled; True for those of other matters."""
    prefixed = re.fullmatch(LISTENER_PREFIX, name)
    bare = name if prefixed is None else prefixed[1]
    matter = re.fullmatch(_LOGINS_AND_TLS, bare)
    if matter is None:
        return True
    protocols = settings.listener_security_protocol_map
    ours = {each.name for each in settings.listeners}
    names = ours | {settings.inter_broker_listener_name, *settings.controller_listener_names}
    if prefixed is not None:
        names = {each for each in names if name.startswith(f"listener.name.{each.lower()}.")}
    holds_for_admin = prefixed is None or name == prefixed_name(ADMIN, bare)
    if settings.text(ADMIN_PROTOCOL) == "SSL" and holds_for_admin:
        names, protocols = names | {ADMIN}, {**protocols, ADMIN: "SSL"}
    return any(matter[2].upper() in protocols.get(each, "") for each in names)
