"""`penstock group`: list, describe, lag, explain, seek, offset-delete, delete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.group_explain import explain
from penstock.cli.options import act_option, connection_options, examples, format_option
from penstock.cli.output import show, table
from penstock.cli.watching import interval_option, watch_option
from penstock.model.units import count

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.client.admin import Admin, GroupInfo, PartitionLag
    from penstock.operations.group_plans import Reposition

topics_option = click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:P,P]",
    help="Only this topic, or these partitions of it; repeatable.",
)


@contextmanager
def _wrong_choices_as_usage() -> Iterator[None]:
    """What plans do not understand is a wrong option here."""
    from penstock.operations.group_plans import BadChoice

    try:
        yield
    except BadChoice as wrong:
        raise click.BadParameter(str(wrong), param_hint=wrong.option) from None


@click.group()
def group() -> None:
    """See consumer groups, how far behind they are, and move or forget their positions."""


@group.command("list", epilog=examples("penstock group list", "penstock group list --state stable --type consumer"))
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only groups in this state; repeatable.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only classic, consumer …; repeatable.")
@format_option
@connection_options
def list_groups(states: tuple[str, ...], types: tuple[str, ...], style: str, connection: Connection) -> None:
    """List groups with their state, type and coordinator."""
    from penstock.cli.connection import administer

    # Brokers compare states letter by letter; people do not.
    wanted = {state.lower() for state in states}
    found = administer(connection, lambda admin: admin.groups(types=[kind.lower() for kind in types]))
    groups = [each for each in found if not wanted or each.state.lower() in wanted]
    rows = [(g.id, g.state, g.type, g.protocol_type, g.coordinator) for g in groups]
    headings = ("GROUP", "STATE", "TYPE", "PROTOCOL", "COORDINATOR")
    show([asdict(each) for each in groups], style, table(headings, rows) if rows else "")
    if not rows:
        click.echo("no groups", err=True)


@group.command(epilog=examples("penstock group describe billing"))
@click.argument("groups", nargs=-1, required=True, metavar="GROUP...")
@format_option
@connection_options
def describe(groups: tuple[str, ...], style: str, connection: Connection) -> None:
    """Show state, coordinator, assignor, epochs, members and what each of them reads."""
    from penstock.cli.connection import administer
    from penstock.cli.suggesting import suggesting

    async def work(admin: Admin) -> list[tuple[GroupInfo, list[PartitionLag]]]:
        async with suggesting(admin, groups=groups):
            described = (await admin.describe_groups(groups)).checked()
        return [(described[name], await admin.group_lag(name)) for name in groups]

    found = administer(connection, work)
    data = [{**asdict(info), "lag": _total(lags), "partitions": [asdict(lag) for lag in lags]} for info, lags in found]
    show(data, style, "\n\n".join(_description(info, lags) for info, lags in found))


def _description(info: GroupInfo, lags: list[PartitionLag]) -> str:
    lines = [
        f"{info.id}  ({info.type}, {info.state}, {count('member', len(info.members))}, lag {_total(lags)})",
        f"  coordinator  {info.coordinator}",
        f"  assignor     {info.assignor or '-'}",
    ]
    if info.type == "consumer":
        lines.append(f"  epoch        {info.epoch} (assignment {info.assignment_epoch})")
    for member in info.members:
        lines += ["", f"  {member.id}"]
        lines.append(f"    client      {member.client_id} at {member.host.lstrip('/')}")
        if member.instance_id:
            lines.append(f"    instance    {member.instance_id}")
        if member.epoch >= 0:
            lines.append(f"    epoch       {member.epoch}")
        lines.append(f"    subscribed  {member.pattern or ', '.join(member.subscription) or '-'}")
        lines.append(f"    reads       {_assignment(member.assignment)}")
    if lags:
        lines += ["", _lag_table(lags)]
    return "\n".join(lines)


def _assignment(assignment: dict[str, list[int]]) -> str:
    parts = [f"{topic}:{','.join(map(str, partitions))}" for topic, partitions in sorted(assignment.items())]
    return "  ".join(parts) or "nothing"


@group.command(
    epilog=examples("penstock group lag", "penstock group lag billing", "penstock group lag billing --watch")
)
@click.argument("groups", nargs=-1, metavar="[GROUP]...")
@click.option("--read-committed", is_flag=True, help="They read no open transactions: count up to the first of them.")
@watch_option
@interval_option
@format_option
@connection_options
def lag(
    groups: tuple[str, ...],
    read_committed: bool,
    watch: bool,
    interval_s: float,
    style: str,
    connection: Connection,
) -> None:
    """Show how far groups are behind the ends of what they read: of all groups the totals, of named ones everything.

    Groups of Spark queries say themselves whether they read committed records only; of others you know.
    """
    from penstock.cli.connection import administer
    from penstock.cli.suggesting import suggesting
    from penstock.cli.watching import watch as keep_watching

    async def work(admin: Admin) -> None:
        async def look() -> tuple[Any, str]:
            names = groups or [each.id for each in await admin.groups()]
            async with suggesting(admin, groups=groups):
                found = [(name, await admin.group_lag(name, read_committed=read_committed)) for name in names]
            data = [
                {"group": name, "lag": _total(lags), "partitions": [asdict(each) for each in lags]}
                for name, lags in found
            ]
            if not groups:
                totals = [(name, _total(lags), len(lags)) for name, lags in found]
                return data, table(("GROUP", "LAG", "PARTITIONS"), totals) if totals else "no groups"
            texts = [f"{name}  (lag {_total(lags)})\n{_lag_table(lags)}" for name, lags in found]
            return data, "\n\n".join(texts)

        if watch:
            await keep_watching(look, style, interval_s, lambda: False)
        else:
            data, text = await look()
            show(data, style, text)

    try:
        administer(connection, work)
    except KeyboardInterrupt:
        if not watch:  # where it is the way to end
            raise


def _lag_table(lags: list[PartitionLag]) -> str:
    rows = [
        (
            each.topic,
            each.partition,
            each.committed,
            each.start,
            each.end,
            each.lag,
            each.client_id,
        )
        for each in lags
    ]
    return table(("TOPIC", "PARTITION", "COMMITTED", "START", "END", "LAG", "CLIENT"), rows)


def _total(lags: list[PartitionLag]) -> int:
    return sum(each.lag or 0 for each in lags)


@group.command(
    epilog=examples(
        "penstock group seek billing --to start",
        "penstock group seek billing --to @-1h --topic clicks",
        "penstock group seek audit --to-group billing --yes",
    )
)
@click.argument("name", metavar="GROUP")
@click.option("--to", "point", metavar="WHERE", help="start, end, an offset, +N, -N or @TIME, as for `consume -o`.")
@click.option("--to-group", metavar="GROUP", help="Where this other group is.")
@click.option(
    "--to-file", type=click.File(), metavar="FILE", help="Lines of topic, partition and offset; - is standard input."
)
@topics_option
@act_option
@format_option
@connection_options
@_wrong_choices_as_usage()
def seek(
    name: str,
    point: str | None,
    to_group: str | None,
    to_file: Any,
    topics: tuple[str, ...],
    act: bool,
    style: str,
    connection: Connection,
) -> None:
    """Move the positions of GROUP, which must have no members. Prints the plan; --yes carries it out.

    Without --topic all partitions that the group has a position in are moved.
    """
    from penstock.cli.connection import administer
    from penstock.operations import group_plans

    if sum(given is not None for given in (point, to_group, to_file)) != 1:
        raise click.UsageError("give one of --to, --to-group and --to-file")
    chosen = group_plans.parse_topics(topics)
    read = group_plans.parse_file(to_file.read()) if to_file is not None else None

    async def work(admin: Admin) -> list[Reposition]:
        if point is not None:
            moves = await group_plans.plan_point(admin, name, point, chosen)
        elif to_group is not None:
            moves = await group_plans.plan_group(admin, name, to_group, chosen)
        else:
            assert read is not None
            moves = await group_plans.plan_offsets(admin, name, read, chosen)
        if act:
            await group_plans.carry_out(admin, name, moves)
        return moves

    moves = administer(connection, work)
    _show_plan(moves, style, act, f"moved {name}", f"{name} was not moved")


def _show_plan(moves: list[Reposition], style: str, act: bool, done: str, not_done: str) -> None:
    rows = [(m.topic, m.partition, m.was, m.to) for m in moves]
    data = {"executed": act, "moves": [asdict(move) for move in moves]}
    show(data, style, table(("TOPIC", "PARTITION", "FROM", "TO"), rows) if rows else "")
    if not rows:
        click.echo("there is nothing to change", err=True)
    else:
        click.echo(done if act else f"{not_done}: this is the plan, --yes carries it out", err=True)


@group.command("offset-delete", epilog=examples("penstock group offset-delete billing --topic clicks:0"))
@click.argument("name", metavar="GROUP")
@topics_option
@act_option
@format_option
@connection_options
@_wrong_choices_as_usage()
def offset_delete(name: str, topics: tuple[str, ...], act: bool, style: str, connection: Connection) -> None:
    """Forget positions of GROUP in topics that no member reads. Prints the plan; --yes carries it out."""
    from penstock.cli.connection import administer
    from penstock.operations import group_plans

    if not topics:
        raise click.UsageError("say which positions: --topic TOPIC, or --topic TOPIC:PARTITION,PARTITION")
    chosen = group_plans.parse_topics(topics)

    async def work(admin: Admin) -> list[Reposition]:
        moves = await group_plans.plan_forgetting(admin, name, chosen)
        if act and moves:
            (await admin.delete_group_offsets(name, [move.where for move in moves])).checked()
        return moves

    moves = administer(connection, work)
    _show_plan(moves, style, act, f"forgot {count('position', len(moves))} of {name}", "nothing was forgotten")


@group.command(epilog=examples("penstock group delete audit", "penstock group delete audit --yes"))
@click.argument("groups", nargs=-1, required=True, metavar="GROUP...")
@act_option
@format_option
@connection_options
def delete(groups: tuple[str, ...], act: bool, style: str, connection: Connection) -> None:
    """Delete groups that have no members, with their positions. Prints the plan; --yes carries it out."""
    from penstock.cli.connection import administer
    from penstock.cli.suggesting import suggesting

    async def work(admin: Admin) -> list[dict[str, Any]]:
        async with suggesting(admin, groups=groups):
            described = (await admin.describe_groups(groups)).checked()
        plan = [
            {
                "group": name,
                "state": described[name].state,
                "members": len(described[name].members),
                "positions": len(await admin.group_offsets(name)),
            }
            for name in groups
        ]
        if act:
            (await admin.delete_groups(groups)).checked()
        return plan

    plan = administer(connection, work)
    rows = [tuple(each.values()) for each in plan]
    data = {"executed": act, "groups": plan}
    show(data, style, table(("GROUP", "STATE", "MEMBERS", "POSITIONS"), rows))
    names = ", ".join(groups)
    click.echo(f"deleted {names}" if act else "nothing was deleted: this is the plan, --yes carries it out", err=True)


group.add_command(explain)
