"""Rearranging a cluster: `cluster partitions move` and `balance`, and what decommissioning shares with them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from penstock.cli.cluster_choice import brokers as broker_ids
from penstock.cli.cluster_choice import chosen, counted, node_list, parse_choices, rate
from penstock.cli.options import connection_options, examples, format_option
from penstock.cli.output import show, table
from penstock.model.errors import PenstockError

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.client.admin import Admin
    from penstock.model.ids import TopicPartition
    from penstock.operations.moving.carrying_out import Pace
    from penstock.operations.moving.plan import Move

throttle_option = click.option(
    "--throttle",
    "bytes_per_s",
    callback=rate,
    metavar="RATE",
    help="The most that each broker gives and takes for it, such as 50MB (a second). Taken away in the end.",
)
at_once_option = click.option(
    "--at-once",
    type=click.IntRange(1, 1_000),
    default=20,
    show_default=True,
    help="How many partitions are copied at the same time.",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Show the plan, change nothing.")


@click.command(
    epilog=examples(
        "penstock cluster partitions move orders --to 1",
        "penstock cluster partitions move orders:0 orders:1 --to 1 --throttle 50MB",
    )
)
@click.argument("choices", nargs=-1, required=True, metavar="TOPIC[:PARTITION]...")
@click.option(
    "--to",
    callback=broker_ids,
    required=True,
    metavar="BROKERS",
    help="Where the replicas shall lie, such as 1,2,3. A partition that is named gets them in this order, preferred"
    " leader first; the partitions of a topic begin with a different one each, so that leaders are spread.",
)
@throttle_option
@at_once_option
@click.option("--wait", is_flag=True, help="Return when all is moved; a throttle implies it.")
@dry_run_option
@format_option
@connection_options
def move(
    choices: tuple[str, ...],
    to: tuple[int, ...],
    bytes_per_s: int | None,
    at_once: int,
    wait: bool,
    dry_run: bool,
    style: str,
    connection: Connection,
) -> None:
    """Move partitions to other brokers, also to more or fewer of them. They are read and written meanwhile."""
    from penstock.cli.connection import administer
    from penstock.operations.moving.carrying_out import Pace, begin
    from penstock.operations.moving.plan import moves

    wanted = parse_choices(choices)
    named = {(topic, index) for topic, index in wanted if index is not None}

    async def work(admin: Admin) -> list[Move]:
        await live_brokers(admin, to)
        found = chosen(await admin.topics(internal=True), wanted)
        after = {
            item: to if (item.topic, item.partition) in named else _turned(to, item.partition) for item in found
        }  # fmt: skip
        plan = moves({item: info.replicas for item, info in found.items()}, after)
        if dry_run:
            return plan
        if wait or bytes_per_s is not None:
            await carry_out_plan(admin, plan, Pace(at_once, bytes_per_s))
        else:
            await begin(admin, plan)
        return plan

    plan = administer(connection, work)
    waited = wait or bytes_per_s is not None
    show_plan(plan, style, "would move" if dry_run else "moved" if waited else "is moving")
    if plan and not waited and not dry_run:
        click.echo("`penstock cluster partitions status` shows how far it is", err=True)


def _turned(nodes: Sequence[int], by: int) -> tuple[int, ...]:
    first = by % len(nodes)
    return (*nodes[first:], *nodes[:first])


@click.command(
    epilog=examples(
        "penstock cluster partitions balance --dry-run", "penstock cluster partitions balance --throttle 50MB"
    )
)
@click.option(
    "--brokers",
    callback=broker_ids,
    metavar="BROKERS",
    help="Only these hold replicas afterwards, such as 1,2,3; all that are up if not given.",
)
@throttle_option
@at_once_option
@dry_run_option
@format_option
@connection_options
def balance(
    brokers: tuple[int, ...] | None,
    bytes_per_s: int | None,
    at_once: int,
    dry_run: bool,
    style: str,
    connection: Connection,
) -> None:
    """Spread replicas and leaders evenly, racks kept apart, with as little copying as that takes.

    This is how a broker that was added gets its share. Returns when all is moved.
    """
    from penstock.cli.connection import administer
    from penstock.operations.moving.carrying_out import Pace
    from penstock.operations.moving.plan import even_out

    async def work(admin: Admin) -> list[Move]:
        places = await live_brokers(admin, brokers, all_up=brokers is None)
        await refuse_while_moving(admin)
        plan = even_out(await placement_of(admin), places)
        if not dry_run:
            await carry_out_plan(admin, plan, Pace(at_once, bytes_per_s))
        return plan

    show_plan(administer(connection, work), style, "would move" if dry_run else "moved")


# -- shared with decommissioning


async def live_brokers(admin: Admin, wanted: Sequence[int] | None, *, all_up: bool = False) -> dict[int, str]:
    """The brokers that are up, or those of them that are wanted, with where each stands: its rack, else its host."""
    from penstock.client.errors import BrokerRefused
    from penstock.model.errors import BROKER_ID_NOT_REGISTERED

    known = {broker.id: broker for broker in (await admin.describe_cluster()).brokers}
    for node in wanted or ():
        if node not in known:
            words = f"there is no broker {node}; `penstock cluster brokers` lists them"
            raise BrokerRefused(words, error=BROKER_ID_NOT_REGISTERED)
        if known[node].fenced:
            raise PenstockError(f"broker {node} is down; start it first, or leave it out")
    down = [node for node, broker in known.items() if broker.fenced]
    if all_up and down:
        raise PenstockError(
            f"broker {node_list(down)} is down: start it, take it out for good with"
            f" `penstock cluster decommission {down[0]}`, or name the others with --brokers"
        )
    # Racks count only if every broker has one: otherwise those without would all seem to stand apart.
    racks = all(broker.rack for broker in known.values())
    return {
        node: (broker.rack or "") if racks else broker.host
        for node, broker in known.items()
        if not broker.fenced and (wanted is None or node in wanted)
    }


async def refuse_while_moving(admin: Admin) -> None:
    """A plan that is made while others move would undo what they do."""
    under_way = await admin.list_partition_reassignments()
    if under_way:
        raise PenstockError(
            f"{counted(len(under_way), 'move')} of partitions under way already: wait with"
            " `penstock cluster partitions status --wait`, or cancel them with `penstock cluster partitions cancel`"
        )


async def placement_of(admin: Admin) -> dict[TopicPartition, list[int]]:
    return {item: info.replicas for item, info in chosen(await admin.topics(internal=True), []).items()}


async def carry_out_plan(admin: Admin, plan: Sequence[Move], pace: Pace) -> None:
    from penstock.cli.moving_bar import Bar
    from penstock.operations.moving.carrying_out import carry_out, partition_sizes

    alive = [broker.id for broker in (await admin.describe_cluster()).brokers if not broker.fenced]
    topics = sorted({move.partition.topic for move in plan})
    sizes = partition_sizes((await admin.describe_log_dirs(alive, topics=topics)).done) if topics else {}
    bar = Bar("moving")
    try:
        await carry_out(admin, plan, pace, alive=alive, sizes=sizes, report=bar)
    except asyncio.CancelledError:
        bar.close()
        click.echo(
            "moves that were begun go on: `penstock cluster partitions status` shows them, `cancel` takes them back",
            err=True,
        )
        raise
    finally:
        bar.close()


def show_plan(plan: Sequence[Move], style: str, verb: str) -> None:
    data = [
        {
            "topic": move.partition.topic,
            "partition": move.partition.partition,
            "from": list(move.before),
            "to": list(move.after),
        }
        for move in plan
    ]
    rows = [
        (move.partition.topic, move.partition.partition, node_list(move.before), node_list(move.after)) for move in plan
    ]
    show(data, style, table(("TOPIC", "PARTITION", "FROM", "TO"), rows) if rows else "")
    if not plan:
        click.echo("nothing has to move", err=True)
        return
    copied = counted(sum(len(move.adding) for move in plan), "replica")
    only_led = sum(1 for move in plan if not move.adding and not move.removing)
    led = f", {only_led} of them only to another preferred leader" if only_led else ""
    tail = "copied" if verb == "moved" else "to copy"
    click.echo(f"{verb} {counted(len(plan), 'partition')}, {copied} {tail}{led}", err=True)
