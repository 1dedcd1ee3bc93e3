"""Who is here, what this console is, logging in and out."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from penstock.console.answers import answer, body_of
from penstock.console.failures import Declined, declined
from penstock.console.people.door import ends_ms
from penstock.console.people.sessions import LoggedIn
from penstock.console.routes.changing_topics import text_in
from penstock.console.routes.declaring import declared
from penstock.console.routes.desk import Desks
from penstock.console.routes.shapes import Login
from penstock.console.shell import prefix_of
from penstock.model.errors import PenstockError
from penstock.model.version import VERSION

UNDER_WAY_S = 600


async def get_session(request: Request) -> Response:
    """Never refused: a page asks it to know whether it has to log in."""
    return answer(await _told(request, await _who(request)))


@declared(body=Login)
async def login(request: Request) -> Response:
    desks: Desks = request.app.state.desks
    body = await body_of(request)
    name = await desks.door.by_password(request, text_in(body, "user"), text_in(body, "password"))
    response = answer(await _told(request, desks.door.sessions.find(name)))
    desks.door.give_cookie(request, response, name)
    return response


async def logout(request: Request) -> Response:
    desks: Desks = request.app.state.desks
    await desks.door.out(request)
    response = answer({})
    desks.door.give_cookie(request, response, None)
    return response


async def begin_oidc(request: Request) -> Response:
    """Sends the browser to the identity provider."""
    desks: Desks = request.app.state.desks
    if desks.door.oidc is None:
        raise Declined(404, "not_found", "this console has no single sign-on")
    then = request.query_params.get("next", "")
    # Only a path of our own: a login must not end at another site.
    safe = then if then.startswith("/") and not then.startswith("//") and "\\" not in then else "/"
    url, binding = await desks.door.oidc.begin(_callback(request), safe)
    response = RedirectResponse(url, 302)
    response.set_cookie(
        f"{desks.door.cookie_name(request)}-login",
        binding,
        UNDER_WAY_S,
        path="/",
        secure=desks.door.is_https(request),
        httponly=True,
    )
    return response


async def finish_oidc(request: Request) -> Response:
    """The browser is back. What went wrong is told on the page where one logs in."""
    desks: Desks = request.app.state.desks
    base = prefix_of(request.scope, desks.settings.base_path)
    query, binding_name = request.query_params, f"{desks.door.cookie_name(request)}-login"
    try:
        if desks.door.oidc is None:
            raise Declined(404, "not_found", "this console has no single sign-on")
        if "error" in query:
            raise Declined(401, "wrong_login", f"the identity provider refused: {query['error'][:100]}")
        token, then = await desks.door.oidc.finish(
            query.get("state", ""), query.get("code", ""), request.cookies.get(binding_name)
        )
        name = await desks.door.by_bearer(request, token)
    except PenstockError as failure:
        why = declined(failure)
        return RedirectResponse(f"{base}/login?{urlencode({'error': why.code})}", 302)
    response = RedirectResponse(f"{base}{then}", 302)
    response.delete_cookie(binding_name, path="/")
    desks.door.give_cookie(request, response, name)
    return response


def _callback(request: Request) -> str:
    desks: Desks = request.app.state.desks
    scheme = "https" if desks.door.is_https(request) else "http"
    base = prefix_of(request.scope, desks.settings.base_path)
    return f"{scheme}://{request.headers['host']}{base}/api/v1/login/oidc/back"


async def _who(request: Request) -> LoggedIn | None:
    desks: Desks = request.app.state.desks
    if desks.door.open:
        return None
    try:
        return await desks.door.who(request)
    except Declined:
        return None


async def _told(request: Request, session: LoggedIn | None) -> dict[str, Any]:
    desks: Desks = request.app.state.desks
    settings, inside = desks.settings, desks.door.open or session is not None
    # Who has not logged in is told the names that one logs in to, and no more.
    clusters = [
        {
            "name": address.name,
            "bootstrap": address.bootstrap if inside else None,
            "id": sampler.picture.cluster.cluster_id if sampler.picture and inside else None,
            "state": "away" if sampler.outage else "ok" if sampler.picture else "starting",
        }
        for address in settings.clusters
        for sampler in [desks.samplers[address.name]]
        if session is None or address.name in session.acting
    ]
    person = None
    if session is not None:
        name = session.principal.partition(":")[2]
        person = {"principal": session.principal, "name": name, "ends_ms": ends_ms(session)}
    return {
        "login": settings.login,
        "person": person,
        "needs_login": not inside,
        "version": VERSION,
        "base_path": prefix_of(request.scope, settings.base_path),
        "read_only": settings.read_only,
        "clusters": clusters,
        "features": {"sql": desks.lakeside.has_sql} if inside else {},
        "oidc": {"name": settings.oidc.name} if settings.oidc else None,
    }
