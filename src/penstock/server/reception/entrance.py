"""What a listener asks of those who come: TLS, a login, both. A plaintext listener has no entrance, and loads none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import PenstockError
from penstock.server.doors import ANONYMOUS
from penstock.server.reception.strangers import Strangers

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from penstock.model.config import BrokerSettings, Endpoint
    from penstock.server.doors import Principal
    from penstock.server.reception.gate import Gate
    from penstock.server.reception.login import Applicant, Login
    from penstock.server.reception.logins import Logins
    from penstock.server.reception.reception import Reception
    from penstock.server.reception.tls_door import TlsDoor
    from penstock.transport.stream import FrameStream


class BadListeners(PenstockError):
    """The listener settings contradict themselves or ask for what this node cannot do."""


class Entrance:
    """Made before anything is bound, opened with its listener."""

    __slots__ = ("_reception", "logins", "name", "strangers", "tls")

    def __init__(self, name: str, tls: TlsDoor | None, logins: Logins | None) -> None:
        self.name, self.tls, self.logins = name, tls, logins
        # Of each listener its own: who crowds the door of clients must not keep nodes from each other.
        self.strangers = Strangers()
        self._reception: Reception | None = None

    def open(self, reception: Reception) -> None:
        self._reception = reception
        if self.tls is not None:
            assert reception.offload is not None, "files are not read on the loop"
            self.tls.open(
                reception.loop,
                reception.clock,
                reception.offload,
                reception.node.settings,
                self.strangers,
                reception.sparing,
            )
        if self.logins is not None and self.logins.bearers is not None:
            assert reception.offload is not None, "signatures are not checked on the loop"
            self.logins.bearers.open(reception.clock, reception.offload, reception.sparing)

    def close(self) -> None:
        self.strangers.close()
        if self.logins is not None and self.logins.bearers is not None:
            self.logins.bearers.close()
        if self.tls is not None:
            self.tls.close()

    def settings_changed(self) -> None:
        if self.tls is not None:
            self.tls.settings_changed()
        if self.logins is not None and self._reception is not None:
            self._reception.cut_users(self.name, self.logins.settings_changed(self._reception.node.settings))

    def login(self, connection: Applicant, gate: Gate, reception: Reception) -> Login:
        from penstock.server.reception.login import Login

        assert self.logins is not None, "this listener asks for logins"
        return Login(connection, gate, reception, self.logins)

    def accept(self, make: Callable[[], FrameStream]) -> asyncio.BaseProtocol:
        return make() if self.tls is None else self.tls.accept(make)

    def principal_of(self, transport: asyncio.BaseTransport) -> Principal:
        """Who a client is by what it showed before its first request. Where there are logins, nobody yet."""
        return ANONYMOUS if self.tls is None or self.logins is not None else self.tls.principal_of(transport)


def entrance_of(settings: BrokerSettings, endpoint: Endpoint) -> Entrance | None:
    """That of one listener; None for a plaintext one. `BadListeners` when it cannot be served."""
    protocol = endpoint.security_protocol
    if protocol == "PLAINTEXT":
        return None
    try:
        return Entrance(
            endpoint.name,
            _tls_door(settings, endpoint.name) if protocol in ("SSL", "SASL_SSL") else None,
            _logins(settings, endpoint.name) if protocol in ("SASL_PLAINTEXT", "SASL_SSL") else None,
        )
    except PenstockError as bad:
        raise BadListeners(f"listener {endpoint}: {bad}") from None


def _tls_door(settings: BrokerSettings, name: str) -> TlsDoor:
    from penstock.server.reception.tls_door import TlsDoor

    return TlsDoor(settings, name)


def _logins(settings: BrokerSettings, name: str) -> Logins:
    from penstock.server.reception.logins import Logins

    return Logins(settings, name)
