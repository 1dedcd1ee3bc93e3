"""`penstock bench`: produce, consume, e2e, cluster, spark."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock.cli.amounts import Bytes, Seconds
from penstock.cli.options import connection_options, examples, format_option

if TYPE_CHECKING:
    from penstock.cli.connection import Connection

Command = TypeVar("Command", bound=Callable[..., Any])

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

versus_option = click.option(
    "--versus", metavar="HOST:PORT", help="Measure this address too, round by round in turn, and print ratios."
)
rounds_option = click.option(
    "--rounds", type=click.IntRange(min=1), default=3, show_default=True, help="Figures are medians of so many rounds."
)
warm_up_option = click.option(
    "--warm-up",
    default="5s",
    show_default=True,
    metavar="DURATION",
    help="Load of each address before the first round, in no figure; Java brokers want 60s.",
)
seconds_option = click.option(
    "--seconds", type=Seconds(min=0.05), default=5.0, show_default=True, help="How long a round is."
)
quick_option = click.option(
    "--quick", is_flag=True, help="One short round, to see that it works; not for figures that decide something."
)
record_option = click.option(
    "--record-bytes", type=Bytes(1, 1 << 20), default=1_000, show_default=True, help="The size of values."
)
batch_option = click.option(
    "--batch-bytes",
    type=Bytes(1, 64 << 20),
    default=16_384,
    show_default=True,
    help="The size of a batch before it is packed.",
)
compression_option = click.option(
    "-z", "--compression", type=click.Choice(CODECS), default="none", show_default=True, help="How batches are packed."
)
acks_option = click.option(
    "--acks", type=click.Choice(["all", "1", "0"]), default="all", show_default=True, help="Who must have a record."
)
client_option = click.option(
    "--client",
    type=click.Choice(["own", "raw"]),
    default="own",
    show_default=True,
    help="Penstock's client library, or requests that were encoded before, which cost the client least.",
)
clients_option = click.option(
    "--clients",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Client processes, each with connections of its own.",
)
topic_option = click.option(
    "-t", "--topic", metavar="TOPIC", help="A topic that is there, and stays; else one is made, and deleted at the end."
)
partitions_option = click.option(
    "-p", "--partitions", type=click.IntRange(1, 10_000), help="Partitions of the topic that is made.  [default: 4]"
)
replicas_option = click.option(
    "-r", "--replicas", type=click.IntRange(1, 100), help="Its replicas; the broker's default if not given."
)
config_option = click.option(
    "-c", "--config", "configs", multiple=True, metavar="KEY=VALUE", help="A config of it; repeatable."
)
topic_bytes_option = click.option(
    "--topic-bytes",
    type=Bytes(1, 1 << 40),
    default=200_000_000,
    show_default=True,
    help="How much an empty topic is filled with before it is read.",
)
output_option = click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.md",
    help="Write a page too, with plots beside it.",
)


def rate_option(words: str) -> Callable[[Command], Command]:
    return click.option("--rate", metavar="RATE", help=f"{words} 5000 or 5000/s are records, 5MB/s is bytes of values.")


def _measuring(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """The options of one command, before those that all of them have; the command hands everything on."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapped(connection: Connection, **given: Any) -> None:
            from penstock.cli.bench_running import quickly, run

            run(command.__name__, connection, quickly(given) if given.pop("quick") else given)

        decorated: Any = wrapped
        shared = (quick_option, versus_option, output_option, format_option, connection_options)
        for option in reversed((*options, rounds_option, warm_up_option, *shared)):
            decorated = option(decorated)
        result: Command = decorated
        return result

    return decorate


class InOrder(click.Group):
    """Commands in the order in which one asks the questions."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=InOrder)
def bench() -> None:
    """Measure any Kafka-compatible cluster, or two side by side.

    \b
    How much does it take, or how fast does it answer at a rate?   produce
    How fast are records read?                                     consume
    How long from a producer to a consumer?                        e2e
    What does replication cost?                                    cluster
    How fast is Spark with it?                                     spark

    Every address is given the same load by the same client. Figures are medians of rounds that go from address to
    address; with --rate, latency counts from when a record was due, so a stall is charged to all that it held up.
    """


@bench.command(
    short_help="How much a broker takes, or with --rate how fast it answers.",
    epilog=examples(
        "penstock bench produce --quick",
        "penstock bench produce --quick --client raw --rate 1MB/s --batch-bytes 1000",
    ),
)
@_measuring(
    client_option,
    clients_option,
    seconds_option,
    rate_option("Send at this rate and measure latency."),
    record_option,
    batch_option,
    acks_option,
    compression_option,
    topic_option,
    partitions_option,
    replicas_option,
    config_option,
)
def produce() -> None:
    """Measure how much a broker takes, or with --rate how fast it acknowledges."""


@bench.command(
    short_help="How fast a topic is read.", epilog=examples("penstock bench consume --quick --topic-bytes 5000000")
)
@_measuring(
    client_option,
    clients_option,
    seconds_option,
    topic_bytes_option,
    record_option,
    batch_option,
    compression_option,
    topic_option,
    partitions_option,
    replicas_option,
    config_option,
)
def consume() -> None:
    """Measure how fast a topic is read, over and over: one that is filled first, or --topic with what it has.

    Clients divide the partitions; a raw client reads one of them.
    """


@bench.command(
    short_help="How long from a producer to a consumer.", epilog=examples("penstock bench e2e --quick --rate 500")
)
@_measuring(
    clients_option,
    seconds_option,
    rate_option("Records a second.  [default: 1000]"),
    record_option,
    batch_option,
    acks_option,
    compression_option,
    topic_option,
    partitions_option,
    replicas_option,
    config_option,
)
def e2e() -> None:
    """Measure how long a record takes from a producer to a consumer, by the clock of one process that has both."""


@bench.command(
    short_help="What replication costs: throughput and latency of acks=all.",
    epilog=examples("penstock bench cluster --quick"),
)
@_measuring(
    client_option,
    clients_option,
    seconds_option,
    rate_option("Records a second of the latency part.  [default: 500]"),
    record_option,
    batch_option,
    compression_option,
    partitions_option,
    replicas_option,
    config_option,
)
def cluster() -> None:
    """Measure acks=all with replicas: all leaders at once, one connection, and latency at a rate.

    Topics have three replicas, or as many as there are brokers; it takes two of them at least.
    """


@bench.command(
    short_help="How fast Spark reads a topic and writes to one.",
    epilog=examples("penstock bench spark --quick --topic-bytes 1000000"),
)
@_measuring(
    topic_bytes_option,
    record_option,
    batch_option,
    compression_option,
    topic_option,
    partitions_option,
    replicas_option,
    config_option,
)
def spark() -> None:
    """Measure Spark on this machine: rows read from a topic, and written from there to another.

    Needs Java 17 and `pip install 'penstock[spark]'`. A round reads the whole topic.
    """
