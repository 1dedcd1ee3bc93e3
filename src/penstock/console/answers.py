"""JSON out and in. Text that is no text, such as half of a surrogate pair, never reaches a browser as anything else."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from penstock.console.failures import Declined, bad_request

BODY_MAX: Final = 1 << 20
_ENCODER: Final = msgspec.json.Encoder()


def answer(data: object, status: int = 200) -> Response:
    return Response(encode(data), status, media_type="application/json", headers={"cache-control": "no-store"})


def encode(data: object) -> bytes:
    return _ENCODER.encode(data)


def refusal(why: Declined) -> Response:
    response = answer({"error": why.told()}, why.status)
    if "retry_after_s" in why.params:
        response.headers["retry-after"] = str(why.params["retry_after_s"])
    return response


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object that came with a request."""
    try:
        data = msgspec.json.decode(await request.body())
    except msgspec.DecodeError as wrong:
        raise bad_request(f"the body is no JSON: {wrong}") from None
    if not isinstance(data, dict):
        raise bad_request("the body is no JSON object")
    return data
