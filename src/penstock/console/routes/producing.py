"""New records: as JSON of our own, as Confluent's REST API has them, and those that are sent again as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from penstock.client.consumer import ConsumerRecord
from penstock.client.errors import ClientError
from penstock.client.producer import Delivery
from penstock.console.answers import answer, encode
from penstock.console.commands import command
from penstock.console.digits import INT32_MAX, INT64_MAX
from penstock.console.failures import Declined, bad_request, declined
from penstock.console.messages.arriving import SIDES, NewRecord, number_of, records_of, sides_of
from penstock.console.messages.arriving_v3 import TypedRecord, Wrong, moment_text, typed_record, typed_records_of
from penstock.console.messages.repeats import Outcome
from penstock.console.routes.declaring import declared
from penstock.console.routes.desk import Desk, desk_of
from penstock.console.routes.records import path_number, record_at
from penstock.console.sampler.picture import OFFSETS
from penstock.model.errors import PenstockError

_AGAIN_NAMES: Final = SIDES | {"to", "partition", "dry_run"}

Told = dict[str, Any]
"""Where a record is now, or the error that kept it from there."""


@declared(body_types=("application/json", "application/x-ndjson"), headers=("idempotency-key",))
async def post_records(request: Request) -> Response:
    """New records; what became of each is told in its place. With an Idempotency-Key they are sent once."""
    desk, topic = await desk_of(request), request.path_params["name"]
    lines = request.headers.get("content-type", "").startswith("application/x-ndjson")
    body = await request.body()
    records = records_of(body, lines=lines, other=typed_record)

    async def send() -> Outcome:
        results = await _sent(desk, topic, records)
        failed = sum("error" in each for each in results)
        told = {"results": results, "command": command("produce", names=[topic], options=["-f", "json"])}
        return Outcome(207 if failed else 200, encode(told), kept=True)

    what = encode([desk.sampler.address.name, topic, lines, body])
    return await _once(request, desk, what, send)


@declared(own_errors=True)
async def post_records_v3(request: Request) -> Response:
    """New records as Confluent's REST API takes them, version 3: any number of objects, one behind another."""
    try:
        desk, topic = await desk_of(request), request.path_params["name"]
        cluster_id = _cluster_id(desk)
        if request.path_params["cluster_id"] != cluster_id:
            raise Declined(404, "not_found", "there is no such cluster here", f"this one is {cluster_id}")
        given = list(typed_records_of(await request.body()))
        if not given:
            raise bad_request("there is no record in the body")
        records = [each.record for each in given if isinstance(each, TypedRecord)]
        results = iter(await _sent(desk, topic, records, partly=True) if records else [])
    except PenstockError as failure:
        why = declined(failure)
        return answer({"error_code": why.status, "message": why.message}, why.status)
    told: list[Told] = [
        {"error_code": each.error_code, "message": each.message}
        if isinstance(each, Wrong)
        else _told_v3(cluster_id, topic, each, next(results))
        for each in given
    ]
    # One record has an answer of its own with its status; several have 200 and say it each.
    status = int(told[0]["error_code"]) if len(told) == 1 else 200
    body = b"\r\n".join(encode(each) for each in told) + b"\r\n"
    return Response(body, status, media_type="application/json", headers={"cache-control": "no-store"})


@declared()
async def get_clusters_v3(request: Request) -> Response:
    """The cluster under the id that version 3 of Confluent's REST API names it by."""
    desk = await desk_of(request)
    found = {"kind": "KafkaCluster", "cluster_id": _cluster_id(desk)}
    return answer({"kind": "KafkaClusterList", "data": [found]})


@declared(previews=True)
async def send_again(request: Request) -> Response:
    """A stored record once more, byte for byte but for the parts that the body gives, to its topic or another."""
    desk, topic = await desk_of(request), request.path_params["name"]
    partition = path_number(request, "partition", INT32_MAX)
    offset = path_number(request, "offset", INT64_MAX - 1)
    to, target, changed, dry = _again(await request.body(), topic)
    stored = await record_at(desk, topic, partition, offset)
    record = _copied(stored, target, changed)
    same = (
        command("consume", names=[topic], options=["-p", str(partition), f"--offset={offset}", "-n", "1"])
        + " | "
        + command("produce", names=[to], options=["-f", "json"])
    )
    if dry:
        sizes = {"key": _size(record.key), "value": _size(record.value), "headers": len(record.headers)}
        return answer({"plan": {"to": to, "partition": target, **sizes}, "command": same})
    results = await _sent(desk, to, [record])
    return answer({"results": results, "command": same})


async def _once(request: Request, desk: Desk, what: bytes, send: Any) -> Response:
    key, repeated = request.headers.get("idempotency-key"), False
    if key is None:
        outcome = await send()
    else:
        outcome, repeated = await desk.shared.repeats.once(desk.person, key, what, send)
    headers = {"cache-control": "no-store", **({"idempotency-replayed": "true"} if repeated else {})}
    return Response(outcome.body, outcome.status, media_type="application/json", headers=headers)


