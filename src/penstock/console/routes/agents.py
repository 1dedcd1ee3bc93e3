"""Agents: what they collect, and how far they are."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from penstock.client.errors import ClientError
from penstock.console.answers import answer
from penstock.console.routes.desk import desk_of
from penstock.console.views.agents import agent_rows


async def get_agents(request: Request) -> Response:
    desk = await desk_of(request)
    seeing, lakeside = desk.cluster_seeing(), desk.shared.lakeside
    asked = await lakeside.agents.look()
    unread = None
    try:
        known = await lakeside.positions(desk.sampler.address.name).look()
    except (ClientError, TimeoutError, OSError) as failure:
        known, unread = [], str(failure) or "the positions of agents could not be read in time"
    rows = agent_rows(asked, known)
    told = {"total": len(rows), "matching": len(rows), "items": rows, "unread": unread}
    return answer(seeing.stamped({**told, "command": "penstock agent status"}))
