"""SaslHandshake (17), versions 0-1, where nobody logs in, or somebody has already.

Behaviour: ILLEGAL_SASL_STATE. Logins themselves never come here: the connection leads them (`reception/login.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import ILLEGAL_SASL_STATE
from penstock.protocol.messages.sasl_handshake import SaslHandshakeResponse

if TYPE_CHECKING:
    from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest
    from penstock.server.doors import Context


def handle(_ctx: Context, _request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ILLEGAL_SASL_STATE.code)
