"""Delegation tokens as logins by SCRAM: the image has the tokens, the node's secret makes their passwords.

Keys are derived at a token's first login, off the loop, and kept: those of the last `KEPT_MAX` tokens to log in.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from penstock.security.delegation import ends_at_ms, token_hmac
from penstock.security.scram.server import TokenLogin

if TYPE_CHECKING:
    from penstock.protocol.disk.metadata_security import DelegationTokenRecord
    from penstock.security.scram.keys import Mechanism

KEPT_MAX: Final = 10_000
"""About 2 MB; whoever has more tokens that log in pays a derivation, a few milliseconds of a thread, now and then."""

_USER: Final = "User:"


class TokenLogins:
    """Those of one listener. Without a secret no token is good for a login."""

    __slots__ = ("_salted", "_secret")

    def __init__(self, secret: bytes | None) -> None:
        self._secret = secret
        self._salted: OrderedDict[tuple[int, str], bytes] = OrderedDict()

    def login(self, mechanism: Mechanism, token: DelegationTokenRecord) -> TokenLogin | None:
        """What a proof is checked against. Logins make users, so the token of another kind of owner makes none."""
        if self._secret is None or not token.owner.startswith(_USER):
            return None
        key = (mechanism.type, token.token_id)
        if key in self._salted:
            self._salted.move_to_end(key)
        password = base64.b64encode(token_hmac(self._secret, token.token_id)).decode("ascii")
        return TokenLogin(token.owner.removeprefix(_USER), ends_at_ms(token), password, self._salted.get(key))

    def keep(self, mechanism: Mechanism, token_id: str, salted: bytes) -> None:
        self._salted[mechanism.type, token_id] = salted
        if len(self._salted) > KEPT_MAX:
            self._salted.popitem(last=False)

    def __repr__(self) -> str:
        return f"TokenLogins({len(self._salted)} kept)"
