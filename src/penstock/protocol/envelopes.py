"""Envelopes: a client's request on its way from a broker to the active controller, and the reply on its way back.

The broker has checked what it can; the controller decides with the client's own principal and host, not with the
broker's. So both travel beside the request, which stays as its client sent it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from penstock.model.errors import (
    INVALID_REQUEST,
    NONE,
    PRINCIPAL_DESERIALIZATION_FAILURE,
    UNKNOWN_SERVER_ERROR,
    Refused,
    error_of,
)
from penstock.model.security import Principal
from penstock.protocol.codec import decode, encode
from penstock.protocol.frame import decode_response, encode_request
from penstock.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from penstock.protocol.messages.principal import DefaultPrincipalData
from penstock.protocol.wire import Malformed, Message

_SIZE_BYTES: Final = 4
_CORRELATION_ID: Final = 0
_PRINCIPAL_VERSION: Final = b"\0\0"


class Client(NamedTuple):
    """Whom the broker had before it, and whether it was by a delegation token that it proved who it is."""

    principal: Principal
    by_token: bool = False


def sealed(
    request: Message,
    version: int,
    *,
    client_id: str | None,
    principal: Principal,
    host: str,
    by_token: bool = False,
) -> EnvelopeRequest:
    """The request as its client sent it, with who the client is."""
    told = DefaultPrincipalData(type=principal.kind, name=principal.name, token_authenticated=by_token)
    return EnvelopeRequest(
        request_data=encode_request(_CORRELATION_ID, client_id, request, version)[_SIZE_BYTES:],
        request_principal=_PRINCIPAL_VERSION + encode(told, 0),
        client_host_address=host_bytes(host),
    )


def opened(reply: EnvelopeResponse, key: int, version: int) -> Message:
    """The reply inside; Refused when the envelope itself came back with an error."""
    if reply.error_code != NONE.code:
        raise Refused(error_of(reply.error_code), "the controller sent the request back")
    try:
        message: Message = decode_response(reply.response_data or b"", key, version)[1]
    except Malformed as broken:
        raise Refused(UNKNOWN_SERVER_ERROR, f"the controller's reply cannot be read: {broken}") from broken
    return message


def client_of(data: bytes | None) -> Client:
    """Who the client is that an envelope speaks for."""
    try:
        if data is None or data[:2] != _PRINCIPAL_VERSION:
            raise Malformed("there is no principal of version 0")
        found, _ = decode(DefaultPrincipalData, 0, data, len(_PRINCIPAL_VERSION))
    except Malformed as broken:
        raise Refused(PRINCIPAL_DESERIALIZATION_FAILURE, str(broken)) from broken
    return Client(Principal(found.type, found.name), found.token_authenticated)


def host_of(data: bytes) -> str:
    """The client's address: four or sixteen bytes."""
    from ipaddress import ip_address  # only envelopes need it

    try:
        return str(ip_address(bytes(data)))
    except ValueError as broken:
        raise Refused(INVALID_REQUEST, f"{len(data)} bytes are no address of a host") from broken


def host_bytes(host: str) -> bytes:
    """The address as an envelope holds it. A host that is not known any more is nobody's address."""
    from ipaddress import ip_address

    try:
        return ip_address(host.partition("%")[0]).packed
    except ValueError:
        return bytes(4)
