"""The event stream of a tab."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from penstock.console.answers import encode
from penstock.console.stream.hub import Hub
from penstock.model.version import VERSION


async def get_events(request: Request) -> Response:
    hub: Hub = request.app.state.hub
    tab = hub.open(request.query_params.get("tab", ""), "")
    hello = encode({"tab": tab.name, "version": VERSION})
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(hub.events(tab, hello), media_type="text/event-stream", headers=headers)
