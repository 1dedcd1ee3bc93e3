"""Pipelines: the list, one of them, stopping and starting."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from penstock.console.answers import answer, body_of
from penstock.console.failures import Declined
from penstock.console.listings import Wanted, cut
from penstock.console.pipelines import here
from penstock.console.pipelines.altering import check_may_alter
from penstock.console.pipelines.heard import HeardNow
from penstock.console.pipelines.sights import groups_of, may_see, visible
from penstock.console.routes.changing_topics import text_in
from penstock.console.routes.declaring import declared
from penstock.console.routes.desk import Desk, desk_of, now_ms
from penstock.console.routes.shapes import Preview, Redriven
from penstock.console.views.pipelines import PIPELINE_SORTS, Around, commands_of, pipeline_page, pipeline_row
from penstock.model.errors import PenstockError
from penstock.spark.progress.records import RUNNING, SILENT, STOP, control_key
from penstock.spark.progress.status import PipelineStatus
from penstock.spark.progress.topic import Entry

REASONS_SHOWN = 10


async def get_pipelines(request: Request) -> Response:
    desk, wanted = await desk_of(request), Wanted.of(request.query_params, PIPELINE_SORTS)
    seeing, heard = desk.seeing(), await _heard(desk)
    found = visible(desk.vision, heard.pipelines.values())
    total, rows = cut(found, wanted, lambda pipeline: pipeline.name, PIPELINE_SORTS)
    around = Around(tables=await _tables(desk))
    items = [pipeline_row(seeing, pipeline, around) for pipeline in rows]
    told = {"total": len(found), "matching": total, "items": items, "command": "penstock pipeline list"}
    return answer({**seeing.stamped(told), "as_of_ms": heard.at_ms, "stale": heard.failed or None})


async def get_pipeline(request: Request) -> Response:
    desk, name = await desk_of(request), request.path_params["name"]
    heard = await _heard(desk)
    pipeline = _found(desk, heard, name)
    sinks = await asyncio.to_thread(here.sinks_here, pipeline)
    around = Around(await _tables(desk), sinks)
    batches = [batch for (owner, _), told in heard.batches.items() if owner == name for batch in told]
    startable = not await asyncio.to_thread(here.why_not_start, pipeline)
    lettered = await asyncio.to_thread(here.sources_with_letters, pipeline)
    writable = not desk.shared.settings.read_only
    acts = _acts(pipeline, startable=startable) if writable else []
    seeing = desk.seeing()
    page = pipeline_page(seeing, pipeline, around, batches, commands_of(pipeline, lettered), acts)
    page["redrives"] = lettered if writable else []
    return answer({**seeing.stamped(page), "as_of_ms": heard.at_ms, "stale": heard.failed or None})


@declared(previews=True, body=Preview)
async def stop_pipeline(request: Request) -> Response:
    """Asks it, wherever it runs, to finish the batches under way and end. Its page shows when it has."""
    desk, body = await desk_of(request), await body_of(request)
    pipeline = await _alterable(desk, request.path_params["name"])
    same = commands_of(pipeline)["stop"]
    if pipeline.state not in (RUNNING, SILENT):
        raise Declined(409, "conflict", f"{pipeline.name} is not running: it is {pipeline.state}")
    if body.get("dry_run"):
        return answer({"plan": {"queries": len(pipeline.queries)}, "command": same})
    want = Entry(control_key(pipeline.name), {"want": STOP, "at_ms": now_ms()})
    async with desk.changing("stop_pipeline", f"pipeline {pipeline.name} was asked to stop", **_concerns(pipeline)):
        await desk.shared.lakeside.heard(desk.sampler.address.name).append(want)
    return answer({"done": {"asked": pipeline.name}, "command": same})


@declared(previews=True, body=Preview)
async def start_pipeline(request: Request) -> Response:
    """Runs its file again, where the console is on the machine that ran it last."""
    desk, body = await desk_of(request), await body_of(request)
    pipeline = await _alterable(desk, request.path_params["name"])
    same = commands_of(pipeline)["start"]
    why = await asyncio.to_thread(here.why_not_start, pipeline)
    if why:
        message = f"the console cannot start {pipeline.name}: {why}"
        raise Declined(409, "conflict", message, f"on {pipeline.host}: `{same}`")
    if body.get("dry_run"):
        return answer({"plan": {"file": pipeline.file}, "command": same})
    async with desk.changing("start_pipeline", f"pipeline {pipeline.name} was started", **_concerns(pipeline)):
        said = await here.start(pipeline)
    return answer({"done": {"said": said}, "command": same})


@declared(previews=True, body=Redriven)
async def redrive_pipeline(request: Request) -> Response:
    """Dead letters of a source back to their topic, where the console is on the machine that ran the pipeline last."""
    desk, body = await desk_of(request), await body_of(request)
    pipeline = await _alterable(desk, request.path_params["name"])
    source = text_in(body, "source")
    if source not in await asyncio.to_thread(here.sources_with_letters, pipeline):
        message = f"the console knows no source {source!r} of {pipeline.name} whose dead letters are kept"
        raise Declined(409, "conflict", message, f"on {pipeline.host}: `penstock pipeline redrive FILE --source NAME`")
    same = commands_of(pipeline, [source])[f"redrive {source}"]
    if body.get("dry_run"):
        return answer({"plan": _letters(await here.redrive(pipeline, source, dry_run=True)), "command": same})
    text = f"dead letters of source {source} of pipeline {pipeline.name} were sent again"
    async with desk.changing("redrive", text, **_concerns(pipeline), source=source):
        told = await here.redrive(pipeline, source, dry_run=False)
    return answer({"done": _letters(told), "command": same})


def _letters(told: dict[str, Any]) -> dict[str, Any]:
    return {
        "place": told["place"],
        "letters": str(told["letters"]),
        "by_target": {topic: str(number) for topic, number in told["by_target"].items()},
        "errors": {words: str(number) for words, number in list(told["errors"].items())[:REASONS_SHOWN]},
        "done": told["done"],
    }


def _acts(pipeline: PipelineStatus, *, startable: bool) -> list[str]:
    """What the console can do about it; who may is asked when it is done."""
    stop = ["stop"] if pipeline.state in (RUNNING, SILENT) else []
    return [*stop, *(["start"] if startable and pipeline.state != RUNNING else [])]


def _concerns(pipeline: PipelineStatus) -> dict[str, Any]:
    """What an event about it says of itself: whoever may not see the group is not told."""
    groups = groups_of(pipeline)
    return {"pipeline": pipeline.name, **({"group": groups[0]} if groups else {})}


async def _heard(desk: Desk) -> HeardNow:
    return await desk.shared.lakeside.heard(desk.sampler.address.name).look()


async def _alterable(desk: Desk, name: str) -> PipelineStatus:
    pipeline = _found(desk, await _heard(desk), name)
    await check_may_alter(desk, name, groups_of(pipeline))
    return pipeline


def _found(desk: Desk, heard: HeardNow, name: str) -> PipelineStatus:
    """One that this person may not see does not exist to them."""
    pipeline = heard.pipelines.get(name)
    if pipeline is None or not may_see(desk.vision, pipeline):
        raise Declined(404, "unknown_pipeline", f"no pipeline {name!r} is known", "look at `penstock pipeline list`")
    return pipeline


async def _tables(desk: Desk) -> list[Any]:
    """Those that this person may read; a pipeline is shown whatever becomes of them."""
    if not desk.shared.settings.warehouses:
        return []
    try:
        _, tables = await desk.shared.lakeside.tables(desk)
    except PenstockError:
        return []
    return list(tables.values())
