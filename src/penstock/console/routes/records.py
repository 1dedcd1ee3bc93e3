"""Records: pages of them, and one of them whole."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from penstock.client.consumer import ConsumerRecord
from penstock.console.answers import answer, answer_made, body_of
from penstock.console.commands import command
from penstock.console.digits import INT32_MAX, INT64_MAX, whole
from penstock.console.failures import Declined, bad_request
from penstock.console.listings import whole_number
from penstock.console.messages.cursors import cursor_positions, cursor_text
from penstock.console.messages.pages import PageOfRecords, page_backwards, page_forwards, something_comes
from penstock.console.messages.places import LogEnds, ends_of, ends_of_one, positions_of
from penstock.console.messages.showing import SHOWN_BYTES, shown
from penstock.console.routes.declaring import declared
from penstock.console.routes.desk import Desk, desk_of, now_ms
from penstock.console.routes.shapes import Page, Raw

LIMIT_MAX: Final = 500
PAGE_BYTES: Final = 8 << 20
"""Room that the records of a page share when they are told; each has some, and is cut to it."""
WHOLE_BYTES: Final = 8 << 20
WAIT_S_MAX: Final = 30
ISOLATIONS: Final = ("read_uncommitted", "read_committed")


@declared(query=Page)
async def get_records(request: Request) -> Response:
    """A page of records, and the cursor of the next one. Nothing is kept here: a cursor is good at any console."""
    return await _page(request, dict(request.query_params))


@declared(body=Page)
async def read_records(request: Request) -> Response:
    """The same with its parameters in the body, for cursors that are longer than an address may be."""
    given = {name: value for name, value in (await body_of(request)).items() if value is not None}
    if not all(isinstance(value, str | int) and not isinstance(value, bool) for value in given.values()):
        raise bad_request("texts and numbers were expected")
    return await _page(request, {name: str(value) for name, value in given.items()})


async def _page(request: Request, query: Mapping[str, str]) -> Response:
    desk, topic = await desk_of(request), request.path_params["name"]
    isolation = isolation_of(query.get("isolation"))
    limit = max(min(whole_number(query, "limit", 50, INT32_MAX), LIMIT_MAX), 1)
    wait_s = min(whole_number(query, "wait", 0, INT32_MAX), WAIT_S_MAX)
    place, cursor = query.get("from") or "newest", query.get("cursor")
    committed, chosen = isolation == "read_committed", partitions_of(query.get("partition"))
    keywords = {**desk.acting.consumer_keywords, "isolation_level": isolation}
    ends = await ends_of(desk.acting.admin, topic, chosen, committed=committed)
    if cursor is None:
        positions = await positions_of(desk.acting.admin, topic, place, ends, now_ms())
        back = place == "newest"
    else:
        positions, back = _within(cursor_positions(cursor), ends), query.get("back") == "1"
    read = page_backwards if back else page_forwards
    page = await desk.reads(lambda: read(keywords, topic, positions, ends, limit))
    if wait_s and not page.records and not back and await _waited(request, desk, keywords, topic, page.next, wait_s):
        ends = await ends_of(desk.acting.admin, topic, chosen, committed=committed)
        positions = _within(page.next, ends)
        page = await desk.reads(lambda: page_forwards(keywords, topic, positions, ends, limit))
    return await answer_made(lambda: _told(topic, page, ends, place, limit, back=back))


async def _waited(
    request: Request, desk: Desk, keywords: Mapping[str, Any], topic: str, positions: Mapping[int, int], wait_s: int
) -> bool:
    """Whether something came within a time. Who does not wait for it any more is not waited for either."""
    async with desk.shared.waits.taken(desk.person):
        waiting = asyncio.ensure_future(desk.shared.reading.do(something_comes(keywords, topic, positions, wait_s)))
        try:
            while not waiting.done():
                await asyncio.wait([waiting], timeout=1.0)
                if await request.is_disconnected():
                    return False
            return waiting.result()
        finally:
            waiting.cancel()


def _within(positions: dict[int, int], ends: LogEnds) -> dict[int, int]:
    """Positions of a cursor in a log that may have been cut since; partitions that came since begin at their start."""
    return {
        partition: min(max(positions.get(partition, start), start), ends.ends[partition])
        for partition, start in ends.starts.items()
    }


def _told(topic: str, page: PageOfRecords, ends: LogEnds, place: str, limit: int, *, back: bool) -> dict[str, Any]:
    before = any(page.first[each] > ends.starts[each] for each in page.first)
    after = any(page.next[each] < ends.ends[each] for each in page.next)
    offset = {"newest": f"-{limit}", "oldest": "start"}.get(place, place.removeprefix("offset:"))
    offset = f"@{place.removeprefix('time:')}" if place.startswith("time:") else offset
    # A record has a key, a value and headers, and each may take as much.
    most = min(SHOWN_BYTES, PAGE_BYTES // (3 * max(len(page.records), 1)))
    return {
        "records": [shown(record, most) for record in page.records],
        "previous": cursor_text(page.first) if before else None,
        # Also where the log ends now: whoever waits for more asks with it again.
        "next": cursor_text(page.next),
        "more": after,
        "reached": page.reached if not back or before else "start",
        "ends": {
            str(each): {"start": str(ends.starts[each]), "end": str(ends.ends[each])} for each in sorted(ends.ends)
        },
        "order": "by time between partitions, by offset within one",
        "command": command("consume", names=[topic], options=[f"--offset={offset}", "-n", str(limit)]),
    }


@declared(query=Raw)
async def get_record(request: Request) -> Response:
    """One record whole, or the bytes of its key or value."""
    desk, topic, raw = await desk_of(request), request.path_params["name"], request.query_params.get("raw")
    partition = path_number(request, "partition", INT32_MAX)
    offset = path_number(request, "offset", INT64_MAX - 1)
    if raw not in (None, "key", "value"):
        raise bad_request(f"raw: {raw[:100]!r} is neither key nor value")
    record = await record_at(desk, topic, partition, offset)
    if raw is None:
        told = await asyncio.to_thread(shown, record, WHOLE_BYTES)
        return answer({"record": told, "command": told["command"]})
    data = record.key if raw == "key" else record.value
    name = f"{raw}-{partition}-{offset}.bin"
    headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
    return Response(data or b"", media_type="application/octet-stream", headers=headers)


async def record_at(desk: Desk, topic: str, partition: int, offset: int) -> ConsumerRecord:
    """As it is stored. Declined when there is none."""
    start, end = await ends_of_one(desk.acting.admin, topic, partition)
    found: list[ConsumerRecord] = []
    if start <= offset < end:
        one = LogEnds({partition: offset}, {partition: offset + 1})
        keywords = {**desk.acting.consumer_keywords, "max_partition_fetch_bytes": WHOLE_BYTES}
        found = (await desk.reads(lambda: page_forwards(keywords, topic, {partition: offset}, one, 1))).records
    if not found:
        raise Declined(
            404,
            "not_found",
            f"there is no record at offset {offset} of partition {partition} of {topic!r}",
            f"the partition has offsets {start} to {end}; some hold no record",
        )
    return found[0]


def isolation_of(text: str | None) -> str:
    isolation = text or ISOLATIONS[0]
    if isolation not in ISOLATIONS:
        raise bad_request(f"isolation: {isolation!r} is none of {', '.join(ISOLATIONS)}")
    return isolation


def partitions_of(text: str | None) -> list[int] | None:
    """`0,3`; None for all."""
    if not text:
        return None
    parts = text.split(",")
    found = {whole(part, INT32_MAX) for part in parts}
    if None in found:
        raise bad_request(f"partition: {text[:100]!r} is no list of partitions, as in 0,3")
    return sorted(each for each in found if each is not None)


def offsets_of(given: Any) -> dict[int, int]:
    """`{"0": "100"}`. Numbers below 0 are names of places to some requests, and none of them comes from outside."""
    pairs = (
        [(whole(name, INT32_MAX), whole(offset)) for name, offset in given.items()] if isinstance(given, dict) else []
    )
    found = {partition: offset for partition, offset in pairs if partition is not None and offset is not None}
    if not found or len(found) < len(pairs):
        raise bad_request('an object of partitions and offsets was expected, as in {"0": "100"}')
    return found


def path_number(request: Request, name: str, most: int) -> int:
    text = str(request.path_params[name])
    number = whole(text, most)
    if number is None:
        raise bad_request(f"{name}: {text[:100]!r} is no whole number from 0 to {most}")
    return number
