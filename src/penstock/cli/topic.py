"""`penstock topic`: list, create, describe, alter, delete, add-partitions, trim."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

import click

from penstock.cli.options import bootstrap_option, format_option, pairs
from penstock.cli.output import show, table

if TYPE_CHECKING:
    from penstock.client.admin import TopicAdmin, TopicInfo

T = TypeVar("T")

EVERYTHING = -1
"""Trimming to here moves the log start to the high watermark."""


@click.group()
def topic() -> None:
    """List, create, describe, change and delete topics."""


def _run(bootstrap: str, work: Callable[[TopicAdmin], Awaitable[T]]) -> T:
    import asyncio

    from penstock.client.admin import TopicAdmin
    from penstock.client.cluster_view import ClusterView, default_client_id

    try:
        view = ClusterView(bootstrap, client_id=default_client_id())
    except ValueError as wrong:
        raise click.BadParameter(str(wrong), param_hint="--bootstrap") from None

    async def main() -> T:
        async with view:
            return await work(TopicAdmin(view))

    return asyncio.run(main())


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
    "-p", "--partitions", type=click.IntRange(min=1), help="Number of partitions; the broker's default if not given."
)
@click.option(
    "-r", "--replicas", type=click.IntRange(min=1), help="Replicas of each; the broker's default if not given."
)
@click.option("-c", "--config", "configs", multiple=True, metavar="KEY=VALUE", help="A topic config; repeatable.")
@click.option("--if-not-exists", is_flag=True, help="Succeed when the topic is there already.")
@click.option("--dry-run", is_flag=True, help="Check everything, create nothing.")
@format_option
@bootstrap_option
def create(
    name: str,
    partitions: int | None,
    replicas: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    dry_run: bool,
    style: str,
    bootstrap: str,
) -> None:
    """Create the topic NAME."""
    from penstock.model.errors import TOPIC_ALREADY_EXISTS, Refused

    settings = pairs(configs)

    async def work(admin: TopicAdmin) -> tuple[str, bool]:
        """(id of the topic, whether it is new)"""
        try:
            return await admin.create(name, partitions, replicas, settings, validate_only=dry_run), True
        except Refused as refusal:
            if refusal.error is not TOPIC_ALREADY_EXISTS or not if_not_exists:
                raise
            (found,) = await admin.describe([name], offsets=False)
            return found.id, False

    topic_id, new = _run(bootstrap, work)
    created = new and not dry_run
    show({"name": name, "id": topic_id if created or not new else None, "created": created}, style, "")
    if not new:
        click.echo(f"{name} is there already", err=True)
    else:
        click.echo(f"created {name}" if created else f"{name} could be created", err=True)


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
            click.echo(f"deleted {name}", err=True)

    _run(bootstrap, work)


@topic.command("add-partitions")
@click.argument("name")
@click.option(
    "-p", "--partitions", "total", type=click.IntRange(min=1), required=True, help="The new total number of partitions."
)
@bootstrap_option
def add_partitions(name: str, total: int, bootstrap: str) -> None:
    """Raise the number of partitions of NAME. Keys may then map to other partitions than before."""
    _run(bootstrap, lambda admin: admin.grow(name, total))
    click.echo(f"{name} has {total} partitions now", err=True)


@topic.command()
@click.argument("name")
@click.option(
    "-o", "--before", type=click.IntRange(min=0), help="Delete records before this offset; all records if not given."
)
@click.option(
    "-p", "--partition", "chosen", type=click.IntRange(min=0), multiple=True, help="Only this partition; repeatable."
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@format_option
@bootstrap_option
def trim(name: str, before: int | None, chosen: tuple[int, ...], yes: bool, style: str, bootstrap: str) -> None:
    """Delete the oldest records of NAME by moving its log start."""
    if not yes:
        what = "every record" if before is None else f"the records before offset {before}"
        click.confirm(f"Delete {what} of {name}?", abort=True, err=True)

    async def work(admin: TopicAdmin) -> dict[int, int]:
        partitions = chosen
        if not partitions:
            (found,) = await admin.describe([name], offsets=False)
            partitions = tuple(p.partition for p in found.partitions)
        return await admin.trim(name, dict.fromkeys(partitions, EVERYTHING if before is None else before))

    starts = _run(bootstrap, work)
    data = [{"partition": index, "start": start} for index, start in sorted(starts.items())]
    show(data, style, table(("PARTITION", "START"), sorted(starts.items())))
