"""How much a client may use. One question per finished request; the connection mutes itself by the answer."""

from __future__ import annotations

from typing import Protocol

from penstock.server.context import Context


class Quotas(Protocol):
    """Charges finished requests and says for how long the client must pause.

    The reply leaves at once with the pause in its `throttle_time_ms`, then the connection starts no further request
    until it is over; so a client that ignores the field is slowed down all the same.
    """

    def throttle_ms(self, ctx: Context, request_bytes: int, response_bytes: int, handling_ms: float) -> int: ...


class Unlimited:
    """No quotas: nobody pauses."""

    __slots__ = ()

    def throttle_ms(
        self,
        ctx: Context,
        request_bytes: int,
        response_bytes: int,
        handling_ms: float,
    ) -> int:
        return 0


UNLIMITED = Unlimited()
