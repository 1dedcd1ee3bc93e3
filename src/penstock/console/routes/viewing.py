"""Looks at records are written down before anything is shown: who, of which topic, from where, by which condition."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from penstock.console.answers import body_of
from penstock.console.failures import declined
from penstock.console.routes.desk import desk_of
from penstock.model.errors import PenstockError

ACTION: Final = "view_records"
_TOLD: Final = (
    "kind", "topic", "partition", "partitions", "offset", "from", "to", "cursor", "limit", "where", "contains", "raw",
    "record", "query",
)  # fmt: skip


async def viewed(request: Request, endpoint: Callable[[Request], Awaitable[Response]]) -> Response:
    """What the endpoint answers. One that is not let see anything is written down too, with why."""
    desk, about = await desk_of(request), await _about(request)
    await desk.write(ACTION, "asked", **about)
    try:
        return await endpoint(request)
    except PenstockError as failure:
        await desk.write(ACTION, "failed", **about, why=declined(failure).code)
        raise


async def _about(request: Request) -> dict[str, Any]:
    given: dict[str, Any] = {**request.query_params, **request.path_params}
    if request.method == "POST":
        given |= await body_of(request)
    if "name" in given:
        given["topic"] = given.pop("name")
    # `from` is where a request came from to every line of the audit.
    return {("position" if name == "from" else name): given[name] for name in _TOLD if name in given}
