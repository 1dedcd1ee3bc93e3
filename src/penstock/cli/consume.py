"""`penstock consume` and `penstock tail`: records from topics to standard output."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from penstock.cli.options import connection_options, examples

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.cli.consuming import Job
    from penstock.cli.options import Command
    from penstock.operations.records.matching import Matcher
    from penstock.operations.records.writing import Piece

TAIL_RECORDS = 10
ISOLATION_LEVELS = ("read_committed", "read_uncommitted")

_SHARED = [
    click.argument("topics", nargs=-1, required=True, metavar="TOPIC..."),
    click.option("-r", "--regex", is_flag=True, help="TOPIC is a regular expression for whole names."),
    click.option(
        "-p", "--partition", "partitions", multiple=True, type=click.IntRange(min=0), help="Only this one; repeatable."
    ),
    click.option(
        "-f",
        "--format",
        "layout",
        default="json",
        show_default=True,
        metavar="FORMAT",
        help=r"json lines, text (values), yaml, or a %-format such as '%t-%p@%o %k=%v\n'.",
    ),
    click.option("--pretty", is_flag=True, help="With -f json: indented, over several lines."),
    click.option("--meta-only", is_flag=True, help="With -f json: sizes in place of key, value and headers."),
    click.option(
        "--isolation",
        type=click.Choice(ISOLATION_LEVELS),
        help="read_committed leaves out records of open and aborted transactions; read_uncommitted if not given.",
    ),
    click.option(
        "--read-committed", "isolation", flag_value="read_committed", help="Short for --isolation read_committed."
    ),
    click.option("--rack", metavar="RACK", help="Read from a replica in this rack where there is one."),
]


def _shared_options(command: Command) -> Command:
    decorated: Any = connection_options(command)
    for option in reversed(_SHARED):
        decorated = option(decorated)
    result: Command = decorated
    return result


@click.command(
    epilog=examples(
        "penstock consume clicks -n 3",
        r"penstock consume clicks -o -5:end -f '%p@%o %k=%v\n'",
        "penstock consume clicks -o @-1h -e -f text",
        "penstock consume clicks -g billing -n 2",
        "penstock consume clicks --where 'partition == 0 and offset < 5' -e",
        "penstock consume clicks --isolation read_committed -e",
    )
)
@click.option(
    "-o",
    "--offset",
    default="start",
    show_default=True,
    metavar="WHERE",
    help="start, end, N, +N, -N, A:B, :end, @TIME or @TIME:TIME; in a group start or end, where nothing is committed.",
)
@click.option("-n", "--num", type=click.IntRange(min=1), help="End after so many records.")
@click.option("-e", "--exit-at-end", is_flag=True, help="End where the topics end now, in place of waiting for more.")
@click.option("-g", "--group", metavar="GROUP", help="Read as a member of this group, and commit.")
@click.option(
    "--protocol",
    type=click.Choice(["classic", "consumer"]),
    help="With -g: who assigns; classic, unless -X group_protocol says otherwise.",
)
@click.option(
    "--balancer",
    metavar="NAME",
    help="With -g: range, roundrobin, sticky or cooperative-sticky; uniform or range with --protocol consumer.",
)
@click.option(
    "--where",
    "condition",
    metavar="CONDITION",
    help='Only records for which this holds, in the language of agents: value.amount > 50 and key == "it".',
)
@_shared_options
def consume(
    topics: tuple[str, ...],
    offset: str,
    num: int | None,
    exit_at_end: bool,
    group: str | None,
    protocol: str | None,
    balancer: str | None,
    condition: str | None,
    **rest: Any,
) -> None:
    """Print records of topics, from anywhere to anywhere, and then those to come.

    \b
    Where to read (-o):
      start, end      everything; only what comes from now on
      42    +10  -10  from offset 42; ten after the start; the last ten
      5:9   :end      offsets 5 to 8; until what is the end now
      @T    @T1:T2    from a time, between two: 13 digits are ms, 10 are seconds,
                      2022-02-14, 2022-02-14T12:00:00Z, -48h (before now), 1h (after T1)

    \b
    What to print (-f '%k %v\\n'):
      %t topic  %p partition  %o offset  %e leader epoch  %d timestamp  %i count
      %k key    %v value      %K %V %T their lengths      %H number of headers
      %h{%k=%v }  each header        %%  %{  %}  \\n  \\t  \\r  \\\\  \\x00
      numbers: {ascii} {hex64…hex4} {big64…big8} {little64…little8} {byte} {bool}
      text: {hex} {base64} {base64raw} {unpack[>Iq]}   times: {strftime[%F]} {go##2006-01-02##}

    JSON lines keep everything: what is not UTF-8 stands in base64 under key_base64 and value_base64, and
    `penstock produce -f json` takes them back. Ctrl-C ends it with exit code 130.
    """
    from penstock.operations.records.offsets import BadOffset, Point, Range, parse_range

    try:
        where = parse_range(offset, time.time_ns() // 1_000_000)
    except BadOffset as wrong:
        raise click.BadParameter(str(wrong), param_hint="--offset") from None
    if exit_at_end:
        where = Range(where.first, where.until or Point("end"))
    job = _job(topics, limit=num, where=where, **rest)
    job.matches = None if condition is None else _matcher(condition)
    if group is None:
        if balancer is not None or protocol is not None:
            raise click.UsageError("--protocol and --balancer go with --group")
        _run(job)
        return
    if where not in (Range(Point("start")), Range(Point("end"))):
        raise click.UsageError("in a group, -o is start or end: where to begin when nothing is committed")
    if job.partitions:
        raise click.UsageError("a group chooses the partitions; --partition and --group exclude each other")
    job.keywords["group_id"] = group
    if protocol is not None:
        job.keywords["group_protocol"] = protocol
    told = click.get_current_context().get_parameter_source("offset") is not ParameterSource.DEFAULT
    if told or not {"offset_reset", "auto_offset_reset"} & job.keywords.keys():
        job.keywords["offset_reset"] = "earliest" if where.first.kind == "start" else "latest"
    if balancer is not None:
        by_broker = job.keywords.get("group_protocol", "classic").lower() == "consumer"
        job.keywords["group_remote_assignor" if by_broker else "assignors"] = balancer
    _run(job)


@click.command(epilog=examples("penstock tail clicks", "penstock tail clicks -n 100 -f text"))
@click.option(
    "-n",
    "--num",
    "lines",
    type=click.IntRange(min=0),
    default=TAIL_RECORDS,
    show_default=True,
    help="How many of the records that are there already.",
)
@_shared_options
def tail(topics: tuple[str, ...], lines: int, **rest: Any) -> None:
    """Print the last records of topics, of all partitions together, and then those to come.

    Formats are those of `penstock consume`. Ctrl-C is the way to end it, with exit code 0.
    """
    from penstock.operations.records.offsets import Point, Range

    job = _job(topics, limit=None, where=Range(Point("end")), **rest)
    job.tail = lines
    try:
        _run(job)
    except KeyboardInterrupt:
        click.echo(err=True)


def _run(job: Job) -> None:
    from penstock.cli import on_a_loop
    from penstock.cli.consuming import run

    on_a_loop.run(run(job))


def _job(
    topics: tuple[str, ...],
    *,
    limit: int | None,
    where: Any,
    regex: bool,
    partitions: tuple[int, ...],
    layout: str,
    pretty: bool,
    meta_only: bool,
    isolation: str | None,
    rack: str | None,
    connection: Connection,
) -> Job:
    from penstock.cli.consuming import Job
    from penstock.client.settings import ConsumerSettings

    keywords: dict[str, Any] = {"create_topics": False, **connection.keywords(ConsumerSettings)}
    if isolation is not None:
        keywords["isolation_level"] = isolation
    if rack is not None:
        keywords["client_rack"] = rack
    return Job(
        topics=topics,
        regex=regex,
        partitions=partitions,
        where=where,
        write=_writer(layout, pretty, meta_only),
        limit=limit,
        keywords=keywords,
        connection=connection.beside(),
    )


def _matcher(condition: str) -> Matcher:
    from penstock.operations.records.matching import BadCondition, Matcher

    try:
        return Matcher(condition)
    except BadCondition as wrong:
        message = f"{wrong.words}\n  {condition}\n  {' ' * wrong.at}^"
        raise click.BadParameter(message, param_hint="--where") from None


def _writer(layout: str, pretty: bool, meta_only: bool) -> Piece:
    from penstock.cli.output import yaml_lines
    from penstock.operations.records.json_lines import record_data, write_line
    from penstock.operations.records.layout import BadFormat, parse_layout
    from penstock.operations.records.writing import compile_writer

    if layout == "json":
        return lambda record, _count: write_line(record, meta_only=meta_only, pretty=pretty)
    if pretty:
        raise click.UsageError("--pretty goes with -f json")
    if layout == "yaml":
        return lambda record, _count: (
            "---\n" + "\n".join(yaml_lines(record_data(record, meta_only=meta_only))) + "\n"
        ).encode()
    if meta_only:
        raise click.UsageError("--meta-only goes with -f json and -f yaml")
    try:
        return compile_writer(parse_layout(r"%v\n" if layout == "text" else layout))
    except BadFormat as wrong:
        raise click.BadParameter(str(wrong), param_hint="--format") from None
