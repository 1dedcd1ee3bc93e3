"""Groups: the list and one of them; transactions."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from penstock.console.answers import answer
from penstock.console.listings import Wanted
from penstock.console.routes.desk import desk_of, step_of
from penstock.console.views.groups import GROUP_SORTS, group_list, group_page


async def get_groups(request: Request) -> Response:
    wanted = Wanted.of(request.query_params, GROUP_SORTS)
    return answer(group_list(desk_of(request).seeing(), wanted, request.query_params.get("state", "")))


async def get_group(request: Request) -> Response:
    desk, name = desk_of(request), request.path_params["name"]
    group = await desk.acting.admin.describe_group(name)
    lags = await desk.acting.admin.group_lag(name)
    return answer(group_page(desk.seeing(), group, lags, step_of(request)))


async def get_transactions(request: Request) -> Response:
    desk = desk_of(request)
    states = [state for state in request.query_params.get("state", "").split(",") if state]
    found = await desk.acting.admin.list_transactions(states=states)
    items = [
        {"id": each.id, "producer_id": str(each.producer_id), "state": each.state, "coordinator": each.coordinator}
        for each in found
    ]
    return answer({"total": len(items), "items": items[:1_000], "command": "penstock txn list"})


async def get_transaction(request: Request) -> Response:
    desk, name = desk_of(request), request.path_params["id"]
    found = await desk.acting.admin.describe_transaction(name)
    return answer(
        {
            "id": found.id,
            "producer_id": str(found.producer_id),
            "epoch": found.epoch,
            "state": found.state,
            "timeout_ms": found.timeout_ms,
            "started_ms": found.started_ms,
            "partitions": [f"{item.topic}-{item.partition}" for item in found.partitions],
            "coordinator": found.coordinator,
            "command": f"penstock txn describe {found.id}",
        }
    )
