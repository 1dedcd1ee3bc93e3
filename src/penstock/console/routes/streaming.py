"""The event stream of a tab, and what it waits for: tails and searches."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from penstock.console.answers import answer, body_of, encode
from penstock.console.digits import INT32_MAX, whole
from penstock.console.failures import Declined, bad_request, declined
from penstock.console.messages.cursors import cursor_positions
from penstock.console.messages.places import ends_of, positions_of
from penstock.console.messages.searching import SearchBounds, SearchOrder
from penstock.console.messages.tailing import TailOrder, tail
from penstock.console.routes.changing_topics import text_in
from penstock.console.routes.declaring import declared
from penstock.console.routes.desk import Desk, Desks, desk_of, now_ms
from penstock.console.routes.records import isolation_of, record_at
from penstock.console.routes.shapes import Condition, Subscription, Tab
from penstock.console.stream.hub import Hub
from penstock.console.stream.response import TabStream
from penstock.console.stream.subscriptions import Begin
from penstock.model.version import VERSION
from penstock.operations.records.matching import BadCondition, Matcher, compiled, fields_of

LARGEST = SearchBounds(hits=500, seconds=120.0, bytes=4_000_000_000, records=50_000_000)


@declared(query=Tab, answers="text/event-stream")
async def get_events(request: Request) -> Response:
    hub: Hub = request.app.state.hub
    desks: Desks = request.app.state.desks
    # A stream is of all clusters that its owner is in: it tells of those that can be asked, and needs none of them.
    tab = hub.open(request.query_params.get("tab", ""), *await desks.owner_of(request))
    return TabStream(hub, tab, encode({"tab": tab.name, "version": VERSION}))


@declared(body=Subscription)
async def subscribe(request: Request) -> Response:
    hub: Hub = request.app.state.hub
    desk, body = await desk_of(request), await body_of(request)
    tab = hub.tab(request.path_params["tab"], desk.key)
    kind, topic = body.get("kind"), text_in(body, "topic")
    matcher = Matcher(_text(body, "where"), _text(body, "contains"))
    if kind == "tail":
        begin = await _tail(desk, topic, body, matcher)
    elif kind == "search":
        begin = await _search(desk, topic, body)
    else:
        raise bad_request(f"kind: {kind!r} is neither tail nor search")
    # Where nobody logs in everybody is the same person: then each tab may search once.
    person = desk.person if desk.known else f"tab {tab.name}"
    return answer({"id": hub.subscriptions.begin(tab, str(kind), person, begin)})


async def unsubscribe(request: Request) -> Response:
    hub: Hub = request.app.state.hub
    desks: Desks = request.app.state.desks
    tab = hub.tab(request.path_params["tab"], (await desks.owner_of(request))[0])
    if not hub.subscriptions.end(tab, request.path_params["id"]):
        raise Declined(404, "not_found", "this tab waits for no such thing")
    return answer({})


@declared(body=Condition)
async def check_condition(request: Request) -> Response:
    """Whether a text is a condition, and whether it holds for one record."""
    desk, body = await desk_of(request), await body_of(request)
    where = text_in(body, "where")
    try:
        test = compiled(where)
    except BadCondition as wrong:
        return answer({"ok": False, "error": declined(wrong).told()})
    given = body.get("record")
    if given is None:
        return answer({"ok": True})
    if not isinstance(given, dict):
        raise bad_request("record: an object with topic, partition and offset was expected")
    topic, partition, offset = given.get("topic"), whole(given.get("partition"), INT32_MAX), whole(given.get("offset"))
    if not isinstance(topic, str) or partition is None or offset is None:
        raise bad_request("record: an object with topic, partition and offset was expected")
    record = await record_at(desk, topic, partition, offset)
    return answer({"ok": True, "matches": test(fields_of(record))})


async def _tail(desk: Desk, topic: str, body: Mapping[str, Any], matcher: Matcher) -> Begin:
    ends = await ends_of(desk.acting.admin, topic, _partitions(body), committed=False)
    order = TailOrder(topic, tuple(sorted(ends.ends)), matcher, isolation_of(_text(body, "isolation")))
    return lambda tell: desk.shared.reading.begin(tail(desk.acting.consumer_keywords, order, tell))


async def _search(desk: Desk, topic: str, body: Mapping[str, Any]) -> Begin:
    isolation = isolation_of(_text(body, "isolation"))
    ends = await ends_of(desk.acting.admin, topic, _partitions(body), committed=isolation == "read_committed")
    admin, cursor = desk.acting.admin, _text(body, "cursor")
    if cursor is None:
        froms = await positions_of(admin, topic, _text(body, "from") or "oldest", ends, now_ms())
    else:
        told = cursor_positions(cursor)
        froms = {each: min(max(told.get(each, end), ends.starts[each]), end) for each, end in ends.ends.items()}
    until = _text(body, "to") or "end"
    tos = ends.ends if until == "end" else await positions_of(admin, topic, until, ends, now_ms())
    where, contains, bounds = _text(body, "where"), _text(body, "contains"), _bounds(body.get("limits"))
    order = SearchOrder(topic, froms, dict(tos), where, contains, bounds, isolation)
    keywords, searchers = desk.acting.consumer_keywords, desk.shared.searchers
    return lambda tell: asyncio.ensure_future(searchers.search(keywords, order, tell))


def _bounds(given: Any) -> SearchBounds:
    if given is None:
        return SearchBounds()
    if not isinstance(given, dict):
        raise bad_request("limits: an object was expected")
    found = {name: _bound(name, given.get(name)) for name in ("hits", "seconds", "bytes", "records")}
    return SearchBounds(int(found["hits"]), found["seconds"], int(found["bytes"]), int(found["records"]))


def _bound(name: str, value: Any) -> float:
    """A bound that is none, such as NaN, would let a search go on for ever."""
    if value is None:
        return float(getattr(SearchBounds(), name))
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise bad_request(f"limits: {name} is no number")
    return float(min(max(value, 1), getattr(LARGEST, name)))


def _partitions(body: Mapping[str, Any]) -> list[int] | None:
    given = body.get("partitions")
    if given is None:
        return None
    found = {whole(each, INT32_MAX) for each in given} if isinstance(given, list) else set()
    if not found or None in found:
        raise bad_request("partitions: a list of numbers was expected")
    return sorted(each for each in found if each is not None)


def _text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise bad_request(f"{name}: a text was expected")
    return value
