"""Changes of topics and configurations. With `dry_run` each is only planned: what is told is what would be done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from penstock.client.admin import ConfigEntry, ConfigResource
from penstock.console.answers import answer, body_of
from penstock.console.commands import command
from penstock.console.failures import Declined, bad_request
from penstock.console.routes.desk import Desk, desk_of
from penstock.console.routes.records import offsets_of, path_number
from penstock.console.sampler.picture import LOG_DIRS, METADATA, OFFSETS, SETTINGS, STARTS
from penstock.declared.amounts import plain_amount
from penstock.model.ids import TopicPartition

INT32_MAX = (1 << 31) - 1


async def create_topic(request: Request) -> Response:
    desk, body = await desk_of(request), await body_of(request)
    name, configs = text_in(body, "name"), amounts(body.get("configs") or {})
    partitions, replication = count_in(body, "partitions"), count_in(body, "replication")
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


async def elect_leaders(request: Request) -> Response:
    """Gives the partitions of a topic their preferred leaders."""
    desk, name = await desk_of(request), request.path_params["name"]
    found = await desk.acting.admin.describe_topic(name, offsets=False, configs=False)
    items = [TopicPartition(name, each.partition) for each in found.partitions]
    async with desk.changing("elect_leaders", f"preferred leaders of {name} were elected", METADATA, topic=name):
        elected = (await desk.acting.admin.elect_leaders(items)).checked()
    done = {str(item.partition): moved for item, moved in sorted(elected.items())}
    return answer({"done": done, "command": command("cluster", "partitions", "elect", options=["--topic", name])})


async def change_topic_config(request: Request) -> Response:
    name = request.path_params["name"]
    return await _configure(request, ConfigResource.topic(name), name, ["topic", "alter"], [name])


async def change_broker_config(request: Request) -> Response:
    node = path_number(request, "id", INT32_MAX)
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


def count_in(body: Mapping[str, Any], name: str) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= INT32_MAX:
        raise bad_request(f"{name}: a whole number above 0 was expected")
    return value


async def trim_topic(request: Request) -> Response:
    """Deletes the records before an offset of each partition."""
    desk, topic = await desk_of(request), request.path_params["name"]
    body = await body_of(request)
    before = offsets_of(body.get("before"))
    described = await desk.acting.admin.describe_topic(topic, configs=False)
    known = {each.partition: each for each in described.partitions}
    for partition in before:
        if partition not in known:
            raise bad_request(f"topic {topic!r} has no partition {partition}")
    plan = [
        {
            "partition": partition,
            "start": str(known[partition].start),
            "before": str(offset),
            "records": str(max(min(offset, known[partition].end) - known[partition].start, 0)),
        }
        for partition, offset in sorted(before.items())
    ]
    options = [word for each in sorted(before) for word in ("--partition", str(each))]
    same = command("topic", "trim", names=[topic], options=[*options, "--before", str(max(before.values()))])
    if body.get("dry_run"):
        return answer({"plan": plan, "command": same})
    async with desk.changing("trim_topic", f"records of {topic} were deleted", OFFSETS, STARTS, topic=topic, plan=plan):
        starts = await desk.acting.admin.trim_topic(topic, before)
    return answer({"done": {str(each): str(start) for each, start in sorted(starts.items())}, "command": same})
