"""Guards, routes and pages as one application."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.console.answers import refusal
from penstock.console.failures import Declined, declined
from penstock.console.guards import OutsideGuard
from penstock.console.routes.desk import Desks
from penstock.console.routes.table import api_routes
from penstock.console.settings import ConsoleSettings
from penstock.console.shell import FrontEnd
from penstock.console.stream.hub import Hub
from penstock.model.errors import PenstockError


def application(settings: ConsoleSettings, desks: Desks, hub: Hub) -> ASGIApp:
    front = FrontEnd(settings.base_path)

    async def tell(_: Request, failure: Exception) -> Response:
        why = declined(failure)
        if desks.door.open and why.status == 401:
            # Nobody logs in here: a page that asked for a login would have no way to give one.
            why = Declined(503, "own_login", f"the cluster does not take the console's own login: {why.message}")
        return refusal(why)

    app = Starlette(
        routes=[
            Mount("/api/v1", routes=api_routes()),
            Mount("/api", routes=[]),
            Route("/assets/{name:path}", front.asset),
            Route("/{page:path}", front.page),
        ],
        exception_handlers={Declined: tell, PenstockError: tell, HTTPException: _no_such_route, Exception: _broken},
    )
    app.state.desks, app.state.hub, app.state.styles = desks, hub, front.styles
    guarded: ASGIApp = OutsideGuard(app, hosts=settings.known_hosts)
    return _Below(settings.base_path, guarded) if settings.base_path else guarded


async def _no_such_route(request: Request, failure: Exception) -> Response:
    status = failure.status_code if isinstance(failure, HTTPException) else 404
    if status == 405:
        return refusal(Declined(405, "bad_request", f"{request.method} is not served at {request.url.path}"))
    return refusal(Declined(404, "not_found", f"nothing is served at {request.url.path}", "see api/v1/openapi.json"))


async def _broken(_: Request, __: Exception) -> Response:
    """The server logs what it was."""
    return refusal(Declined(500, "failed", "the console failed at this; its log says why"))


class _Below:
    """Serves everything below a path, for proxies that leave it on, and without it, for those that take it off."""

    def __init__(self, base_path: str, app: ASGIApp) -> None:
        self._base_path, self._app = base_path, app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if path == self._base_path or path.startswith(f"{self._base_path}/"):
            shortened = path.removeprefix(self._base_path) or "/"
            scope = {**scope, "path": shortened, "raw_path": shortened.encode()}
        await self._app(scope, receive, send)
