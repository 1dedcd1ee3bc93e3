"""`penstock produce`: records from standard input to a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from penstock.cli.options import connection_options, examples

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.cli.feeding import Parse
    from penstock.operations.records.reading import InputRecord


@click.command(
    epilog=examples(
        "echo hello | penstock produce clicks",
        r"printf 'k1 v1\nk2 v2\n' | penstock produce clicks -f '%k %v\n'",
        """echo '{"key": "k", "value": {"n": 1}, "headers": {"h": "1"}}' | penstock produce clicks -f json""",
        "penstock consume orders -e | penstock produce clicks -f json",
    )
)
@click.argument("topic", required=False)
@click.option(
    "-f",
    "--format",
    "layout",
    default=r"%v\n",
    show_default=True,
    metavar="FORMAT",
    help="How the input reads: json (lines as `consume` prints them) or a %-format as for `consume`.",
)
@click.option("-k", "--key", help="The key of every record, in place of the input's.")
@click.option("-H", "--header", "headers", multiple=True, metavar="KEY:VALUE", help="A header for all; repeatable.")
@click.option("-p", "--partition", type=click.IntRange(min=0), help="Send to this partition.")
@click.option("--keep-partition", is_flag=True, help="With -f json: send to the partition that the line names.")
@click.option("-T", "--tombstone", is_flag=True, help="Send an empty value as null, which deletes a compacted key.")
@click.option(
    "-z",
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="How batches are packed.",
)
@click.option(
    "--acks",
    type=click.Choice(["all", "1", "0"]),
    default="all",
    show_default=True,
    help="Who must have a record before it counts as sent.",
)
@click.option("--delivery-timeout", metavar="DURATION", help="How long a record may take, such as 30s or 2m.")
@click.option("--create", is_flag=True, help="Let the broker create a topic that is not there.")
@click.option("-F", "--output-format", "report", metavar="FORMAT", help="Print each delivery: json or a %-format.")
@connection_options
def produce(
    topic: str | None,
    layout: str,
    key: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    keep_partition: bool,
    tombstone: bool,
    compression: str,
    acks: str,
    delivery_timeout: str | None,
    create: bool,
    report: str | None,
    connection: Connection,
) -> None:
    """Send records to TOPIC: one for each line of standard input, or as --format says.

    TOPIC may be left out when the input names it (%t, or "topic" in JSON). What is given here comes before what the
    input says. Ctrl-C sends what was read and ends with exit code 130.
    """
    from penstock.cli import on_a_loop
    from penstock.cli.producing import Job, run
    from penstock.client.settings import ProducerSettings

    keywords: dict[str, Any] = {
        "compression": compression,
        "acks": acks,
        "create_topics": create,
        **connection.keywords(ProducerSettings),
    }
    if delivery_timeout is not None:
        keywords.update(_delivery(delivery_timeout))
    job = Job(
        topic=topic,
        parse=_parser(layout),
        change=_change(key, headers, partition, tombstone, keep_partition or layout != "json"),
        report=_reporter(report),
        create=create,
        keywords=keywords,
        connection=connection.beside(),
    )
    on_a_loop.run(run(job))


def _parser(layout: str) -> Parse:
    from penstock.operations.records.json_lines import read_lines
    from penstock.operations.records.layout import BadFormat, parse_layout
    from penstock.operations.records.reading import compile_reader

    if layout == "json":
        return read_lines
    try:
        return compile_reader(parse_layout(layout))
    except BadFormat as wrong:
        raise click.BadParameter(str(wrong), param_hint="--format") from None


def _reporter(layout: str | None) -> Any:
    from penstock.operations.records.json_lines import write_line
    from penstock.operations.records.layout import BadFormat, parse_layout
    from penstock.operations.records.writing import compile_writer

    if layout is None:
        return None
    if layout == "json":
        return lambda record, _count: write_line(record)
    try:
        return compile_writer(parse_layout(layout))
    except BadFormat as wrong:
        raise click.BadParameter(str(wrong), param_hint="--output-format") from None


def _delivery(text: str) -> dict[str, int]:
    from penstock.operations.records.offsets import BadOffset, parse_duration_ms

    try:
        limit_ms = parse_duration_ms(text)
    except BadOffset as wrong:
        raise click.BadParameter(str(wrong), param_hint="--delivery-timeout") from None
    # A request may not outlive the record that it carries, nor may the wait for a topic.
    return {
        "delivery_timeout_ms": max(limit_ms, 10),
        "request_timeout_ms": max(min(limit_ms - 5, 30_000), 1),
        "max_block_ms": min(limit_ms, 60_000),
    }


def _change(key: str | None, headers: tuple[str, ...], partition: int | None, tombstone: bool, keep: bool) -> Any:
    """A function that puts what the command line says over what the input says."""
    more = [_header(text) for text in headers]
    given_key = None if key is None else key.encode("utf-8", "surrogateescape")

    def change(record: InputRecord) -> InputRecord:
        if given_key is not None:
            record.key = given_key
        if partition is not None:
            record.partition = partition
        elif not keep:
            record.partition = None
        if tombstone and not record.value:
            record.value = None
        record.headers = [*record.headers, *more]
        return record

    return change


def _header(text: str) -> tuple[str, bytes]:
    at = min((place for place in (text.find(":"), text.find("=")) if place > 0), default=-1)
    if at < 0:
        raise click.BadParameter(f"{text!r} is not KEY:VALUE", param_hint="--header")
    return text[:at], text[at + 1 :].encode("utf-8", "surrogateescape")
