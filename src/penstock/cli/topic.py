"""`penstock topic`: list, create, describe, alter, delete, add-partitions, trim."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from penstock.cli.options import connection_options, examples, format_option, pairs, yes_option
from penstock.cli.output import show, table
from penstock.model.units import count

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.client.admin import Admin, TopicInfo

EVERYTHING = -1
"""Trimming to here moves the log start to the high watermark."""


@click.group()
def topic() -> None:
    """List, create, describe, change and delete topics."""


@topic.command("list", epilog=examples("penstock topic list", "penstock topic list --format json"))
@click.option("--internal", is_flag=True, help="Show topics of the platform itself too.")
@format_option
@connection_options
def list_topics(internal: bool, style: str, connection: Connection) -> None:
    """List topics with their partitions and replicas."""
    from penstock.cli.connection import administer

    topics = administer(connection, lambda admin: admin.topics(internal=internal))
    data = [{"name": t.name, "partitions": len(t.partitions), "replication": t.replication, "id": t.id} for t in topics]
    rows = [(t.name, len(t.partitions), t.replication) for t in topics]
    show(data, style, table(("NAME", "PARTITIONS", "REPLICAS"), rows) if rows else "")
    if not rows:
        click.echo("no topics yet; `penstock topic create NAME` makes one", err=True)


@topic.command(epilog=examples("penstock topic create payments -p 6 -c retention.ms=7d -c retention.bytes=1GiB"))
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
@connection_options
def create(
    name: str,
    partitions: int | None,
    replicas: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    dry_run: bool,
    style: str,
    connection: Connection,
) -> None:
    """Create the topic NAME."""
    from penstock.cli.connection import administer
    from penstock.cli.suggesting import suggesting
    from penstock.client.errors import ClientError
    from penstock.model.errors import TOPIC_ALREADY_EXISTS

    settings = pairs(configs)

    async def work(admin: Admin) -> tuple[str, bool]:
        """(id of the topic, whether it is new)"""
        try:
            async with suggesting(admin, configs=settings):
                return await admin.create_topic(name, partitions, replicas, settings, validate_only=dry_run), True
        except ClientError as refusal:
            if refusal.error is not TOPIC_ALREADY_EXISTS or not if_not_exists:
                raise
            found = await admin.describe_topic(name, offsets=False, configs=False)
            return found.id, False

    topic_id, new = administer(connection, work)
    created = new and not dry_run
    show({"name": name, "id": topic_id if created or not new else None, "created": created}, style, "")
    if not new:
        click.echo(f"{name} is there already", err=True)
    else:
        click.echo(f"created {name}" if created else f"{name} could be created", err=True)


@topic.command(epilog=examples("penstock topic describe clicks"))
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@format_option
@connection_options
def describe(names: tuple[str, ...], style: str, connection: Connection) -> None:
    """Show partitions, leaders, in-sync replicas, offsets and changed configs.

    LSO, the last stable offset, is where readers of committed records end. It is shown where it differs from END: a
    transaction is open there.
    """
    from penstock.cli.connection import administer
    from penstock.cli.suggesting import suggesting

    async def work(admin: Admin) -> list[TopicInfo]:
        async with suggesting(admin, topics=names):
            return list((await admin.describe_topics(names)).checked().values())

    topics = administer(connection, work)
    show([asdict(found) for found in topics], style, "\n\n".join(map(_description, topics)))


def _description(found: TopicInfo) -> str:
    size = f"{count('partition', len(found.partitions))}, {count('replica', found.replication)}"
    lines = [f"{found.name}  (id {found.id}, {size})"]
    lines += [f"  {name} = {value}" for name, value in sorted(found.configs.items())]
    rows = [
        [p.partition, p.leader, p.leader_epoch, _nodes(p.replicas), _nodes(p.isr), p.start, p.end]
        for p in found.partitions
    ]
    headings = ["PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "START", "END"]
    if any(p.last_stable < p.end for p in found.partitions):
        headings.append("LSO")
        rows = [[*row, p.last_stable] for row, p in zip(rows, found.partitions, strict=True)]
    return "\n".join(lines) + "\n" + table(headings, rows)


def _nodes(nodes: list[int]) -> str:
    return ",".join(map(str, nodes))


@topic.command(epilog=examples("penstock topic alter clicks -c retention.ms=12h"))
@click.argument("name")
@click.option("-c", "--config", "configs", multiple=True, metavar="KEY=VALUE", help="Set a config; repeatable.")
@click.option("-d", "--delete-config", "deleted", multiple=True, metavar="KEY", help="Back to the default; repeatable.")
@connection_options
def alter(name: str, configs: tuple[str, ...], deleted: tuple[str, ...], connection: Connection) -> None:
    """Change the configs of NAME."""
    from penstock.cli.config_names import check_taken_back
    from penstock.cli.connection import administer
    from penstock.cli.suggesting import suggesting

    changes: dict[str, str | None] = {**pairs(configs), **dict.fromkeys(deleted)}
    if not changes:
        raise click.UsageError("nothing to change: give -c KEY=VALUE or -d KEY")

    async def work(admin: Admin) -> None:
        async with suggesting(admin, topics=[name], configs=changes):
            await check_taken_back(admin, name, deleted)
            await admin.configure_topic(name, changes)

    administer(connection, work)
    click.echo(f"changed {', '.join(sorted(changes))} of {name}", err=True)


@topic.command(epilog=examples("penstock topic delete payments --yes"))
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@yes_option
@connection_options
def delete(names: tuple[str, ...], yes: bool, connection: Connection) -> None:
    """Delete topics with all their records."""
    from penstock.cli.connection import administer
    from penstock.cli.suggesting import suggesting

    if not yes:
        click.confirm(f"Delete {', '.join(names)} and every record in it?", abort=True, err=True)

    async def work(admin: Admin) -> None:
        for name in names:
            async with suggesting(admin, topics=[name]):
                await admin.delete_topic(name)
            click.echo(f"deleted {name}", err=True)

    administer(connection, work)


@topic.command("add-partitions", epilog=examples("penstock topic add-partitions clicks -p 12"))
@click.argument("name")
@click.option(
    "-p", "--partitions", "total", type=click.IntRange(min=1), required=True, help="The new total number of partitions."
)
@connection_options
def add_partitions(name: str, total: int, connection: Connection) -> None:
    """Raise the number of partitions of NAME. Keys may then map to other partitions than before."""
    from penstock.cli.connection import administer
    from penstock.cli.suggesting import suggesting

    async def work(admin: Admin) -> None:
        async with suggesting(admin, topics=[name]):
            await admin.grow_topic(name, total)

    administer(connection, work)
    click.echo(f"{name} has {count('partition', total)} now", err=True)


@topic.command(epilog=examples("penstock topic trim clicks --partition 0 --before 10 --yes"))
@click.argument("name")
@click.option(
    "-o", "--before", type=click.IntRange(min=0), help="Delete records before this offset; all records if not given."
)
@click.option(
    "-p", "--partition", "chosen", type=click.IntRange(min=0), multiple=True, help="Only this partition; repeatable."
)
@yes_option
@format_option
@connection_options
def trim(name: str, before: int | None, chosen: tuple[int, ...], yes: bool, style: str, connection: Connection) -> None:
    """Delete the oldest records of NAME by moving its log start."""
    from penstock.cli.connection import administer
    from penstock.cli.suggesting import suggesting

    if not yes:
        what = "every record" if before is None else f"the records before offset {before}"
        click.confirm(f"Delete {what} of {name}?", abort=True, err=True)

    async def work(admin: Admin) -> dict[int, int]:
        partitions = chosen
        async with suggesting(admin, topics=[name]):
            if not partitions:
                found = await admin.describe_topic(name, offsets=False, configs=False)
                partitions = tuple(p.partition for p in found.partitions)
            return await admin.trim_topic(name, dict.fromkeys(partitions, EVERYTHING if before is None else before))

    starts = administer(connection, work)
    data = [{"partition": index, "start": start} for index, start in sorted(starts.items())]
    show(data, style, table(("PARTITION", "START"), sorted(starts.items())))
