"""`penstock txn`: list, describe, producers, find-hanging, abort, fence."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.amounts import Seconds
from penstock.cli.options import act_option, connection_options, examples, format_option
from penstock.cli.output import show, table
from penstock.cli.txn_hanging import abort, broker_option, find_hanging
from penstock.cli.txn_times import moment, now_ms
from penstock.model.units import duration_text

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.client.admin import Admin, ProducerInfo, TransactionInfo
    from penstock.model.ids import TopicPartition

STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort")


@click.group()
def txn() -> None:
    """See transactions and who holds readers back; find those that hang, and abort them."""


txn.add_command(find_hanging)
txn.add_command(abort)


@txn.command(
    "list",
    epilog=examples(
        "penstock txn list",
        "penstock txn list --state ongoing --longer-than 1m",
        "penstock txn list --pattern 'shop-.*' --format json",
    ),
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    help="Only transactional ids in this state; repeatable.",
)
@click.option(
    "--producer-id",
    "producer_ids",
    multiple=True,
    type=click.IntRange(min=0),
    metavar="N",
    help="Only those of this producer id; repeatable.",
)
@click.option(
    "--longer-than",
    "longer_than_s",
    type=Seconds(min=0),
    metavar="TIME",
    help="Only transactions that are open for longer than this, such as 90s or 1m.",
)
@click.option("--pattern", metavar="RE", help="Only ids that match this regular expression as a whole (RE2).")
@format_option
@connection_options
def list_transactions(
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    longer_than_s: float | None,
    pattern: str | None,
    style: str,
    connection: Connection,
) -> None:
    """List the transactional ids that coordinators know, with producer id, state and coordinator."""
    from penstock.cli.connection import administer

    longer_than_ms = None
    if longer_than_s is not None:
        longer_than_ms = int(longer_than_s * 1_000)
        # Brokers count from the beginning of the last transaction, whether it has ended or not.
        states = states or OPEN_STATES
    found = administer(
        connection,
        lambda admin: admin.list_transactions(
            states=states, producer_ids=producer_ids, longer_than_ms=longer_than_ms, pattern=pattern
        ),
    )
    rows = [(each.id, each.producer_id, each.state, each.coordinator) for each in found]
    headings = ("TRANSACTIONAL ID", "PRODUCER", "STATE", "COORDINATOR")
    show([asdict(each) for each in found], style, table(headings, rows) if rows else "")
    if not rows:
        click.echo("no transactions", err=True)


@txn.command(epilog=examples("penstock txn describe shop-1"))
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@format_option
@connection_options
def describe(names: tuple[str, ...], style: str, connection: Connection) -> None:
    """Show state, producer, time-out and age of transactions, and the partitions that wait for their end."""
    from penstock.cli.connection import administer

    async def work(admin: Admin) -> list[TransactionInfo]:
        return await _described(admin, names)

    found = administer(connection, work)
    show([_data(each) for each in found], style, "\n\n".join(_description(each, now_ms()) for each in found))


async def _described(admin: Admin, names: tuple[str, ...]) -> list[TransactionInfo]:
    from penstock.cli.suggesting import suggesting

    async with suggesting(admin, transactional_ids=names):
        described = (await admin.describe_transactions(names)).checked()
    return [described[name] for name in names]


def _data(info: TransactionInfo) -> dict[str, Any]:
    return {**asdict(info), "partitions": [{"topic": t, "partition": p} for t, p in info.partitions]}


def _description(info: TransactionInfo, at_ms: int) -> str:
    lines = [
        f"{info.id}  ({info.state})",
        f"  coordinator  {info.coordinator}",
        f"  producer     {info.producer_id} (epoch {info.epoch})",
        f"  time-out     {duration_text(info.timeout_ms)}",
    ]
    if info.started_ms is not None and info.state in OPEN_STATES:
        lines.append(f"  open since   {moment(info.started_ms)} ({duration_text(max(at_ms - info.started_ms, 0))})")
    lines.append(f"  partitions   {_partitions(info.partitions)}")
    return "\n".join(lines)


def _partitions(partitions: list[TopicPartition]) -> str:
    of_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        of_topic.setdefault(topic, []).append(partition)
    return "  ".join(f"{topic}:{','.join(map(str, indexes))}" for topic, indexes in of_topic.items()) or "-"


@txn.command(epilog=examples("penstock txn producers clicks 0"))
@click.argument("topic")
@click.argument("partition", type=click.IntRange(min=0))
@broker_option
@format_option
@connection_options
def producers(topic: str, partition: int, broker_id: int | None, style: str, connection: Connection) -> None:
    """Show the producers that a partition remembers, and where their open transactions begin."""
    from penstock.cli.connection import administer
    from penstock.cli.suggesting import suggesting
    from penstock.model.ids import TopicPartition

    item = TopicPartition(topic, partition)

    async def work(admin: Admin) -> list[ProducerInfo]:
        async with suggesting(admin, topics=[topic]):
            return (await admin.describe_producers([item], broker_id=broker_id)).checked()[item]

    found = sorted(administer(connection, work), key=lambda each: each.producer_id)
    rows = [
        (
            each.producer_id,
            each.epoch,
            each.last_sequence,
            moment(each.last_timestamp),
            _none_below_zero(each.coordinator_epoch),
            _none_below_zero(each.transaction_start),
        )
        for each in found
    ]
    headings = ("PRODUCER", "EPOCH", "LAST SEQUENCE", "LAST WRITTEN", "COORDINATOR EPOCH", "OPEN FROM")
    show([asdict(each) for each in found], style, table(headings, rows) if rows else "")
    if not rows:
        click.echo("no producers", err=True)


@txn.command(epilog=examples("penstock txn fence shop-1", "penstock txn fence shop-1 --yes"))
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@act_option
@format_option
@connection_options
def fence(names: tuple[str, ...], act: bool, style: str, connection: Connection) -> None:
    """Abort what is open under transactional ids and shut out the producers that have them. Prints the plan; --yes
    carries it out.

    A producer that begins anew with the id goes on as usual.
    """
    from penstock.cli.connection import administer

    async def work(admin: Admin) -> list[TransactionInfo]:
        found = await _described(admin, names)
        if act:
            (await admin.fence_producers(names)).checked()
        return found

    found = administer(connection, work)
    rows = [(each.id, each.state, each.producer_id, each.epoch, _partitions(each.partitions)) for each in found]
    data = {"executed": act, "transactions": [_data(each) for each in found]}
    show(data, style, table(("TRANSACTIONAL ID", "STATE", "PRODUCER", "EPOCH", "PARTITIONS"), rows))
    shown = ", ".join(names)
    click.echo(f"fenced {shown}" if act else "nobody was fenced: this is the plan, --yes carries it out", err=True)


def _none_below_zero(number: int) -> int | None:
    return number if number >= 0 else None
