"""Tables of the warehouses: the list, one of them, its audit, and questions to them in SQL."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from penstock.console.answers import answer, body_of
from penstock.console.commands import command
from penstock.console.failures import Declined
from penstock.console.listings import Wanted, cut
from penstock.console.people.vision import ANYBODY
from penstock.console.pipelines.sights import visible
from penstock.console.routes.changing_topics import text_in
from penstock.console.routes.declaring import declared
from penstock.console.routes.desk import Desk, desk_of
from penstock.console.routes.shapes import Preview, Question
from penstock.console.tables.sql.asking import AT_ONCE, OF_ONE_AT_ONCE
from penstock.console.tables.sql.order import SqlAnswer, SqlOrder, table_order
from penstock.model.errors import PenstockError

if TYPE_CHECKING:
    from penstock.console.tables.seen import SeenTable
    from penstock.console.views.seeing import Seeing

NO_WAREHOUSE = "penstock console --warehouse lake"


async def get_tables(request: Request) -> Response:
    desk = await desk_of(request)
    if not desk.shared.settings.warehouses:
        none: dict[str, Any] = {"total": 0, "matching": 0, "items": [], "warehouses": []}
        return answer({**desk.seeing().stamped(none), "command": NO_WAREHOUSE})
    from penstock.console.views.tables import TABLE_SORTS, table_row

    wanted, seeing = Wanted.of(request.query_params, TABLE_SORTS), desk.seeing()
    look, tables = await desk.shared.lakeside.tables(desk)
    total, rows = cut(list(tables.values()), wanted, lambda table: table.name, TABLE_SORTS)
    directories = [each.directory for each in desk.shared.settings.warehouses]
    told = {
        "total": len(tables),
        "matching": total,
        "items": [table_row(seeing, table) for table in rows],
        # Where tables lie, and why they cannot be looked at, concerns those who may see the cluster.
        "warehouses": directories if desk.vision.cluster else [],
        "unreadable": look.failed if desk.vision.cluster else {},
        "command": command("lake", "tables", options=["--warehouse", directories[0]]),
    }
    return answer({**seeing.stamped(told), "as_of_ms": look.at_ms})


async def tables_of(desk: Desk, seeing: Seeing) -> list[dict[str, Any]]:
    """For the overview, which shows the rest whatever becomes of these."""
    if not desk.shared.settings.warehouses:
        return []
    from penstock.console.views.tables import freshest_and_stalest

    try:
        _, tables = await desk.shared.lakeside.tables(desk)
    except PenstockError:
        return []
    return freshest_and_stalest(seeing, tables.values())


async def get_table(request: Request) -> Response:
    from penstock.console.views.tables import table_page

    desk = await desk_of(request)
    table = await _table(desk, request.path_params["name"])
    seeing = desk.seeing()
    return answer(seeing.stamped(table_page(seeing, table, await _pipelines_of(desk, table))))


async def _pipelines_of(desk: Desk, table: SeenTable) -> list[str]:
    """Those of this person's pipelines that have committed into it."""
    try:
        heard = await desk.shared.lakeside.heard(desk.sampler.address.name).look()
    except (PenstockError, OSError, TimeoutError):
        return []
    seen = visible(desk.vision, heard.pipelines.values())
    return [each.name for each in seen if any(query.query_id in table.queries for query in each.queries)]


@declared(previews=True, body=Preview)
async def audit_table(request: Request) -> Response:
    """Held against the table's own records. Nothing is written, and topics are not asked, which the command does."""
    from penstock.console.tables.proving import prove

    desk, body = await desk_of(request), await body_of(request)
    table, audits = await _table(desk, request.path_params["name"]), desk.shared.lakeside.audits
    same = command("lake", "audit", names=[table.own_name], options=["--warehouse", table.warehouse])
    if body.get("dry_run"):
        return answer({"plan": {"table": table.own_name}, "command": same})
    if audits.locked():
        raise Declined(429, "too_many", "another table is being audited", "try again in a moment", retry_after_s=2)
    async with audits:
        found = await asyncio.to_thread(prove, table.found)
    return answer({"done": found, "command": same})


@declared(body=Question)
async def ask_sql(request: Request) -> Response:
    desk, body = await desk_of(request), await body_of(request)
    if not desk.shared.lakeside.has_sql:
        raise Declined(404, "not_found", "this console has no tables to ask", f"start it as `{NO_WAREHOUSE}`")
    sql = text_in(body, "query")
    _, tables = await desk.shared.lakeside.tables(desk)
    order = SqlOrder(sql, [table_order(table.found, table.warehouse) for table in tables.values() if not table.problem])
    # Where nobody logs in everybody is one person, who may ask as often as all of them together.
    of_one = AT_ONCE if desk.person == ANYBODY else OF_ONE_AT_ONCE
    began = time.monotonic()
    told: SqlAnswer = await _unless_gone(request, desk.shared.lakeside.sql.ask(desk.person, order, of_one=of_one))
    directory = desk.shared.settings.warehouses[0].directory
    return answer(
        {
            "columns": told.columns,
            "rows": told.rows,
            "cut": told.cut,
            "elapsed_ms": round((time.monotonic() - began) * 1_000),
            "command": command("lake", "query", names=[sql], options=["--warehouse", directory]),
        }
    )


async def _unless_gone(request: Request, work: Any) -> Any:
    """What work gives, unless whoever asked goes away before: then it is ended."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Declined(499, "cancelled", "whoever asked has gone")
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        # The process has ended before anybody is told that it has.
        with contextlib.suppress(asyncio.CancelledError, Declined):
            await working


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _table(desk: Desk, name: str) -> SeenTable:
    """One that this person may not read does not exist to them."""
    _, tables = await desk.shared.lakeside.tables(desk)
    if name not in tables:
        raise Declined(404, "unknown_table", f"there is no table {name!r}", "look at `penstock lake tables`")
    return tables[name]
