"""Changes of groups: a move of positions that is looked at first and can be taken back, and forgetting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from penstock.client.admin import Admin
from penstock.client.errors import ClientError
from penstock.console.answers import answer, body_of
from penstock.console.commands import command
from penstock.console.digits import INT32_MAX, whole
from penstock.console.failures import Declined, bad_request, declined
from penstock.console.routes.changing_topics import confirmed
from penstock.console.routes.declaring import declared
from penstock.console.routes.desk import Desk, desk_of, now_ms
from penstock.console.routes.records import offsets_of
from penstock.console.routes.shapes import Confirmed, Forgotten, Moved, TakenBack
from penstock.console.sampler.picture import GROUPS
from penstock.model.errors import GROUP_ID_NOT_FOUND, PenstockError
from penstock.model.ids import TopicPartition
from penstock.model.units import count
from penstock.operations import group_plans
from penstock.operations.group_plans import Chosen, Reposition

_WORDS = {"earliest": "start", "latest": "end"}


@declared(previews=True, body=Moved)
async def reset_group(request: Request) -> Response:
    """Moves positions. With the positions of a preview as `plan` those very moves are made, or none if one is stale."""
    desk, group, body = await desk_of(request), request.path_params["name"], await body_of(request)
    admin = desk.acting.admin
    chosen = _chosen(body.get("topics"))
    moves, options = await _planned(admin, group, body, chosen)
    same = command("group", "seek", names=[group], options=[*options, *_topic_options(chosen), "--yes"])
    plan = _told(moves)
    await _refuse_members(admin, group)
    if body.get("dry_run"):
        return answer({"plan": plan, "command": same})
    text = f"group {group} was moved in {len(moves)} partition{'s' * (len(moves) != 1)}"
    positions = plan["positions"]
    try:
        async with desk.changing("reset_group", text, GROUPS, group=group, positions=positions):
            await group_plans.carry_out(admin, group, moves)
    except PenstockError as failure:
        raise await _half_moved(desk, group, moves, failure) from failure
    undo = desk.shared.moved.keep(desk.sampler.address.name, group, desk.person, now_ms(), moves)
    return answer({"done": plan, "undo": undo, "command": same})


async def _half_moved(desk: Desk, group: str, moves: Sequence[Reposition], failure: PenstockError) -> PenstockError:
    """What was moved before it failed can be taken back; nobody knows of what cannot be asked for, so that is too."""
    try:
        now = await desk.acting.admin.group_offsets(group)
        at = {item: found.offset for item, found in now.items()}
        moved = [move for move in moves if at.get(move.where) == move.to and move.to != move.was]
    except ClientError:
        moved = list(moves)
    undo = desk.shared.moved.keep(desk.sampler.address.name, group, desk.person, now_ms(), moved) if moved else None
    if undo is None:
        return failure
    why = declined(failure)
    message = f"{why.message}; {count('position', len(moved))} may have been moved before that"
    return Declined(why.status, why.code, message, "take that back, or try again", undo=undo)


@declared(previews=True, body=TakenBack)
async def undo_reset(request: Request) -> Response:
    """Puts positions back to where they were before a move of the last hour."""
    desk, group, body = await desk_of(request), request.path_params["name"], await body_of(request)
    admin, cluster, moved_id = desk.acting.admin, desk.sampler.address.name, str(body.get("id"))
    same = command("group", "describe", names=[group])
    await _refuse_members(admin, group)
    moved = desk.shared.moved.find(cluster, group, moved_id, now_ms())
    if moved is None:
        raise Declined(404, "not_found", "this move cannot be taken back any more", "moves can be for an hour")
    at = {item: found.offset for item, found in (await admin.group_offsets(group)).items()}
    moves = [Reposition(move.topic, move.partition, at.get(move.where), move.to) for move in moved.moves]
    if body.get("dry_run"):
        return answer({"plan": _told(moves), "command": same})
    text = f"a move of group {group} was taken back"
    async with desk.changing("undo_reset", text, GROUPS, group=group, positions=_told(moves)["positions"]):
        await group_plans.carry_out(admin, group, moves)
        nowhere = [move.where for move in moves if move.to is None and move.was is not None]
        if nowhere:
            (await admin.delete_group_offsets(group, nowhere)).checked()
    # Not before all of it is back: what failed half-way can be tried again.
    desk.shared.moved.forget(moved)
    return answer({"done": _told(moves), "command": same})


@declared(previews=True, body=Confirmed)
async def delete_group(request: Request) -> Response:
    desk, group, body = await desk_of(request), request.path_params["name"], await body_of(request)
    same = command("group", "delete", names=[group], options=["--yes"])
    if body.get("dry_run"):
        positions = await desk.acting.admin.group_offsets(group)
        return answer({"plan": {"positions": len(positions)}, "command": same})
    confirmed(body, group)
    async with desk.changing("delete_group", f"group {group} was deleted", GROUPS, group=group):
        await desk.acting.admin.delete_group(group)
    return answer({"done": {"group": group}, "command": same})


@declared(previews=True, body=Forgotten)
async def forget_offsets(request: Request) -> Response:
    """Positions of some topics; the rest of the group stays."""
    desk, group, body = await desk_of(request), request.path_params["name"], await body_of(request)
    chosen = _chosen(body.get("topics"))
    if not chosen:
        raise bad_request('topics: an object was expected, as in {"orders": []} for all of its partitions')
    moves = await group_plans.plan_forgetting(desk.acting.admin, group, chosen)
    same = command("group", "offset-delete", names=[group], options=[*_topic_options(chosen), "--yes"])
    if body.get("dry_run"):
        return answer({"plan": _told(moves), "command": same})
    text = f"positions of group {group} were forgotten"
    async with desk.changing("forget_offsets", text, GROUPS, group=group, positions=_told(moves)["positions"]):
        (await desk.acting.admin.delete_group_offsets(group, [move.where for move in moves])).checked()
    return answer({"done": _told(moves), "command": same})


async def _planned(
    admin: Admin, group: str, body: Mapping[str, Any], chosen: Chosen
) -> tuple[list[Reposition], list[str]]:
    """The moves, and the options of the command that makes them."""
    ways = [name for name in ("to", "from_group", "offsets", "plan") if body.get(name) is not None]
    if len(ways) != 1:
        raise bad_request("one of `to`, `from_group`, `offsets` and `plan` says where the group goes")
    if ways[0] == "to":
        point = _point(str(body["to"]))
        return await group_plans.plan_point(admin, group, point, chosen), [f"--to={point}"]
    if ways[0] == "from_group":
        other = str(body["from_group"])
        return await group_plans.plan_group(admin, group, other, chosen), [f"--to-group={other}"]
    if ways[0] == "plan":
        return await _looked_at(admin, group, body["plan"]), ["--to-file=FILE"]
    given = body["offsets"]
    if not isinstance(given, dict):
        raise bad_request('offsets: an object was expected, as in {"orders": {"0": "5"}}')
    offsets = {
        TopicPartition(topic, partition): offset
        for topic, partitions in given.items()
        for partition, offset in offsets_of(partitions).items()
    }
    return await group_plans.plan_offsets(admin, group, offsets, chosen), ["--to-file=FILE"]


async def _looked_at(admin: Admin, group: str, given: Any) -> list[Reposition]:
    """The very moves of a preview: where the ends of logs, or a time, are by now makes no difference to them."""
    try:
        moves = [_move(each) for each in given] if isinstance(given, list) else []
    except (KeyError, TypeError, ValueError):
        moves = []
    if not moves or len({move.where for move in moves}) < len(moves):
        raise bad_request("plan: the positions of a preview were expected, each with topic, partition, was and to")
    at = {item: found.offset for item, found in (await admin.group_offsets(group)).items()}
    stale = [move for move in moves if at.get(move.where) != move.was]
    if stale:
        raise Declined(
            409,
            "conflict",
            f"group {group!r} stands elsewhere than when this was looked at, in {count('partition', len(stale))}",
            "look at it anew",
        )
    return sorted(moves, key=lambda move: move.where)


def _move(given: Mapping[str, Any]) -> Reposition:
    topic, partition, was, to = given["topic"], given["partition"], given["was"], whole(given["to"])
    number = None if was is None else whole(was)
    if (
        not isinstance(topic, str)
        or whole(partition, INT32_MAX) is None
        or to is None
        or (number is None) != (was is None)
    ):
        raise ValueError("no move")
    return Reposition(topic, partition, number, to)


def _point(text: str) -> str:
    """A place as the command line names it."""
    kind, colon, rest = text.partition(":")
    if colon and kind == "offset":
        return rest
    if colon and kind == "time":
        return f"@{rest}"
    return _WORDS.get(text, text)


def _told(moves: Sequence[Reposition]) -> dict[str, Any]:
    """Each move with the records that are read again (below zero) or passed over."""
    positions, replayed, skipped = [], 0, 0
    for move in moves:
        steps = None if move.was is None or move.to is None else move.to - move.was
        replayed += max(-(steps or 0), 0)
        skipped += max(steps or 0, 0)
        positions.append(
            {
                "topic": move.topic,
                "partition": move.partition,
                "was": None if move.was is None else str(move.was),
                "to": None if move.to is None else str(move.to),
                "records": None if steps is None else str(steps),
            }
        )
    return {"positions": positions, "replayed": str(replayed), "skipped": str(skipped)}


async def _refuse_members(admin: Admin, group: str) -> None:
    """A group that somebody reads with would read on from where it is. One that does not exist yet has nobody."""
    try:
        info = await admin.describe_group(group)
    except ClientError as failure:
        if failure.error is not GROUP_ID_NOT_FOUND:
            raise
        return
    if info.members:
        raise Declined(
            409,
            "group_active",
            f"group {group!r} has {count('member', len(info.members))}; it is moved when it has none",
            "stop its members first",
            group=group,
            members=len(info.members),
        )


def _chosen(given: Any) -> Chosen:
    """`{"orders": [0, 1], "clicks": []}`; an empty list means all partitions."""
    if given is None:
        return {}
    fits = isinstance(given, dict) and all(
        isinstance(parts, list) and all(whole(part, INT32_MAX) is not None for part in parts)
        for parts in given.values()
    )
    if not fits:
        raise bad_request('topics: an object was expected, as in {"orders": [0, 1]}')
    return {str(topic): list(parts) for topic, parts in given.items()}


def _topic_options(chosen: Chosen) -> list[str]:
    return [
        f"--topic={topic}:{','.join(map(str, parts))}" if parts else f"--topic={topic}"
        for topic, parts in chosen.items()
    ]
