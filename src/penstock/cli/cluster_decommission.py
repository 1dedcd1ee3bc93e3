"""`penstock cluster decommission`: a broker gives away all it holds and is forgotten."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from penstock.cli.cluster_rearrange import (
    at_once_option,
    carry_out_plan,
    dry_run_option,
    live_brokers,
    placement_of,
    refuse_while_moving,
    show_plan,
    throttle_option,
)
from penstock.cli.options import connection_options, examples, format_option
from penstock.model.errors import PenstockError
from penstock.model.units import count

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.cli.dev_cluster import DevCluster
    from penstock.client.admin import Admin
    from penstock.operations.moving.plan import Move

LOOK_EVERY_S = 0.5


@click.command(
    epilog=examples("penstock cluster decommission 4 --dry-run", "penstock cluster decommission 4 --throttle 50MB")
)
@click.argument("node_id", type=click.IntRange(min=0), metavar="ID")
@throttle_option
@at_once_option
@click.option("--wait", is_flag=True, help="When it is empty, wait until it was stopped, and forget it then.")
@dry_run_option
@format_option
@connection_options
def decommission(
    node_id: int,
    bytes_per_s: int | None,
    at_once: int,
    wait: bool,
    dry_run: bool,
    style: str,
    connection: Connection,
) -> None:
    """Move everything away from broker ID; then, if it is stopped, forget it.

    Run it once while the broker serves, stop the broker, and run it again (or use --wait). A broker that is dead
    already is emptied too, as long as others have its records.
    """
    from penstock.cli.connection import administer
    from penstock.operations.moving.carrying_out import Pace

    async def work(admin: Admin) -> tuple[list[Move], str]:
        plan = await _plan(admin, node_id)
        if dry_run:
            return plan, ""
        await carry_out_plan(admin, plan, Pace(at_once, bytes_per_s))
        return plan, await _forget(admin, node_id, wait=wait)

    plan, words = administer(connection, work)
    show_plan(plan, style, "would move" if dry_run else "moved")
    if words:
        click.echo(words, err=True)


async def _plan(admin: Admin, node_id: int) -> list[Move]:
    from penstock.client.errors import BrokerRefused
    from penstock.model.errors import BROKER_ID_NOT_REGISTERED
    from penstock.operations.moving.plan import evacuate

    placement = await placement_of(admin)
    known = {broker.id for broker in (await admin.describe_cluster()).brokers}
    if node_id not in known and not any(node_id in nodes for nodes in placement.values()):
        words = f"there is no broker {node_id}; `penstock cluster brokers` lists them"
        raise BrokerRefused(words, error=BROKER_ID_NOT_REGISTERED)
    await refuse_while_moving(admin)
    places = await live_brokers(admin, None)
    if node_id not in places:
        only_there = [
            str(item) for item, nodes in placement.items() if node_id in nodes and not places.keys() & set(nodes)
        ]
        if only_there:
            raise PenstockError(
                f"broker {node_id} is down, and has the only copy of {count('partition', len(only_there))}"
                f" ({', '.join(only_there[:5])}): start it, so that others can copy them, or delete their topics"
            )
    return evacuate(placement, places, [node_id])


async def _forget(admin: Admin, node_id: int, *, wait: bool) -> str:
    """Unregisters the broker if it is stopped; answers what is left to do."""
    registered = await state_of(admin, node_id)
    if registered == "up":
        await _note_leaving(admin, node_id)
    if registered == "up" and wait:
        click.echo(f"broker {node_id} holds nothing any more; waiting until it is stopped", err=True)
        while registered == "up":
            await asyncio.sleep(LOOK_EVERY_S)
            registered = await state_of(admin, node_id)
    if registered == "up":
        return (
            f"broker {node_id} holds nothing any more. Stop it, then run"
            f" `penstock cluster decommission {node_id}` again, so that the cluster forgets it"
        )
    if registered == "down":
        await admin.unregister_broker(node_id)
    words = f"broker {node_id} is no part of the cluster any more"
    if node_id in [voter.id for voter in (await admin.describe_quorum()).voters]:
        words += f", but node {node_id} still votes: `penstock cluster quorum remove-voter {node_id}` takes that away"
    else:
        await note_gone(admin, node_id)
    return words


async def _note_leaving(admin: Admin, node_id: int) -> None:
    """What `penstock dev` keeps of its nodes says that this one is to be stopped for good."""
    kept = await _kept_by_dev(admin, node_id)
    if kept is not None:
        kept.leave(node_id)


async def note_gone(admin: Admin, node_id: int) -> None:
    """What `penstock dev` keeps of its nodes does not have this one any more: it neither serves nor votes."""
    kept = await _kept_by_dev(admin, node_id)
    if kept is not None:
        kept.remove(node_id)


async def _kept_by_dev(admin: Admin, node_id: int) -> DevCluster | None:
    """The file of `penstock dev` that has this node, found by where the brokers have their data."""
    from penstock.cli.dev_cluster import of_directories

    cluster = await admin.describe_cluster()
    alive = [broker.id for broker in cluster.brokers if not broker.fenced]
    told = (await admin.describe_log_dirs(alive)).done
    return of_directories((each.path for dirs in told.values() for each in dirs), cluster.cluster_id, node_id)


async def state_of(admin: Admin, node_id: int) -> str | None:
    """Whether a broker is up or down; None when the cluster has no such broker."""
    for broker in (await admin.describe_cluster()).brokers:
        if broker.id == node_id:
            return "down" if broker.fenced else "up"
    return None
