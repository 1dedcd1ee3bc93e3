"""Who is here, and what this console is."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from penstock.console.answers import answer
from penstock.console.routes.desk import Desks
from penstock.console.shell import prefix_of
from penstock.model.version import VERSION


async def get_session(request: Request) -> Response:
    desks: Desks = request.app.state.desks
    clusters = [
        {
            "name": address.name,
            "bootstrap": address.bootstrap,
            "id": sampler.picture.cluster.cluster_id if sampler.picture else None,
            "state": "away" if sampler.outage else "ok" if sampler.picture else "starting",
        }
        for address in desks.settings.clusters
        for sampler in [desks.samplers[address.name]]
    ]
    return answer(
        {
            "login": "none",
            "person": None,
            "needs_login": False,
            "version": VERSION,
            "base_path": prefix_of(request.scope, desks.settings.base_path),
            "read_only": desks.settings.read_only,
            "clusters": clusters,
            "features": {},
            "oidc": None,
        }
    )
