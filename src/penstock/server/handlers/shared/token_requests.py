"""What the handlers of delegation tokens share: from whom they are taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.security.delegation import may_ask

if TYPE_CHECKING:
    from penstock.server.doors import Context


def takes_tokens(ctx: Context) -> bool:
    """Whether the client's connection proves enough for tokens. Where controllers listen it is a broker that asks, and
    has looked at its client's connection itself."""
    protocol = "SASL_SSL" if ctx.listener.for_controllers else ctx.listener.security_protocol
    return may_ask(protocol, ctx.principal, by_token=ctx.by_token)
