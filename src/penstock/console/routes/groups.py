"""Groups: the list and one of them; transactions."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from penstock.console.answers import answer, answer_made
from penstock.console.commands import command
from penstock.console.listings import Wanted, whole_number
from penstock.console.routes.declaring import declared
from penstock.console.routes.desk import desk_of, now_ms, step_of
from penstock.console.routes.shapes import Explained, GroupsListed, Stepped, Transactions
from penstock.console.views.groups import GROUP_SORTS, group_list, group_page
from penstock.operations.explaining import looking
from penstock.operations.explaining.explain import explain, summary

LOOKED_S: Final = 3
_LEVELS: Final = {"problem": "bad", "notice": "info"}


@declared(query=GroupsListed)
async def get_groups(request: Request) -> Response:
    wanted = Wanted.of(request.query_params, GROUP_SORTS)
    seeing, state = (await desk_of(request)).seeing(), request.query_params.get("state", "")
    return await answer_made(lambda: group_list(seeing, wanted, state))


@declared(query=Stepped)
async def get_group(request: Request) -> Response:
    desk, name = await desk_of(request), request.path_params["name"]
    group = await desk.acting.admin.describe_group(name)
    lags = await desk.acting.admin.group_lag(name)
    undo = [moved.told() for moved in desk.shared.moved.of(desk.sampler.address.name, name, now_ms())]
    return answer(group_page(desk.seeing(), group, lags, step_of(request), undo))


@declared(query=Explained)
async def explain_group(request: Request) -> Response:
    """Looks at a group for some seconds, as the person who asks, and says why it is behind."""
    desk, name = await desk_of(request), request.path_params["name"]
    seconds = whole_number(request.query_params, "seconds", LOOKED_S, 30)
    facts = await looking.look(desk.acting.admin, name, float(seconds))
    findings = [
        {
            "kind": each.kind,
            "level": _LEVELS[each.level],
            "what": each.what,
            "evidence": [each.why] if each.why else [],
            "attempt": each.attempt,
        }
        for each in explain(facts)
    ]
    same = command("group", "explain", names=[name], options=["--over", str(seconds)])
    return answer({"group": name, "sentence": summary(facts), "findings": findings, "command": same})


@declared(query=Transactions)
async def get_transactions(request: Request) -> Response:
    desk = await desk_of(request)
    states = [state for state in request.query_params.get("state", "").split(",") if state]
    found = await desk.acting.admin.list_transactions(states=states)
    items = [
        {"id": each.id, "producer_id": str(each.producer_id), "state": each.state, "coordinator": each.coordinator}
        for each in found
    ]
    return answer({"total": len(items), "items": items[:1_000], "command": "penstock txn list"})


async def get_transaction(request: Request) -> Response:
    desk, name = await desk_of(request), request.path_params["id"]
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
            "command": command("txn", "describe", names=[found.id]),
        }
    )
