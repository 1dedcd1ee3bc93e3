"""`penstock topic`: list, create, describe, alter, delete, add-partitions, trim."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

import click

from penstock.cli.output import bootstrap_option, format_option, pairs, show, table

if TYPE_CHECKING:
    from penstock.client.admin import TopicAdmin, TopicInfo

T = TypeVar("T")


@click.group()
def topic() -> None:
    """List, create, describe, change and delete topics."""


def _run(bootstrap: str, work: Callable[[TopicAdmin], Awaitable[T]]) -> T:
    from penstock.client.admin import TopicAdmin
    from penstock.client.cluster_view import ClusterView, default_client_id

    async def main() -> T:
        async with ClusterView(bootstrap, client_id=default_client_id()) as view:
            return await work(TopicAdmin(view))

    try:
        return asyncio.run(main())
    except ValueError as wrong:
        raise click.BadParameter(str(wrong), param_hint="--bootstrap") from None


@topic.command("list")
@click.option("--internal", is_flag=True, help="Show topics of the platform itself too.")
@format_option
@bootstrap_option
def list_topics(internal: bool, style: str, bootstrap: str) -> None:
    """List topics with their partitions and replicas."""
    topics = _run(bootstrap, lambda admin: admin.topics(internal=internal))
    data = [{"name": t.name, "partitions": len(t.partitions), "replication": t.replication, "id": t.id} for t in topics]
    rows = [(t.name, len(t.partitions), t.replication) for t in topics]
    show(data, style, table(("NAME", "PARTITIONS", "REPLICAS"), rows) if rows else "")
    if not rows:
        click.echo("no topics yet; `penstock topic create NAME` makes one", err=True)


@topic.command()
@click.argument("name")
@click.option(
    "-p", "--partitions", type=int, default=-1, help="Number of partitions; the broker's default if not given."
)
@click.option("-r", "--replicas", type=int, default=-1, help="Replicas of each; the broker's default if not given.")
@click.option("-c", "--config", "configs", multiple=True, metavar="KEY=VALUE", help="A topic config; repeatable.")
@click.option("--if-not-exists", is_flag=True, help="Succeed when the topic is there already.")
@click.option("--dry-run", is_flag=True, help="Check everything, create nothing.")
@format_option
@bootstrap_option
def create(
    name: str,
    partitions: int,
    replicas: int,
    configs: tuple[str, ...],
    if_not_exists: bool,
    dry_run: bool,
    style: str,
    bootstrap: str,
) -> None:
    """Create the topic NAME."""
    from penstock.model.errors import TOPIC_ALREADY_EXISTS, Refused

    settings = pairs(configs)
    try:
        made = _run(bootstrap, lambda admin: admin.create(name, partitions, replicas, settings, validate_only=dry_run))
    except Refused as refusal:
        if refusal.error is TOPIC_ALREADY_EXISTS and if_not_exists:
            click.echo(f"{name} is there already", err=True)
            return
        raise
    show({"name": name, "id": made, "dry_run": dry_run}, style, "")
    if style == "text":
        click.echo(f"{name} could be created" if dry_run else f"created {name}", err=True)


@topic.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@format_option
@bootstrap_option
def describe(names: tuple[str, ...], style: str, bootstrap: str) -> None:
    """Show partitions, leaders, in-sync replicas, offsets and changed configs."""
    topics = _run(bootstrap, lambda admin: admin.describe(names))
    show([asdict(found) for found in topics], style, "\n\n".join(map(_description, topics)))


def _description(found: TopicInfo) -> str:
    lines = [f"{found.name}  (id {found.id}, {len(found.partitions)} partitions, {found.replication} replicas)"]
    lines += [f"  {name} = {value}" for name, value in sorted(found.configs.items())]
    rows = [
        (p.partition, p.leader, p.leader_epoch, _nodes(p.replicas), _nodes(p.isr), p.start, p.end)
        for p in found.partitions
    ]
    return "\n".join(lines) + "\n" + table(("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "START", "END"), rows)


def _nodes(nodes: list[int]) -> str:
    return ",".join(map(str, nodes))


@topic.command()
@click.argument("name")
@click.option("-c", "--config", "configs", multiple=True, metavar="KEY=VALUE", help="Set a config; repeatable.")
@click.option("-d", "--delete-config", "deleted", multiple=True, metavar="KEY", help="Back to the default; repeatable.")
@bootstrap_option
def alter(name: str, configs: tuple[str, ...], deleted: tuple[str, ...], bootstrap: str) -> None:
    """Change the configs of NAME."""
    changes: dict[str, str | None] = {**pairs(configs), **dict.fromkeys(deleted)}
    if not changes:
        raise click.UsageError("nothing to change: give -c KEY=VALUE or -d KEY")
    _run(bootstrap, lambda admin: admin.configure(name, changes))
    click.echo(f"changed {', '.join(sorted(changes))} of {name}", err=True)


@topic.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@bootstrap_option
def delete(names: tuple[str, ...], yes: bool, bootstrap: str) -> None:
    """Delete topics with all their records."""
    if not yes:
        click.confirm(f"Delete {', '.join(names)} and every record in it?", abort=True, err=True)

    async def work(admin: TopicAdmin) -> None:
        for name in names:
            await admin.delete(name)

    _run(bootstrap, work)
    click.echo(f"deleted {', '.join(names)}", err=True)


@topic.command("add-partitions")
@click.argument("name")
@click.option("-p", "--partitions", "total", type=int, required=True, help="The new total number of partitions.")
@bootstrap_option
def add_partitions(name: str, total: int, bootstrap: str) -> None:
    """Raise the number of partitions of NAME. Keys may then map to other partitions than before."""
    _run(bootstrap, lambda admin: admin.grow(name, total))
    click.echo(f"{name} has {total} partitions now", err=True)


@topic.command()
@click.argument("name")
@click.option("-o", "--before", type=int, default=-1, help="Delete records before this offset; all if not given.")
@click.option("-p", "--partition", "chosen", type=int, multiple=True, help="Only this partition; repeatable.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@format_option
@bootstrap_option
def trim(name: str, before: int, chosen: tuple[int, ...], yes: bool, style: str, bootstrap: str) -> None:
    """Delete the oldest records of NAME by moving its log start."""
    if not yes:
        what = "every record" if before < 0 else f"the records before offset {before}"
        click.confirm(f"Delete {what} of {name}?", abort=True, err=True)

    async def work(admin: TopicAdmin) -> dict[int, int]:
        partitions = chosen
        if not partitions:
            (found,) = await admin.describe([name], offsets=False)
            partitions = tuple(p.partition for p in found.partitions)
        return await admin.trim(name, dict.fromkeys(partitions, before))

    starts = _run(bootstrap, work)
    data = [{"partition": index, "start": start} for index, start in sorted(starts.items())]
    show(data, style, table(("PARTITION", "START"), sorted(starts.items())))
