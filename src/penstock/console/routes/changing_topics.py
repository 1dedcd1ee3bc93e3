"""Changes of topics and configurations. With `dry_run` each is only planned: what is told is what would be done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from penstock.client.admin import ConfigEntry, ConfigResource, PartitionInfo
from penstock.console.answers import answer, body_of
from penstock.console.commands import command
from penstock.console.digits import INT32_MAX, whole
from penstock.console.failures import Declined, bad_request
from penstock.console.routes.declaring import declared
from penstock.console.routes.desk import Desk, desk_of
from penstock.console.routes.records import path_number
from penstock.console.routes.shapes import Configured, Confirmed, Grown, NewTopic, Preview, Trimmed
from penstock.console.sampler.picture import LOG_DIRS, METADATA, OFFSETS, SETTINGS, STARTS
from penstock.declared.amounts import plain_amount
from penstock.model.ids import TopicPartition

REPLICAS_MAX = (1 << 15) - 1


@declared(previews=True, body=NewTopic)
async def create_topic(request: Request) -> Response:
    desk, body = await desk_of(request), await body_of(request)
    name, configs = text_in(body, "name"), amounts(body.get("configs") or {})
    partitions, replication = count_in(body, "partitions"), count_in(body, "replication", REPLICAS_MAX)
    dry = bool(body.get("dry_run"))
    options: list[str] = []
    for flag, number in (("-p", partitions), ("-r", replication)):
        options += [] if number is None else [flag, str(number)]
    for key, value in configs.items():
        options += ["-c", f"{key}={value}"]
    same = command("topic", "create", names=[name], options=options)
    admin = desk.acting.admin
    if dry:
        await admin.create_topic(name, partitions, replication, configs, validate_only=True)
        return answer({"plan": {"name": name, "partitions": partitions, "replication": replication}, "command": same})
    params: dict[str, Any] = {"partitions": partitions, "replication": replication, "configs": configs}
    async with desk.changing("create_topic", f"topic {name} was created", METADATA, SETTINGS, topic=name, **params):
        topic_id = await admin.create_topic(name, partitions, replication, configs)
    return answer({"done": {"name": name, "id": topic_id}, "command": same})


@declared(previews=True, body=Confirmed)
async def delete_topic(request: Request) -> Response:
    desk, name, body = await desk_of(request), request.path_params["name"], await body_of(request)
    same = command("topic", "delete", names=[name], options=["--yes"])
    if body.get("dry_run"):
        found = await desk.acting.admin.describe_topic(name, configs=False)
        records = sum(each.end - each.start for each in found.partitions if each.end >= 0)
        readers = [group for group in desk.seeing().picture.readers.get(name, []) if desk.vision.group(group)]
        plan = {"partitions": len(found.partitions), "records": str(records), "groups": readers}
        return answer({"plan": plan, "command": same})
    confirmed(body, name)
    async with desk.changing("delete_topic", f"topic {name} was deleted", METADATA, OFFSETS, LOG_DIRS, topic=name):
        await desk.acting.admin.delete_topic(name)
    return answer({"done": {"name": name}, "command": same})


@declared(previews=True, body=Grown)
async def grow_topic(request: Request) -> Response:
    desk, name, body = await desk_of(request), request.path_params["name"], await body_of(request)
    to = count_in(body, "partitions")
    if to is None:
        raise bad_request("partitions: how many the topic is to have")
    found = await desk.acting.admin.describe_topic(name, offsets=False, configs=False)
    was = len(found.partitions)
    if to <= was:
        raise bad_request(f"topic {name!r} has {was} partitions already; partitions cannot be taken away")
    same = command("topic", "add-partitions", names=[name], options=["-p", str(to)])
    warning = "records of a key may go to another partition than before"
    if body.get("dry_run"):
        return answer({"plan": {"was": was, "to": to, "warning": warning}, "command": same})
    text = f"topic {name} has {to} partitions, after {was}"
    async with desk.changing("grow_topic", text, METADATA, OFFSETS, topic=name, was=was, to=to):
        await desk.acting.admin.grow_topic(name, to)
    return answer({"done": {"was": was, "to": to}, "command": same})


@declared(previews=True, body=Preview)
async def elect_leaders(request: Request) -> Response:
    """Gives the partitions of a topic their preferred leaders."""
    desk, name, body = await desk_of(request), request.path_params["name"], await body_of(request)
    found = await desk.acting.admin.describe_topic(name, offsets=False, configs=False)
    same = command("cluster", "partitions", "elect", options=["--topic", name])
    if body.get("dry_run"):
        others = [each for each in found.partitions if each.replicas and each.leader != each.replicas[0]]
        plan = [
            {
                "partition": each.partition,
                "leader": each.leader,
                "preferred": each.replicas[0],
                "in_sync": each.replicas[0] in each.isr,
            }
            for each in others
        ]
        return answer({"plan": {"partitions": plan}, "command": same})
    items = [TopicPartition(name, each.partition) for each in found.partitions]
    async with desk.changing("elect_leaders", f"preferred leaders of {name} were elected", METADATA, topic=name):
        elected = (await desk.acting.admin.elect_leaders(items)).checked()
    done = {str(item.partition): moved for item, moved in sorted(elected.items())}
    return answer({"done": done, "command": same})


@declared(previews=True, body=Configured)
async def change_topic_config(request: Request) -> Response:
    name = request.path_params["name"]
    return await _configure(request, ConfigResource.topic(name), name, ["topic", "alter"], [name])


@declared(previews=True, body=Configured)
async def change_broker_config(request: Request) -> Response:
    node = path_number(request, "id", INT32_MAX)
    (await desk_of(request)).check_broker(node)
    words = ["cluster", "config", "set"]
    return await _configure(request, ConfigResource.broker(node), "", words, [], ["--broker", str(node)])


async def _configure(
    request: Request,
    resource: ConfigResource,
    topic: str,
    words: list[str],
    names: list[str],
    options: list[str] | None = None,
) -> Response:
    desk, body = await desk_of(request), await body_of(request)
    wanted: dict[str, str | None] = dict(amounts(body.get("set") or {}))
    unset = body.get("unset") or []
    if not isinstance(unset, list) or not all(isinstance(key, str) for key in unset):
        raise bad_request("unset: a list of names was expected")
    wanted |= dict.fromkeys(unset)
    if not wanted:
        raise bad_request("there is nothing to change: give `set`, `unset` or both")
    entries = (await desk.acting.admin.describe_configs([resource])).checked()[resource]
    plan = [_change(name, entries.get(name), to) for name, to in sorted(wanted.items())]
    same = _config_command(words, names, options or [], wanted)
    await _validated(desk, resource, wanted)
    if body.get("dry_run"):
        return answer({"plan": {"changes": plan}, "command": same})
    text = f"configuration of {resource.kind} {resource.name} was changed: {', '.join(sorted(wanted))}"
    # Of what is secret only the names are written down.
    names_changed = sorted(wanted)
    async with desk.changing("change_config", text, SETTINGS, METADATA, topic=topic, configs=names_changed):
        (await desk.acting.admin.alter_configs({resource: wanted})).checked()
    return answer({"done": {"changes": plan}, "command": same})


async def _validated(desk: Desk, resource: ConfigResource, wanted: Mapping[str, str | None]) -> None:
    (await desk.acting.admin.alter_configs({resource: wanted}, validate_only=True)).checked()


def _change(name: str, entry: ConfigEntry | None, to: str | None) -> dict[str, Any]:
    hidden = entry is not None and entry.sensitive
    return {
        "name": name,
        "was": entry.value if entry and not hidden else None,
        "was_source": entry.source if entry else None,
        "to": None if hidden else to,
        "sensitive": hidden,
    }


def _config_command(words: list[str], names: list[str], options: list[str], wanted: Mapping[str, str | None]) -> str:
    given = [f"{name}={value}" for name, value in sorted(wanted.items()) if value is not None]
    gone = [word for name, value in sorted(wanted.items()) if value is None for word in ("-d", name)]
    if words[0] == "topic":
        given = [word for each in given for word in ("-c", each)]
        return command(*words, names=names, options=[*options, *given, *gone])
    return command(*words, names=given, options=[*options, *gone])


def amounts(given: Any) -> dict[str, str]:
    """Values as brokers read them; times and sizes may come as 7d and 1GiB."""
    if not isinstance(given, dict):
        raise bad_request("an object of names and values was expected")
    found = {}
    for name, value in given.items():
        plain = plain_amount(name, str(value)) if isinstance(value, str | int) else None
        if plain is None:
            raise bad_request(f"{name}: {value!r} is no value; times are as 7d, sizes as 1GiB", config=name)
        found[name] = plain
    return found


def confirmed(body: Mapping[str, Any], name: str) -> None:
    """What cannot be undone is named once more by whoever wants it."""
    if body.get("confirm") != name:
        raise Declined(400, "not_confirmed", f"this cannot be undone: confirm it with the name {name!r}", name=name)


def text_in(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise bad_request(f"{name}: a text was expected")
    return value


def count_in(body: Mapping[str, Any], name: str, most: int = INT32_MAX) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= most:
        raise bad_request(f"{name}: a whole number from 1 to {most} was expected")
    return value


@declared(previews=True, body=Trimmed)
async def trim_topic(request: Request) -> Response:
    """Deletes the records before an offset of each partition, or before `end`: all that there are now."""
    desk, topic = await desk_of(request), request.path_params["name"]
    body = await body_of(request)
    described = await desk.acting.admin.describe_topic(topic, configs=False)
    before = _cuts(topic, body.get("before"), {each.partition: each for each in described.partitions})
    starts = {each.partition: each.start for each in described.partitions}
    plan = [
        {
            "partition": partition,
            "start": str(starts[partition]),
            "before": str(offset),
            "records": str(max(offset - starts[partition], 0)),
        }
        for partition, offset in sorted(before.items())
    ]
    same = _trim_command(topic, before)
    if body.get("dry_run"):
        return answer({"plan": plan, "command": same})
    confirmed(body, topic)
    async with desk.changing("trim_topic", f"records of {topic} were deleted", OFFSETS, STARTS, topic=topic, plan=plan):
        trimmed = await desk.acting.admin.trim_topic(topic, before)
    return answer({"done": {str(each): str(start) for each, start in sorted(trimmed.items())}, "command": same})


def _cuts(topic: str, given: Any, known: Mapping[int, PartitionInfo]) -> dict[int, int]:
    """Where each partition is cut. To a broker -1 means everything, so no number below 0 may reach it."""
    if not isinstance(given, dict) or not given:
        raise bad_request('before: an object of partitions and offsets was expected, as in {"0": "100", "1": "end"}')
    found = {}
    for name, cut in given.items():
        partition = whole(name, INT32_MAX)
        if partition is None or partition not in known:
            raise bad_request(f"topic {topic!r} has no partition {name[:20]}")
        end = known[partition].end
        if end < 0:
            raise bad_request(f"partition {partition} of {topic!r} has no leader, so nobody knows where it ends")
        offset = end if cut == "end" else whole(cut)
        if offset is None:
            raise bad_request(f"before: partition {partition} has neither an offset nor `end`")
        if offset > end:
            raise bad_request(f"partition {partition} of {topic!r} ends at {end}, so it is not cut at {offset}")
        found[partition] = offset
    return found


def _trim_command(topic: str, before: Mapping[int, int]) -> str:
    """One command cuts partitions at one offset; as many as there are offsets."""
    commands = []
    for offset in sorted(set(before.values())):
        chosen = [word for each in sorted(before) if before[each] == offset for word in ("--partition", str(each))]
        commands.append(command("topic", "trim", names=[topic], options=[*chosen, "--before", str(offset), "--yes"]))
    return " && ".join(commands)