async def _sent(desk: Desk, topic: str, records: Sequence[NewRecord], *, partly: bool = False) -> list[Told]:
    """What became of each. Declined when nothing became of any; `partly`: not even then.

    A partition that is not there is refused before anything is sent, where no record may go without the others.
    """
    # A producer would have a topic made that is not there.
    described = await desk.acting.admin.describe_topic(topic, offsets=False, configs=False)
    known = {each.partition for each in described.partitions}
    for record in records:
        if not partly and record.partition is not None and record.partition not in known:
            raise _no_partition(topic, record.partition, len(known))
    text = f"{len(records)} record{'s' * (len(records) != 1)} sent to {topic}"
    try:
        async with desk.changing("send_records", text, OFFSETS, topic=topic, records=len(records)):
            results = await _send(desk, topic, records, known)
            errors = [each["error"] for each in results if "error" in each]
            if len(errors) == len(results):
                raise _AllFailed(results)
    except _AllFailed as failure:
        if partly:
            return failure.results
        first = failure.results[0]["error"]
        raise Declined(
            first["status"], first["code"], first["message"], first["attempt"], results=failure.results
        ) from None
    return results


class _AllFailed(PenstockError):
    """So that it is written down as what it is."""

    def __init__(self, results: list[Told]) -> None:
        super().__init__(results[0]["error"]["message"])
        self.results = results


async def _send(desk: Desk, topic: str, records: Sequence[NewRecord], known: set[int]) -> list[Told]:
    producer = await desk.acting.producer()
    results: list[Told] = [{} for _ in records]
    under_way: list[tuple[int, Delivery]] = []
    for at, record in enumerate(records):
        try:
            if record.partition is not None and record.partition not in known:
                raise _no_partition(topic, record.partition, len(known))
            delivery = producer.send(
                topic,
                record.value,
                key=record.key,
                partition=record.partition,
                timestamp=record.timestamp,
                headers=record.headers,
            )
        except PenstockError as failure:
            results[at] = _error(failure)
        else:
            under_way.append((at, delivery))
    for at, delivery in under_way:
        try:
            report = await delivery
        except ClientError as failure:
            results[at] = _error(failure)
        else:
            where = {"partition": report.partition, "offset": str(report.offset)}
            results[at] = {**where, "timestamp": str(report.timestamp)}
    return results


def _error(failure: PenstockError) -> Told:
    why = declined(failure)
    return {"error": {**why.told(), "status": why.status}}


def _no_partition(topic: str, partition: int, count: int) -> Declined:
    return bad_request(f"topic {topic!r} has no partition {partition}; it has {count}")


def _cluster_id(desk: Desk) -> str:
    return str(desk.seeing().picture.cluster.cluster_id)


def _told_v3(cluster_id: str, topic: str, typed: TypedRecord, result: Told) -> Told:
    if "error" in result:
        return {"error_code": result["error"]["status"], "message": result["error"]["message"]}
    told: Told = {
        "error_code": 200,
        "cluster_id": cluster_id,
        "topic_name": topic,
        "partition_id": result["partition"],
        # Version 3 has a number here; as text it has any length.
        "offset": msgspec.Raw(result["offset"].encode()),
        "timestamp": moment_text(int(result["timestamp"])),
    }
    sides = (("key", typed.key_type, typed.record.key), ("value", typed.value_type, typed.record.value))
    for name, kind, data in sides:
        if kind is not None:
            told[name] = {"type": kind, "size": len(data or b"")}
    return told


def _again(body: bytes, topic: str) -> tuple[str, int | None, dict[str, Any], bool]:
    """Where to, which partition, what is to be other than it is stored, and whether it is only looked at."""
    try:
        given = msgspec.json.decode(body or b"{}", type=dict[str, msgspec.Raw])
        unknown = sorted(given.keys() - _AGAIN_NAMES)
        if unknown:
            raise ValueError(f"{unknown[0][:100]!r} is none of {', '.join(sorted(_AGAIN_NAMES))}")
        to = msgspec.json.decode(given["to"]) if "to" in given else topic
        if not isinstance(to, str) or not to:
            raise ValueError("to: the name of a topic was expected")
        dry = "dry_run" in given and msgspec.json.decode(given["dry_run"]) is True
        return to, number_of(given, "partition", INT32_MAX), sides_of(given), dry
    except (ValueError, msgspec.DecodeError, RecursionError) as wrong:
        raise bad_request(str(wrong)) from None


def _copied(stored: ConsumerRecord, partition: int | None, changed: dict[str, Any]) -> NewRecord:
    kept: dict[str, Any] = {"key": stored.key, "value": stored.value, "headers": list(stored.headers)}
    return NewRecord(**{**kept, **changed}, partition=partition)


def _size(data: bytes | None) -> int | None:
    return None if data is None else len(data)
