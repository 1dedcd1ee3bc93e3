"""Records: pages of them, one of them whole, and new ones."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from penstock.client.errors import ClientError
from penstock.console.answers import answer
from penstock.console.commands import command
from penstock.console.digits import INT32_MAX, INT64_MAX, whole
from penstock.console.failures import Declined, bad_request, declined
from penstock.console.listings import whole_number
from penstock.console.messages.arriving import NewRecord, records_of
from penstock.console.messages.cursors import cursor_positions, cursor_text
from penstock.console.messages.pages import PageOfRecords, page_backwards, page_forwards
from penstock.console.messages.places import LogEnds, ends_of, positions_of
from penstock.console.messages.showing import shown
from penstock.console.routes.desk import Desk, desk_of, now_ms
from penstock.console.sampler.picture import OFFSETS

LIMIT_MAX: Final = 500
WHOLE_BYTES: Final = 8 << 20
ISOLATIONS: Final = ("read_uncommitted", "read_committed")


async def get_records(request: Request) -> Response:
    desk, topic, query = await desk_of(request), request.path_params["name"], request.query_params
    isolation, limit = (
        isolation_of(query.get("isolation")),
        max(min(whole_number(query, "limit", 50, 1 << 31), LIMIT_MAX), 1),
    )
    committed = isolation == "read_committed"
    ends = await ends_of(desk.acting.admin, topic, partitions_of(query.get("partition")), committed=committed)
    place, cursor = query.get("from") or "newest", query.get("cursor")
    if cursor is None:
        positions = await positions_of(desk.acting.admin, topic, place, ends, now_ms())
        back = place == "newest"
    else:
        positions, back = _within(cursor_positions(cursor), ends), query.get("back") == "1"
    keywords = {**desk.acting.consumer_keywords, "isolation_level": isolation}
    read = page_backwards if back else page_forwards
    page = await desk.reads(lambda: read(keywords, topic, positions, ends, limit))
    return answer(_told(topic, page, ends, place, limit, back=back))


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
    return {
        "records": [shown(record) for record in page.records],
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


async def get_record(request: Request) -> Response:
    """One record whole, or the bytes of its key or value."""
    desk, topic, raw = await desk_of(request), request.path_params["name"], request.query_params.get("raw")
    partition = path_number(request, "partition", INT32_MAX)
    offset = path_number(request, "offset", INT64_MAX - 1)
    ends = LogEnds({partition: offset}, {partition: offset + 1})
    known = await ends_of(desk.acting.admin, topic, [partition], committed=False)
    found: list[Any] = []
    if known.starts[partition] <= offset < known.ends[partition]:
        keywords = {**desk.acting.consumer_keywords, "max_partition_fetch_bytes": WHOLE_BYTES}
        page = await desk.reads(lambda: page_forwards(keywords, topic, {partition: offset}, ends, 1))
        found = page.records
    if not found:
        raise Declined(
            404,
            "not_found",
            f"there is no record at offset {offset} of partition {partition} of {topic!r}",
            f"the partition has offsets {known.starts[partition]} to {known.ends[partition]}; some hold no record",
        )
    if raw is None:
        same = command("consume", names=[topic], options=["-p", str(partition), f"--offset={offset}", "-n", "1"])
        return answer({"record": shown(found[0], WHOLE_BYTES), "command": same})
    if raw not in ("key", "value"):
        raise bad_request(f"raw: {raw!r} is neither key nor value")
    data = found[0].key if raw == "key" else found[0].value
    name = f"{raw}-{partition}-{offset}.bin"
    headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
    return Response(data or b"", media_type="application/octet-stream", headers=headers)


async def post_records(request: Request) -> Response:
    """New records; what became of each is told in its place."""
    desk, topic = await desk_of(request), request.path_params["name"]
    lines = request.headers.get("content-type", "").startswith("application/x-ndjson")
    records = records_of(await request.body(), lines=lines)
    # A producer would have a topic made that is not there.
    described = await desk.acting.admin.describe_topic(topic, offsets=False, configs=False)
    known = {each.partition for each in described.partitions}
    for record in records:
        if record.partition is not None and record.partition not in known:
            raise bad_request(f"topic {topic!r} has no partition {record.partition}; it has {len(known)}")
    text = f"{len(records)} record{'s' * (len(records) != 1)} sent to {topic}"
    async with desk.changing("send_records", text, OFFSETS, topic=topic, records=len(records)):
        results = await _send(desk, topic, records)
    return answer({"results": results, "command": command("produce", names=[topic], options=["-f", "json"])})


async def _send(desk: Desk, topic: str, records: list[NewRecord]) -> list[dict[str, Any]]:
    producer = await desk.acting.producer()
    results: list[dict[str, Any]] = [{} for _ in records]
    under_way = []
    for at, record in enumerate(records):
        try:
            delivery = producer.send(
                topic,
                record.value,
                key=record.key,
                partition=record.partition,
                timestamp=record.timestamp,
                headers=record.headers,
            )
        except ClientError as failure:
            results[at] = {"error": declined(failure).told()}
        else:
            under_way.append((at, delivery))
    for at, delivery in under_way:
        try:
            report = await delivery
        except ClientError as failure:
            results[at] = {"error": declined(failure).told()}
        else:
            where = {"partition": report.partition, "offset": str(report.offset)}
            results[at] = {**where, "timestamp": str(report.timestamp)}
    return results


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
