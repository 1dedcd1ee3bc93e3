"""JSON out and in. Text that is no text, such as half of a surrogate pair, never reaches a browser as anything else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from penstock.console.failures import Declined, bad_request

BODY_MAX: Final = 1 << 20
_ENCODER: Final = msgspec.json.Encoder()


def answer(data: object, status: int = 200) -> Response:
    return Response(encode(data), status, media_type="application/json", headers={"cache-control": "no-store"})


async def answer_made(make: Callable[[], object]) -> Response:
    """What takes long to put together is made in a thread: of ten thousand topics, for one."""
    body = await asyncio.to_thread(lambda: encode(make()))
    return Response(body, media_type="application/json", headers={"cache-control": "no-store"})


def encode(data: object) -> bytes:
    return _ENCODER.encode(data)


def refusal(why: Declined) -> Response:
    response = answer({"error": why.told()}, why.status)
    if "retry_after_s" in why.params:
        response.headers["retry-after"] = str(why.params["retry_after_s"])
    return response


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object that came with a request; an empty body is an empty one."""
    try:
        data = msgspec.json.decode(await request.body() or b"{}")
    except msgspec.DecodeError as wrong:
        raise bad_request(f"the body is no JSON: {wrong}") from None
    if not isinstance(data, dict):
        raise bad_request("the body is no JSON object")
    return data
