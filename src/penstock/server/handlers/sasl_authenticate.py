"""SaslAuthenticate (36), versions 0-2, where nobody logs in, or somebody has already.

Behaviour: ILLEGAL_SASL_STATE. Logins themselves never come here: the connection leads them (`reception/login.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import ILLEGAL_SASL_STATE
from penstock.protocol.messages.sasl_authenticate import SaslAuthenticateResponse

if TYPE_CHECKING:
    from penstock.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
    from penstock.server.doors import Context


def handle(_ctx: Context, _request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    told = "SaslAuthenticate request received after successful authentication"
    return SaslAuthenticateResponse(error_code=ILLEGAL_SASL_STATE.code, error_message=told)
