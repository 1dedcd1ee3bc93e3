"""Who sent a request, as a broker writes it into Envelope (58) for the controller."""

from __future__ import annotations

from penstock.protocol.wire import boolean, message, string


@message(kind="data", versions="0", flexible="0+")
class DefaultPrincipalData:
    type: str = string()
    name: str = string()
    token_authenticated: bool = boolean()
