"""Changes of rules; hanging transactions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from penstock.client.admin import Acl, AclFilter
from penstock.console.answers import answer, body_of
from penstock.console.commands import command
from penstock.console.digits import INT32_MAX, whole
from penstock.console.failures import bad_request
from penstock.console.routes.changing_topics import text_in
from penstock.console.routes.declaring import declared
from penstock.console.routes.desk import desk_of
from penstock.console.routes.shapes import Hanging, Rule
from penstock.model.ids import TopicPartition

_PARTS = ("principal", "operation", "resource", "name", "pattern", "host", "permission")


@declared(previews=True, body=Rule)
async def add_acl(request: Request) -> Response:
    desk, body = await desk_of(request), await body_of(request)
    acl = _acl(body)
    words = ["acl", "deny" if acl.permission == "deny" else "allow"]
    same = command(*words, names=[acl.principal, acl.operation, _resource(acl)], options=_host(acl))
    if body.get("dry_run"):
        return answer({"plan": asdict(acl), "command": same})
    async with desk.changing("add_acl", f"rule added: {acl}", acl=asdict(acl)):
        (await desk.acting.admin.create_acls([acl])).checked()
    return answer({"done": asdict(acl), "command": same})


@declared(previews=True, body=Rule)
async def remove_acl(request: Request) -> Response:
    """This very rule and no other."""
    desk, body = await desk_of(request), await body_of(request)
    acl = _acl(body)
    which = AclFilter(**asdict(acl))
    options = ["--principal", acl.principal, "--operation", acl.operation, "--resource", _resource(acl)]
    same = command("acl", "remove", options=[*options, "--permission", acl.permission, *_host(acl), "--yes"])
    found = await desk.acting.admin.describe_acls(which)
    if body.get("dry_run"):
        return answer({"plan": [asdict(each) for each in found], "command": same})
    async with desk.changing("remove_acl", f"rule removed: {acl}", acl=asdict(acl)):
        removed = (await desk.acting.admin.delete_acls([which])).checked()[which]
    return answer({"removed": [asdict(each) for each in removed], "command": same})


@declared(previews=True, body=Hanging)
async def abort_transaction(request: Request) -> Response:
    """Writes the end of a transaction that hangs; one that its coordinator knows is not touched."""
    desk, body = await desk_of(request), await body_of(request)
    topic, partition = text_in(body, "topic"), whole(body.get("partition"), INT32_MAX)
    offset = whole(body.get("start_offset"))
    if partition is None or offset is None:
        raise bad_request("partition: a number, and start_offset: an offset were expected")
    item = TopicPartition(topic, partition)
    open_there = await desk.acting.admin.open_transactions([item])
    hanging = [each for each in open_there if each.start_offset == offset and each.hanging]
    if not hanging:
        raise bad_request(
            f"no transaction hangs in {topic}-{partition} from offset {offset}",
            "one that its coordinator knows ends by itself, or by `penstock txn fence ID`",
        )
    same = command("txn", "abort", names=[topic, str(partition)], options=["--start-offset", str(offset), "--yes"])
    if body.get("dry_run"):
        return answer({"plan": {"producer_id": str(hanging[0].producer_id)}, "command": same})
    text = f"a hanging transaction in {topic}-{partition} was aborted"
    async with desk.changing("abort_transaction", text, topic=topic, partition=partition, start_offset=str(offset)):
        ended = await desk.acting.admin.abort_transaction(item, start_offset=offset)
    return answer({"done": {"producer_id": str(ended.producer_id)}, "command": same})


def _acl(body: Mapping[str, Any]) -> Acl:
    given = {name: body[name] for name in _PARTS if name in body}
    if not all(isinstance(value, str) for value in given.values()):
        raise bad_request("a rule has texts: " + ", ".join(_PARTS))
    try:
        return Acl(**given)
    except (TypeError, ValueError) as wrong:
        raise bad_request(f"this is no rule: {wrong}") from None


def _resource(acl: Acl) -> str:
    if acl.resource == "cluster":
        return "cluster"
    return f"{acl.resource}:{acl.name}{'*' if acl.pattern == 'prefixed' else ''}"


def _host(acl: Acl) -> list[str]:
    return [] if acl.host == "*" else ["--host", acl.host]
