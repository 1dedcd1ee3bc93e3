"""`penstock txn find-hanging` and `penstock txn abort`: transactions that nobody else will end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from penstock.cli.amounts import Seconds
from penstock.cli.options import act_option, connection_options, examples, format_option
from penstock.cli.output import show, table
from penstock.cli.txn_times import moment, now_ms
from penstock.model.errors import PenstockError
from penstock.model.units import count

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.client.admin import Admin, OpenTransaction
    from penstock.model.ids import TopicPartition

HANGING_S = 900.0

broker_option = click.option(
    "--broker-id", type=click.IntRange(min=0), metavar="N", help="Ask this broker about its replicas, not the leaders."
)


@click.command(
    "find-hanging",
    epilog=examples(
        "penstock txn find-hanging",
        "penstock txn find-hanging --topic clicks --older-than 1h",
        "penstock txn find-hanging --broker-id 1 --format json",
    ),
)
@click.option("-t", "--topic", metavar="TOPIC", help="Look into this topic only.")
@click.option("-p", "--partition", type=click.IntRange(min=0), metavar="P", help="Look into this partition of --topic.")
@broker_option
@click.option(
    "--older-than",
    "older_than_s",
    type=Seconds(min=0),
    default=HANGING_S,
    metavar="TIME",
    help="Leave out those whose last record is younger; 15m, what brokers allow a transaction, if not given.",
)
@format_option
@connection_options
def find_hanging(
    topic: str | None,
    partition: int | None,
    broker_id: int | None,
    older_than_s: float,
    style: str,
    connection: Connection,
) -> None:
    """Find transactions that nobody will end: open in a partition, and unknown to every coordinator.

    They hold readers of committed records and compaction back for ever. Without --topic and --broker-id every partition
    is looked into whose last stable offset lags.
    """
    from penstock.cli.connection import administer

    if partition is not None and topic is None:
        raise click.UsageError("--partition goes with --topic")

    async def work(admin: Admin) -> list[OpenTransaction]:
        return await admin.open_transactions(await _wanted(admin, topic, partition, broker_id), broker_id=broker_id)

    latest_ms = now_ms() - int(older_than_s * 1_000)
    found = [each for each in administer(connection, work) if each.hanging and each.last_timestamp <= latest_ms]
    show([_hanging_data(each) for each in found], style, _hanging_table(found) if found else "")
    if found:
        first = found[0]
        where = f"--topic {first.topic} --partition {first.partition} --start-offset {first.start_offset}"
        click.echo(f"{count('transaction', len(found))} will never end; `penstock txn abort {where}` aborts", err=True)
    else:
        click.echo("no transaction hangs", err=True)


async def _wanted(
    admin: Admin, topic: str | None, partition: int | None, broker_id: int | None
) -> list[TopicPartition]:
    from penstock.cli.suggesting import suggesting
    from penstock.model.ids import TopicPartition
    from penstock.operations.held_back import held_back

    if topic is not None:
        async with suggesting(admin, topics=[topic]):
            topics = [await admin.describe_topic(topic, offsets=False, configs=False)]
    else:
        topics = await admin.topics(internal=True)
    everywhere = [
        TopicPartition(each.name, found.partition)
        for each in topics
        for found in each.partitions
        if (found.leader >= 0 if broker_id is None else broker_id in found.replicas)
    ]
    if partition is not None:
        # Asked for although it may not be there: the refusal is the answer then.
        return [TopicPartition(topics[0].name, partition)]
    return everywhere if topic is not None or broker_id is not None else await held_back(admin, everywhere)


def _hanging_table(found: list[OpenTransaction]) -> str:
    rows = [
        (each.topic, each.partition, each.start_offset, each.producer_id, each.epoch, moment(each.last_timestamp))
        for each in found
    ]
    return table(("TOPIC", "PARTITION", "START OFFSET", "PRODUCER", "EPOCH", "LAST WRITTEN"), rows)


def _hanging_data(found: OpenTransaction) -> dict[str, Any]:
    """Without what only coordinators could tell."""
    names = (
        "topic",
        "partition",
        "start_offset",
        "producer_id",
        "epoch",
        "coordinator_epoch",
        "last_timestamp",
        "transactional_id",
    )
    return {name: getattr(found, name) for name in names}


@click.command(
    epilog=examples(
        "penstock txn abort --topic orders --partition 1 --start-offset 20",
        "penstock txn abort --topic orders --partition 1 --start-offset 20 --yes",
    )
)
@click.option("-t", "--topic", required=True, metavar="TOPIC", help="The topic that it is open in.")
@click.option("-p", "--partition", required=True, type=click.IntRange(min=0), metavar="P", help="The partition.")
@click.option("--start-offset", type=click.IntRange(min=0), metavar="N", help="Where it begins, as find-hanging says.")
@click.option("--producer-id", type=click.IntRange(min=0), metavar="N", help="Whose it is, in place of --start-offset.")
@click.option("--force", is_flag=True, help="Also one that its coordinator knows; the rest of it goes its own way.")
@act_option
@format_option
@connection_options
def abort(
    topic: str,
    partition: int,
    start_offset: int | None,
    producer_id: int | None,
    force: bool,
    act: bool,
    style: str,
    connection: Connection,
) -> None:
    """Abort a transaction that hangs, in the one partition that it hangs in. Prints the plan; --yes carries it out.

    Its records stay hidden from readers of committed records, and those behind them come into sight. Needs ALTER on the
    cluster where there are access rules.
    """
    from penstock.cli.connection import administer
    from penstock.cli.suggesting import suggesting
    from penstock.model.ids import TopicPartition

    if (start_offset is None) == (producer_id is None):
        raise click.UsageError("say which: --start-offset N, or --producer-id N")
    item = TopicPartition(topic, partition)

    async def work(admin: Admin) -> list[OpenTransaction]:
        async with suggesting(admin, topics=[topic]):
            opened = await admin.open_transactions([item])
        chosen = [each for each in opened if start_offset == each.start_offset or producer_id == each.producer_id]
        for each in chosen:
            if each.transactional_id is not None and not force:
                raise PenstockError(_known_words(each.transactional_id, each.state))
        if act or not chosen:  # the refusal says what is open there
            await admin.abort_transaction(item, start_offset=start_offset, producer_id=producer_id)
        return chosen

    found = administer(connection, work)
    data = {"executed": act, "transactions": [_hanging_data(each) for each in found]}
    show(data, style, _hanging_table(found))
    where = f"{topic}-{partition}"
    click.echo(
        f"aborted in {where}" if act else f"nothing was aborted in {where}: this is the plan, --yes carries it out",
        err=True,
    )


def _known_words(transactional_id: str, state: str | None) -> str:
    return (
        f"it does not hang: transactional id {transactional_id!r} has it ({state}), and its coordinator ends it in all"
        f" its partitions. `penstock txn fence {transactional_id}` aborts it now; --force ends it in this partition"
        " only, and tears it apart"
    )
