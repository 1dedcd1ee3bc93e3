"""`penstock cluster partitions`: list, move, status, cancel, elect, balance."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.cluster_choice import chosen, counted, node_list, parse_choices
from penstock.cli.cluster_rearrange import balance, move
from penstock.cli.options import connection_options, examples, format_option, yes_option
from penstock.cli.output import show, table
from penstock.model.units import bytes_text

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.client.admin import Admin, PartitionInfo, Reassignment, Results
    from penstock.model.ids import TopicPartition

CHOICE = "TOPIC[:PARTITION]..."


@click.group()
def partitions() -> None:
    """See where partitions lie, move them, elect their leaders."""


def _is_behind(found: PartitionInfo) -> bool:
    return len(found.isr) < len(found.replicas)


def _is_led_by_another(found: PartitionInfo) -> bool:
    return 0 <= found.leader != found.replicas[0]


_FILTERS = {
    "leaderless": (lambda found: found.leader < 0, "every partition has a leader"),
    "under-replicated": (_is_behind, "every replica is in sync"),
    "not-preferred": (_is_led_by_another, "every partition is led by its preferred leader"),
}
"""Which partitions are meant, and what to say when there are none."""


@partitions.command(
    "list",
    epilog=examples(
        "penstock cluster partitions list orders", "penstock cluster partitions list --only under-replicated"
    ),
)
@click.argument("choices", nargs=-1, metavar=f"[{CHOICE}]")
@click.option(
    "--only",
    type=click.Choice(list(_FILTERS)),
    help="Those without a leader, with replicas that lag, or led by another than the preferred leader.",
)
@click.option("--internal", is_flag=True, help="Those of the platform's own topics too.")
@format_option
@connection_options
def list_partitions(
    choices: tuple[str, ...], only: str | None, internal: bool, style: str, connection: Connection
) -> None:
    """List partitions with leader, replicas and in-sync replicas; of all topics if none is named."""
    from penstock.cli.connection import administer

    wanted = parse_choices(choices)
    topics = administer(connection, lambda admin: admin.topics(internal=internal or bool(wanted)))
    found = chosen(topics, wanted)
    keep, none_words = _FILTERS[only] if only else (lambda _: True, "there are no partitions")
    kept = {item: info for item, info in found.items() if keep(info)}
    data = [
        {
            "topic": item.topic,
            "partition": item.partition,
            "leader": info.leader,
            "leader_epoch": info.leader_epoch,
            "replicas": info.replicas,
            "isr": info.isr,
        }
        for item, info in kept.items()
    ]
    rows = [
        (item.topic, item.partition, info.leader if info.leader >= 0 else None, node_list(info.replicas),
         node_list(info.isr), _state(info))
        for item, info in kept.items()
    ]  # fmt: skip
    show(data, style, table(("TOPIC", "PARTITION", "LEADER", "REPLICAS", "ISR", "STATE"), rows) if rows else "")
    if not rows:
        click.echo(none_words, err=True)


def _state(info: PartitionInfo) -> str:
    if info.leader < 0:
        return "no leader"
    return "under-replicated" if _is_behind(info) else "ok"


@partitions.command(
    epilog=examples("penstock cluster partitions status", "penstock cluster partitions status --wait --format json")
)
@click.option("--wait", is_flag=True, help="Return when nothing moves any more.")
@format_option
@connection_options
def status(wait: bool, style: str, connection: Connection) -> None:
    """Show the moves that are under way and how much of them is copied."""
    from penstock.cli.connection import administer

    async def work(admin: Admin) -> tuple[dict[TopicPartition, Reassignment], Mapping[TopicPartition, int], Any]:
        found = await admin.list_partition_reassignments()
        if wait and found:
            await _until_still(admin, len(found))
            return {}, {}, {}
        if not found:
            return {}, {}, {}
        return found, *await _copied(admin, found)

    found, sizes, copied = administer(connection, work)
    data = [
        {
            "topic": item.topic,
            "partition": item.partition,
            "replicas": each.replicas,
            "adding": each.adding,
            "removing": each.removing,
            "size_bytes": sizes.get(item, 0),
            "copied_bytes": copied.get(item, 0),
        }
        for item, each in found.items()
    ]
    rows = [
        (item.topic, item.partition, node_list(each.target), node_list(each.adding), node_list(each.removing),
         f"{bytes_text(copied.get(item, 0))} of {bytes_text(len(each.adding) * sizes.get(item, 0))}")
        for item, each in found.items()
    ]  # fmt: skip
    show(data, style, table(("TOPIC", "PARTITION", "TARGET", "ADDING", "REMOVING", "COPIED"), rows) if rows else "")
    if not rows:
        click.echo("nothing is being moved", err=True)


async def _until_still(admin: Admin, at_first: int) -> None:
    import asyncio

    from penstock.cli.moving_bar import Bar
    from penstock.operations.moving.carrying_out import LOOK_EVERY_S, Tally

    bar = Bar("moving")
    try:
        while found := await admin.list_partition_reassignments():
            bar(Tally(at_first, 0, max(0, at_first - len(found)), waiting_for=list(found)))
            await asyncio.sleep(LOOK_EVERY_S)
    finally:
        bar.close()


async def _copied(
    admin: Admin, found: Mapping[TopicPartition, Reassignment]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """(size of each partition, bytes that its new replicas have together)."""
    from penstock.operations.moving.carrying_out import partition_sizes

    alive = [broker.id for broker in (await admin.describe_cluster()).brokers if not broker.fenced]
    log_dirs = (await admin.describe_log_dirs(alive, topics=sorted({item.topic for item in found}))).done
    per_broker = {node: partition_sizes({node: dirs}) for node, dirs in log_dirs.items()}
    copied = {item: sum(per_broker.get(node, {}).get(item, 0) for node in each.adding) for item, each in found.items()}
    return partition_sizes(log_dirs), copied


@partitions.command(epilog=examples("penstock cluster partitions cancel --yes"))
@click.argument("choices", nargs=-1, metavar=f"[{CHOICE}]")
@yes_option
@format_option
@connection_options
def cancel(choices: tuple[str, ...], yes: bool, style: str, connection: Connection) -> None:
    """Cancel moves that are under way, all if none is named: replicas stay where they were, copies go."""
    from penstock.cli.connection import administer

    wanted = parse_choices(choices)

    async def work(admin: Admin) -> list[TopicPartition]:
        found = await admin.list_partition_reassignments()
        if wanted:
            named = chosen(await admin.topics(internal=True), wanted)
            found = {item: each for item, each in found.items() if item in named}
        if not found:
            return []
        if not yes:
            click.confirm(f"Cancel the moves of {counted(len(found), 'partition')}?", abort=True, err=True)
        results = await admin.alter_partition_reassignments(dict.fromkeys(found))
        return sorted(_without_ended(results).done)

    cancelled = administer(connection, work)
    show([{"topic": item.topic, "partition": item.partition} for item in cancelled], style, "")
    names = ", ".join(map(str, cancelled))
    click.echo(f"cancelled the moves of {names}" if cancelled else "nothing is being moved", err=True)


def _without_ended(results: Results[TopicPartition, None]) -> Results[TopicPartition, None]:
    """A move that ended before it could be cancelled is no failure."""
    from penstock.model.errors import NO_REASSIGNMENT_IN_PROGRESS

    for failure in results.failed.values():
        if failure.error is not NO_REASSIGNMENT_IN_PROGRESS:
            raise failure
    return results


@partitions.command(
    epilog=examples("penstock cluster partitions elect", "penstock cluster partitions elect orders --unclean --yes")
)
@click.argument("choices", nargs=-1, metavar=f"[{CHOICE}]")
@click.option(
    "--unclean",
    is_flag=True,
    help="Give those without a leader any live replica. Records that only the others have are lost.",
)
@yes_option
@format_option
@connection_options
def elect(choices: tuple[str, ...], unclean: bool, yes: bool, style: str, connection: Connection) -> None:
    """Let the preferred leaders lead, of all partitions if none is named."""
    from penstock.cli.connection import administer

    wanted = parse_choices(choices)
    if unclean and not yes:
        click.confirm("Elect leaders that may lack acknowledged records? Those are lost then.", abort=True, err=True)

    async def work(admin: Admin) -> Results[TopicPartition, bool]:
        found = list(chosen(await admin.topics(internal=True), wanted)) if wanted else None
        return await admin.elect_leaders(found, unclean=unclean)

    results = administer(connection, work)
    elected = sorted(item for item, needed in results.done.items() if needed)
    data = {
        "elected": [{"topic": item.topic, "partition": item.partition} for item in elected],
        "failed": [
            {"topic": item.topic, "partition": item.partition, "error": str(why)}
            for item, why in sorted(results.failed.items())
        ],
    }
    show(data, style, "\n".join(map(str, elected)))
    words = (
        f"elected leaders of {counted(len(elected), 'partition')}" if elected else "no partition needed another leader"
    )
    click.echo(words, err=True)
    for item, why in sorted(results.failed.items()):
        click.echo(f"{item} has no new leader: {why}", err=True)
    if results.failed:
        from penstock.cli.failures import FAILED

        click.get_current_context().exit(FAILED)


def alias(command: click.Command, *shown: str) -> click.Command:
    """The same command under a shorter path, with examples of that."""
    twin = copy(command)
    twin.epilog = examples(*shown)
    return twin


partitions.add_command(move)
partitions.add_command(balance)
