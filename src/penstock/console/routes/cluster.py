"""Overview, map, brokers and the log of what happened."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from penstock.client.admin import ConfigResource
from penstock.console.answers import answer, answer_made
from penstock.console.failures import bad_request
from penstock.console.listings import whole_number
from penstock.console.routes.declaring import declared
from penstock.console.routes.desk import desk_of, unknown_broker
from penstock.console.routes.shapes import Logged, Mapped
from penstock.console.routes.tables import tables_of
from penstock.console.views.brokers import broker_list, broker_rows, cluster_map
from penstock.console.views.configs import config_list
from penstock.console.views.overview import event_item, overview

LOG_MAX = 1_000


async def get_overview(request: Request) -> Response:
    desk = await desk_of(request)
    seeing, happened = desk.seeing(), desk.sampler.log()
    tables = await tables_of(desk, seeing)
    return await answer_made(lambda: {**overview(seeing, happened, desk.sampler.keeper), "tables": tables})


@declared(query=Mapped)
async def get_map(request: Request) -> Response:
    seeing, topic = (await desk_of(request)).cluster_seeing(), request.query_params.get("topic")
    return await answer_made(lambda: cluster_map(seeing, topic))


async def get_brokers(request: Request) -> Response:
    seeing = (await desk_of(request)).cluster_seeing()
    return await answer_made(lambda: broker_list(seeing))


async def get_broker(request: Request) -> Response:
    desk, node = await desk_of(request), _broker_id(request)
    seeing = desk.cluster_seeing()
    row = next((row for row in broker_rows(seeing) if row["id"] == node), None)
    if row is None:
        raise unknown_broker(node)
    features = await desk.acting.admin.features(node) if row["alive"] else []
    told = [
        {"name": each.name, "lowest": each.lowest, "highest": each.highest, "finalized": each.finalized}
        for each in features
    ]
    history = seeing.drawn("broker", str(node), 10, records_in="in")
    command = f"penstock cluster config list --broker {node}"
    return answer(seeing.stamped({**row, "features": told, "history": history, "command": command}))


async def get_broker_config(request: Request) -> Response:
    desk, node = await desk_of(request), _broker_id(request)
    desk.check_broker(node)
    resource = ConfigResource.broker(node)
    found = await desk.acting.admin.describe_configs([resource], documentation=True)
    return answer(
        {
            "entries": config_list(found.checked()[resource], "broker"),
            "command": f"penstock cluster config list --broker {node}",
        }
    )


@declared(query=Logged)
async def get_log(request: Request) -> Response:
    desk = await desk_of(request)
    query = request.query_params
    limit = min(whole_number(query, "limit", 200, 1 << 31), LOG_MAX)
    before = whole_number(query, "before", 1 << 53, 1 << 53)
    seen = [entry for entry in desk.sampler.log() if entry.id < before and desk.vision.occurrence(entry.what)]
    return answer({"items": [event_item(entry) for entry in seen[:limit]]})


def _broker_id(request: Request) -> int:
    text = str(request.path_params["id"])
    if not (text.isascii() and text.isdigit() and len(text) < 11):
        raise bad_request(f"{text!r} is no broker's id")
    return int(text)
