"""What a file asks for in matters of security, and this node cannot do yet: refused, or told at the start by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from penstock.model.config.broker import LISTENER_PREFIX
from penstock.model.errors import PenstockError

if TYPE_CHECKING:
    from penstock.model.config import BrokerSettings

AUTHORIZER: Final = "authorizer.class.name"
_LOGINS_AND_TLS: Final = r"(.*\.)?(ssl|sasl)\..*"


class NotEnforced(PenstockError):
    """The node would be open although its file says that it is not."""


def check_security(settings: BrokerSettings) -> list[str]:
    """The given properties of TLS and logins that protect nothing here; NotEnforced when ACLs are asked for."""
    if settings.text(AUTHORIZER):
        raise NotEnforced(
            f"{AUTHORIZER} is {settings.text(AUTHORIZER)}, but ACLs are not enforced yet: this node would be open to "
            "everybody. Remove the property to start it without"
        )
    return [name for name in sorted(settings.properties) if re.fullmatch(_LOGINS_AND_TLS, _bare(name)) is not None]


def _bare(name: str) -> str:
    """The name without the listener that it is meant for."""
    prefixed = re.fullmatch(LISTENER_PREFIX, name)
    return name if prefixed is None else prefixed[1]
