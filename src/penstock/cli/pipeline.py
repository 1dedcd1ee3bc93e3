"""`penstock pipeline`: init, validate, run, list, status, check, audit, stop, reset, backfill, swap, redrive."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from penstock.cli.amounts import Seconds
from penstock.cli.failures import FAILED, NOT_FOUND, UNHEALTHY
from penstock.cli.options import connection_options, examples, format_option, yes_option
from penstock.cli.output import show, table, terminal_columns, wrapped
from penstock.cli.progress import ticking
from penstock.model.units import count

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.spark.pipeline.flow import Flow
    from penstock.spark.pipeline.listing import Listed
    from penstock.spark.pipeline.reading import Examined

DETACHED_WITHIN_S = 45.0
"""Spark starts in some ten seconds; whoever waits longer is told where to look."""
STOPPED_WITHIN_S = 60.0

file_argument = click.argument("file", type=click.Path(dir_okay=False, exists=True, path_type=Path))
sink_option = click.option("--sink", "sinks", multiple=True, metavar="NAME", help="Only this sink; repeatable.")
deadline_option = click.option(
    "--within",
    "within_s",
    type=Seconds(min=0),
    default=STOPPED_WITHIN_S,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for it.",
)


class InOrder(click.Group):
    """Commands in the order in which one needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=InOrder)
def pipeline() -> None:
    """Declare flows from topics to tables and topics in a file, and run them on Spark."""


@pipeline.command(
    epilog=examples("penstock pipeline init orders.toml --topic orders", "penstock pipeline init first.toml")
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default="pipeline.toml")
@click.option("-t", "--topic", metavar="TOPIC", help="Look at records of this topic and write their columns down.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@connection_options
def init(file: Path, topic: str | None, force: bool, connection: Connection) -> None:
    """Write a first pipeline file, with a comment for everything one may want to change.

    With --topic some records of it are read: JSON becomes columns, other text lines, anything else stays raw.
    """
    from penstock.model.errors import PenstockError
    from penstock.spark.pipeline.starting_file import NOT_LOOKED, look, starting_file

    if file.exists() and not force:
        raise PenstockError(f"{file} is there already; --force replaces it")
    looked = NOT_LOOKED if topic is None else look(topic, _source_options(connection))
    if looked.report:
        click.echo(looked.report, err=True)
    text = starting_file(name=_name_for(file), topic=topic or "orders", bootstrap=connection.bootstrap, looked=looked)
    file.write_text(text, encoding="utf-8")
    click.echo(f"wrote {file}; `penstock pipeline run {file}` runs it", err=True)


def _name_for(file: Path) -> str:
    plain = "".join(char if char.isalnum() or char in "-_" else "-" for char in file.stem if char.isascii())
    return plain.strip("-_") or "pipeline"


def _source_options(connection: Connection) -> dict[str, str]:
    settings = {f"kafka.{name}": value for name, value in _client_settings(connection).items()}
    return {**settings, "kafka.bootstrap.servers": connection.bootstrap}


def _client_settings(connection: Connection) -> dict[str, str]:
    """What -X and the profile say, by Kafka's names."""
    return {name.replace("_", "."): value for name, value in {**connection.remembered, **connection.given}.items()}


@pipeline.command(
    epilog=examples("penstock pipeline validate orders.toml", "penstock pipeline validate orders.toml --format json")
)
@file_argument
@click.option(
    "--deep/--no-deep",
    default=None,
    help="Ask Spark and the brokers everything: modes, schemas to infer. Or ask Spark nothing: no Java is needed.",
)
@format_option
@connection_options
def validate(file: Path, deep: bool | None, style: str, connection: Connection) -> None:
    """Say everything that is wrong with FILE, each mistake with its line and column. Runs nothing of it.

    SQL and the columns that it names are checked by Spark on this machine, which takes seconds; no broker is asked.
    """
    from penstock.declared.mistakes import text_of
    from penstock.spark.pipeline.reading import examine
    from penstock.spark.pipeline.sql_check import has_sql
    from penstock.spark.sessions import check_spark

    found = examine(text_of(file.read_bytes(), str(file)), file)
    mistakes = list(found.mistakes)
    if not mistakes:
        # What is missing for everything else may wait until the file has no mistakes.
        check_spark()
    if found.flow is not None and (deep or (deep is None and has_sql(found.flow))):
        mistakes = _ask_spark(_over_file(found.flow, connection), whole=bool(deep))
    data = [
        {"line": each.line, "column": each.column, "severity": severity, "words": each.words}
        for severity, many in (("error", mistakes), ("warning", found.warnings))
        for each in many
    ]
    show(data, style, "\n".join(each.at(str(file)) for each in mistakes))
    _warn(found, file)
    if mistakes:
        click.echo(f"{file} has {count('mistake', len(mistakes))}", err=True)
        click.get_current_context().exit(FAILED)
    click.echo(f"{file} is fine", err=True)


def _ask_spark(flow: Flow, *, whole: bool) -> list[Any]:
    """What Spark finds wrong; with a word, and nothing found, when there is no Java to ask and nobody insists."""
    from penstock.spark.errors import Missing
    from penstock.spark.sessions import check_java

    try:
        check_java()
    except Missing as missing:
        if whole:
            raise
        click.echo(f"warning: the SQL of {flow.path.name} was not checked: {missing}", err=True)
        return []
    terminal = os.dup(2) if sys.stderr.isatty() else None
    with ticking("asking Spark", terminal), quiet_stderr():
        return _asked_deeply(flow) if whole else _asked_for_sql(flow)


def _asked_deeply(flow: Flow) -> list[Any]:
    from dataclasses import replace

    from penstock.spark.pipeline.deep_check import deep_check
    from penstock.spark.pipeline.session import open_session
    from penstock.spark.sessions import LOCAL_MASTER

    settings = {"spark.log.level": "ERROR", **flow.spark.settings}
    spark = open_session(replace(flow, spark=replace(flow.spark, master=LOCAL_MASTER, settings=settings)))
    try:
        return list(deep_check(flow, spark))
    finally:
        spark.stop()


def _asked_for_sql(flow: Flow) -> list[Any]:
    from penstock.spark.pipeline.sql_check import open_small_session, sql_check

    spark = open_small_session(flow)
    try:
        return list(sql_check(flow, spark))
    finally:
        spark.stop()


@contextmanager
def quiet_stderr() -> Iterator[None]:
    """What the JVM and pyspark's logging say goes into a file, and is shown only when Spark does not work at all."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as aside:
        os.dup2(aside.fileno(), 2)
        try:
            yield
        except BaseException:
            os.dup2(kept, 2)
            aside.seek(0)
            os.write(2, aside.read()[-8_192:])
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _warn(found: Examined, file: Path) -> None:
    for each in found.warnings:
        click.echo(f"warning: {each.at(str(file))}", err=True)


def _over_file(flow: Flow, connection: Connection, master: str | None = None) -> Flow:
    """A flag comes before the file, and the file before the environment, the profile and the default."""
    context = click.get_current_context()
    said = context.get_parameter_source("bootstrap") is click.core.ParameterSource.COMMANDLINE
    bootstrap = connection.bootstrap if said or flow.bootstrap is None else flow.bootstrap
    remembered = connection.towards(bootstrap, flow.kafka).remembered
    settings = {name.replace("_", "."): value for name, value in remembered.items()}
    given = {name.replace("_", "."): value for name, value in connection.given.items()}
    return flow.on(
        bootstrap=bootstrap,
        master=master,
        kafka={**settings, **flow.kafka, **given},
    )


@pipeline.command(epilog=examples("penstock pipeline run orders.toml --once"))
@file_argument
@click.option("--master", metavar="URL", help="The Spark to run on, in place of the file's: local[*,4], spark://…")
@click.option("--once", "--until-caught-up", "once", is_flag=True, help="End when all that is there now is processed.")
@click.option("--detach", is_flag=True, help="Run in the background; `list`, `status` and `stop` know it.")
@click.option("--backfill", is_flag=True, help="Read a part of the past once, without checkpoints; see --from.")
@click.option("--from", "start", metavar="WHEN", help="With --backfill: earliest, or a time such as 2026-11-01T00:00Z.")
@click.option(
    "--to", "end", metavar="WHEN", help="With --backfill: a time to end before; what is there now if not given."
)
@click.option("--into", metavar="NAME", help="With --backfill and one --sink: the table, directory or topic to fill.")
@sink_option
@click.option(
    "--stop-within",
    "stop_within_s",
    type=Seconds(min=0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long batches may take to finish when it is stopped.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How to show progress; JSON as lines.",
)
@connection_options
def run(
    file: Path,
    master: str | None,
    once: bool,
    detach: bool,
    backfill: bool,
    start: str | None,
    end: str | None,
    into: str | None,
    sinks: tuple[str, ...],
    stop_within_s: float,
    quiet: bool,
    style: str,
    connection: Connection,
) -> None:
    """Run FILE until Ctrl-C, and keep it running: a sink that fails is tried again, a driver that dies started anew.

    Restarts go on from the checkpoints. A backfill has none: it fills a table of its own, or sends records again.
    """
    from penstock.declared.mistakes import text_of
    from penstock.spark.pipeline.home import Home, Job
    from penstock.spark.pipeline.reading import examine, read_flow
    from penstock.spark.sessions import check_spark

    flow = _over_file(read_flow(file), connection, master)
    check_spark()
    _warn(examine(text_of(file.read_bytes(), str(file)), file), file)
    _check_sinks(flow, sinks)
    job = Job(
        file=str(flow.path),
        bootstrap=flow.bootstrap or connection.bootstrap,
        master=flow.spark.master,
        kafka=dict(flow.kafka),
        once=once,
        sinks=sinks,
        stop_within_s=stop_within_s,
        backfill=_backfill(backfill, start, end, into, once=once, detach=detach),
    )
    place = Home(f"{flow.name}.backfill" if backfill else flow.name)
    if detach:
        _detach(place, flow, job, style)
    else:
        _supervise(place, flow, job, quiet=quiet, style=style)


def _backfill(
    wanted: bool, start: str | None, end: str | None, into: str | None, *, once: bool, detach: bool
) -> dict[str, str] | None:
    if not wanted:
        for name, value in (("--from", start), ("--to", end), ("--into", into)):
            if value is not None:
                raise click.UsageError(f"{name} is for --backfill; a pipeline goes on from its checkpoints")
        return None
    if once or detach:
        raise click.UsageError("--backfill ends by itself: leave --once and --detach away")
    if start is None:
        raise click.UsageError("--backfill needs --from: earliest, or a time such as 2026-11-01T00:00Z")
    if start != "earliest":
        _check_time(start, "--from")
    if end is not None:
        _check_time(end, "--to")
    return {"start": start, "end": end or "latest", "into": into or ""}


def _check_time(given: str, hint: str) -> None:
    from penstock.spark.pipeline.wiring import millis_of

    try:
        millis_of(given)
    except ValueError:
        raise click.BadParameter(f"{given!r} is no time such as 2026-11-01T00:00Z", param_hint=hint) from None


def _check_sinks(flow: Flow, sinks: tuple[str, ...]) -> None:
    from penstock.declared.mistakes import did_you_mean

    for name in sinks:
        if flow.sink(name) is None:
            hint = did_you_mean(name, [sink.name for sink in flow.sinks])
            raise click.BadParameter(f"{flow.name} has no sink {name!r}{hint}", param_hint="--sink")


def _supervise(place: Any, flow: Flow, job: Any, *, quiet: bool, style: str) -> None:
    from penstock.spark.pipeline.flow import SinkKind
    from penstock.spark.pipeline.home import failures_of
    from penstock.spark.pipeline.supervising import log_tail, supervise_here
    from penstock.spark.pipeline.view import view_for

    has_console = any(sink.kind is SinkKind.CONSOLE for sink in flow.sinks)
    view = view_for(style, quiet=quiet, has_console=has_console)
    try:
        outcome = supervise_here(place, flow, job, console=True, watch=view.show)
    finally:
        view.close()
    if outcome.code == 0:
        if outcome.words:
            click.echo(outcome.words, err=True)
        return
    words = outcome.words
    if view.failed and failures_of(view.failed) == words:
        # The table, or a line of each, has just said why.
        words = f"{count('sink', len(view.failed))} failed: {', '.join(sink.sink for sink in view.failed)}"
    _say(f"penstock: {words or 'it failed'}")
    if not outcome.final:
        click.echo("\n".join(log_tail(place)), err=True)
    click.echo(f"the log is {place.log}", err=True)
    click.get_current_context().exit(outcome.code)


def _say(words: str) -> None:
    """On standard error, broken between words where that is a terminal."""
    room = terminal_columns(sys.stderr) or sys.maxsize
    click.echo("\n".join(wrapped(line, width=room) for line in words.splitlines()), err=True)


def _detach(place: Any, flow: Flow, job: Any, style: str) -> None:
    from penstock.spark.pipeline.listing import wait_until_begun
    from penstock.spark.pipeline.supervising import detach

    pid = detach(place, flow, job)
    state = wait_until_begun(flow.name, within_s=DETACHED_WITHIN_S)
    data = {"name": flow.name, "pid": pid, "state": "starting" if state is None else state.state, "log": str(place.log)}
    show(data, style, "")
    if state is None:
        click.echo(f"{flow.name} is still starting (process {pid}); the log is {place.log}", err=True)
    elif state.code:
        _say(f"penstock: {state.words}\nthe log is {place.log}")
        click.get_current_context().exit(state.code)
    else:
        click.echo(f"{flow.name} is {state.state} (process {pid}); the log is {place.log}", err=True)


@pipeline.command("list", epilog=examples("penstock pipeline list", "penstock pipeline list --format json"))
@format_option
@connection_options
def list_pipelines(style: str, connection: Connection) -> None:
    """List pipelines that ran on this machine and those that the cluster has heard of."""
    found = _with_lag_of_now(_all(connection), connection)
    rows = [
        (
            each.name,
            each.state,
            "here" if each.here else each.host,
            each.pid if each.running else None,
            len(each.sinks) or None,
            f"{each.rows_per_s:,.0f}",
            None if each.lag is None else f"{each.lag:,}",
            each.master,
        )
        for each in found
    ]
    headings = ("NAME", "STATE", "WHERE", "PID", "SINKS", "ROWS/S", "LAG", "MASTER")
    show([each.data() for each in found], style, table(headings, rows) if rows else "")
    if not rows:
        click.echo("no pipelines; `penstock pipeline init` writes a first file", err=True)


@pipeline.command(epilog=examples("penstock pipeline status orders"))
@click.argument("name")
@format_option
@connection_options
def status(name: str, style: str, connection: Connection) -> None:
    """Show how the pipeline NAME and its sinks are. Exit code 10 when something of it failed."""
    (found,) = _with_lag_of_now([_named(name, connection)], connection)
    show(found.data(), style, _description(found))
    if not found.healthy:
        click.get_current_context().exit(UNHEALTHY)


def _description(found: Listed) -> str:
    from penstock.spark.pipeline.home import Home
    from penstock.spark.pipeline.view import HEADINGS, rows

    where = f"process {found.pid} on {found.host}" if found.running else f"last on {found.host}"
    lines = [
        f"{found.name}  ({found.state}, {where})",
        f"  file       {found.file}",
        f"  master     {found.master}",
        f"  bootstrap  {found.bootstrap}",
        f"  started    {_time(found.started_ms)}{f', restarted {found.restarts}×' if found.restarts else ''}",
    ]
    if found.here:
        lines.append(f"  log        {Home(found.name).log}")
    if found.words:
        lines.append(wrapped(f"  last word  {found.words}", indent=13))
    if found.sinks:
        lines += ["", table(HEADINGS, rows(found.sinks, _now_ms()))]
    lines += [wrapped(f"  {sink.sink}: {sink.error}", indent=4) for sink in found.sinks if sink.error]
    return "\n".join(lines)


@pipeline.command(
    epilog=examples("penstock pipeline check orders.toml", "penstock pipeline check orders.toml --format json")
)
@file_argument
@format_option
@connection_options
def check(file: Path, style: str, connection: Connection) -> None:
    """Say how fresh the sinks of FILE are, and whether that is what `fresh_within` promises.

    How fresh a sink is: how long the oldest record has been in its topic that the sink has not taken. A pipeline that
    does not run is asked like any other: with nothing to take it keeps its promise.

    Exit code 10 when a promise is not kept.
    """
    from penstock.cli.pipeline_check import tell
    from penstock.spark.pipeline.checking import look
    from penstock.spark.pipeline.reading import read_flow

    tell(file, *look(_over_file(read_flow(file), connection)), style)


@pipeline.command(
    epilog=examples("penstock pipeline audit orders.toml", "penstock pipeline audit orders.toml --format json")
)
@file_argument
@sink_option
@format_option
@connection_options
def audit(file: Path, sinks: tuple[str, ...], style: str, connection: Connection) -> None:
    """Prove of the exactly-once topics of FILE that nothing was skipped or doubled on the way.

    The ranges that were read follow each other, every transaction that a decision lists is shown row for row, and
    nothing that the sink wrote is shown beside them. The last decisions of a sink are kept, a thousand of them or
    8 MiB. For tables there is `penstock lake audit`.

    Exit code 10 when something is not as it must be.
    """
    from penstock.spark.pipeline.auditing import audit_topics
    from penstock.spark.pipeline.reading import read_flow

    flow = _over_file(read_flow(file), connection)
    _check_sinks(flow, sinks)
    found = audit_topics(flow.only(sinks) if sinks else flow)
    data = [{**result.to_json(), "sink": name} for name, result in found]
    show(data, style, "\n\n".join(f"sink {name}, {result}" for name, result in found))
    if not found:
        click.echo(f"no sink of {file} says exactly_once = true", err=True)
    if not all(result.clean for _, result in found):
        click.get_current_context().exit(UNHEALTHY)


@pipeline.command(epilog=examples("penstock pipeline stop orders"))
@click.argument("name")
@deadline_option
@connection_options
def stop(name: str, within_s: float, connection: Connection) -> None:
    """Stop the pipeline NAME after the batches that run, here or, through the cluster, elsewhere."""
    from penstock.model.errors import PenstockError
    from penstock.spark.pipeline.listing import stop_elsewhere, stop_here

    found = _named(name, connection)
    if not found.running:
        click.echo(f"{name} is not running: it is {found.state}", err=True)
        return
    if found.here:
        stopped = stop_here(name, within_s=within_s)
    else:
        login = _keywords(connection)
        stopped = stop_elsewhere(name, connection.bootstrap, within_s=within_s, settings=login)
    if not stopped:
        raise PenstockError(f"{name} on {found.host} was asked to stop and has not within {within_s:g} s")
    click.echo(f"{name} is stopped", err=True)


@pipeline.command(
    epilog=examples(
        "penstock pipeline reset orders --yes", "penstock pipeline reset orders.toml --sink lake --format json --yes"
    )
)
@click.argument("pipeline_or_file", metavar="NAME|FILE")
@sink_option
@click.option("--from", "start", metavar="WHEN", help="Where sinks begin: earliest, latest or a time. Not for tables.")
@yes_option
@format_option
@connection_options
def reset(
    pipeline_or_file: str, sinks: tuple[str, ...], start: str | None, yes: bool, style: str, connection: Connection
) -> None:
    """Forget the checkpoints of a pipeline that does not run. Says what that means before anything is removed.

    Tables go on at the offsets they hold; everything else begins anew.
    """
    from dataclasses import asdict

    from penstock.model.errors import PenstockError
    from penstock.spark.pipeline.reading import read_flow
    from penstock.spark.pipeline.resetting import carry_out, plan_reset
    from penstock.spark.sessions import check_spark

    if start is not None and start not in ("earliest", "latest"):
        _check_time(start, "--from")
    flow = _over_file(read_flow(_file_of(pipeline_or_file)), connection)
    check_spark()
    _check_sinks(flow, sinks)
    for each in _all(connection):
        if each.name == flow.name and each.running:
            raise PenstockError(f"{flow.name} is running on {each.host}: `penstock pipeline stop {flow.name}` first")
    plan = plan_reset(flow, sinks, start)
    rows = [(each.sink, each.batch if each.batch >= 0 else None, each.words) for each in plan]
    if not yes:
        click.echo(table(("SINK", "BATCH", "WHAT HAPPENS"), rows), err=True)
        click.confirm(f"Forget the checkpoints of {', '.join(each.sink for each in plan)}?", abort=True, err=True)
    carry_out(flow, plan)
    show([asdict(each) for each in plan], style, table(("SINK", "BATCH", "WHAT HAPPENS"), rows) if yes else "")
    click.echo(f"forgot the checkpoints of {', '.join(each.sink for each in plan)}", err=True)


one_sink_option = click.option("--sink", required=True, metavar="NAME", help="The sink whose table it is.")


@pipeline.command(epilog=examples("penstock pipeline backfill orders.toml --sink lake --into orders_new"))
@file_argument
@one_sink_option
@click.option("--into", required=True, metavar="TABLE", help="The new table; one that was begun is gone on with.")
@click.option(
    "--from", "start", default="earliest", show_default=True, metavar="WHEN", help="A time such as 2026-11-01T00:00Z."
)
@click.option("--master", metavar="URL", help="The Spark to run on, in place of the file's.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@connection_options
def backfill(
    file: Path, sink: str, into: str, start: str, master: str | None, quiet: bool, connection: Connection
) -> None:
    """Make the table of a sink anew beside the one that is there, by FILE as it is now, while the pipeline runs on.

    It is filled by a stream with a checkpoint of its own, each record once, up to what is there now; begun again it
    goes on. `penstock pipeline swap` then puts it into the place of the old one.
    """
    from penstock.spark.pipeline.home import Home, Job
    from penstock.spark.pipeline.reading import read_flow
    from penstock.spark.pipeline.renewing import Renewal, renewed
    from penstock.spark.sessions import check_spark

    if start != "earliest":
        _check_time(start, "--from")
    flow = _over_file(read_flow(file), connection, master)
    _check_sinks(flow, (sink,))
    work = Renewal(sink, into, start)
    made = renewed(flow, work)
    check_spark()
    bootstrap = flow.bootstrap or connection.bootstrap
    job = Job(str(flow.path), bootstrap, flow.spark.master, dict(flow.kafka), once=True, renewal=work.to_json())
    _supervise(Home(made.name), made, job, quiet=quiet, style="text")
    click.echo(f"`penstock pipeline swap {file} --sink {sink} --with {into}` puts it into place", err=True)


@pipeline.command(epilog=examples("penstock pipeline swap orders.toml --sink lake --with orders_new --yes"))
@file_argument
@one_sink_option
@click.option("--with", "new", required=True, metavar="TABLE", help="The table that `backfill` has made.")
@click.option("--keep", default="", metavar="NAME", help="What the old table is called then; TABLE_before.")
@yes_option
@connection_options
def swap(file: Path, sink: str, new: str, keep: str, yes: bool, connection: Connection) -> None:
    """Put a table that `backfill` has made into the place of the sink's own. The pipeline must not be running.

    The sink goes on where the backfill ended, with its state; the old table stays under another name. Broken off, it
    is gone on with by the same command.
    """
    from penstock.model.errors import PenstockError
    from penstock.spark.pipeline.reading import read_flow
    from penstock.spark.pipeline.renewing import BACKFILL
    from penstock.spark.pipeline.swapping import carry_out, forget, plan_swap
    from penstock.spark.sessions import check_spark

    flow = _over_file(read_flow(file), connection)
    check_spark()
    _check_sinks(flow, (sink,))
    for each in _all(connection):
        if each.name in (flow.name, f"{flow.name}-{BACKFILL}") and each.running:
            raise PenstockError(f"{each.name} is running on {each.host}: `penstock pipeline stop {each.name}` first")
    plan = plan_swap(flow, sink, new, keep)
    if not yes:
        click.confirm(f"{plan.words}. Do it?", abort=True, err=True)
    carry_out(plan)
    forget(flow, plan)
    click.echo(plan.words, err=True)


@pipeline.command(
    epilog=examples(
        "penstock pipeline redrive orders.toml --source orders --dry-run",
        "penstock pipeline redrive orders.toml --source orders --into orders-again --limit 1000 --format json",
    )
)
@file_argument
@click.option("--source", required=True, metavar="NAME", help="The source whose dead letters they are.")
@click.option("--into", metavar="TOPIC", help="Send them there, by their keys; each to its own topic if not given.")
@click.option("--dry-run", is_flag=True, help="Only count what would be sent, and say why they are dead letters.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Send so many and end.")
@click.option(
    "--rate",
    "rate_per_s",
    type=click.FloatRange(min=0, min_open=True),
    default=1_000.0,
    show_default=True,
    metavar="N",
    help="Send no more than so many a second.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@format_option
@connection_options
def redrive(
    file: Path,
    source: str,
    into: str | None,
    dry_run: bool,
    limit: int | None,
    rate_per_s: float,
    quiet: bool,
    style: str,
    connection: Connection,
) -> None:
    """Send the dead letters of a source of FILE back to their topic, after a mend. The pipeline may be running.

    Key and headers are as they were; the header penstock.redriven says where the record was before. Each letter is
    sent once, in a transaction with the mark that it was: a run that ends early, or is killed, is gone on with by the
    same command, and one more sends nothing.
    """
    from penstock.cli.redriving import show_redriven, watching
    from penstock.spark.pipeline.reading import read_flow
    from penstock.spark.pipeline.redriving import redrive as send_back

    flow = _over_file(read_flow(file), connection)
    with watching(quiet=quiet) as watch:
        done = send_back(flow, source, into=into, limit=limit, rate_per_s=rate_per_s, dry_run=dry_run, watch=watch)
    show_redriven(done, style)


def _file_of(given: str) -> Path:
    """A file as it is, or that of a pipeline which ran on this machine."""
    from penstock.spark.pipeline.home import Home

    path = Path(given)
    if path.is_file():
        return path
    state = None if "/" in given else Home(given).state()
    if state is None:
        _not_found(f"{given} is neither a file nor a pipeline that ran on this machine")
    return Path(state.file)


def _named(name: str, connection: Connection) -> Listed:
    from penstock.declared.mistakes import did_you_mean

    found = {each.name: each for each in _all(connection)}
    if name not in found:
        _not_found(f"no pipeline {name!r} is known{did_you_mean(name, found)}")
    return found[name]


def _all(connection: Connection) -> list[Listed]:
    """A cluster that nobody named and that does not answer is passed over with a word."""
    from penstock.client.errors import ClientError
    from penstock.spark.pipeline.listing import QUIET_MS, elsewhere, here, merged
    from penstock.transport.dial import LinkError

    local = here()
    source = click.get_current_context().get_parameter_source("bootstrap")
    asked = source is click.core.ParameterSource.COMMANDLINE
    patience = {} if asked else {"default_api_timeout_ms": str(QUIET_MS)}
    settings = {**patience, **_keywords(connection)}
    try:
        remote = elsewhere(connection.bootstrap, settings)
    except (ClientError, LinkError, OSError, TimeoutError):
        if asked:
            raise
        click.echo(f"only this machine was asked: no broker answers at {connection.bootstrap}", err=True)
        remote = {}
    return merged(local, remote)


def _keywords(connection: Connection) -> dict[str, Any]:
    """What -X, the profile and --client-config say, for clients of any kind."""
    if not connection.given and not connection.remembered:
        return {}
    from penstock.client.settings import AdminSettings

    keywords = connection.beside().keywords(AdminSettings)
    return {name: value for name, value in keywords.items() if name not in ("bootstrap_servers", "client_id")}


def _with_lag_of_now(found: list[Listed], connection: Connection) -> list[Listed]:
    from penstock.client.settings import AdminSettings
    from penstock.spark.pipeline.listing import with_lag_of_now

    def silent(bootstrap: str) -> None:
        click.echo(f"the lag is that of the last batch: no broker answers at {bootstrap}", err=True)

    def settings_for(bootstrap: str) -> dict[str, Any]:
        return connection.towards(bootstrap).beside().keywords(AdminSettings)

    return with_lag_of_now(found, settings_for, silent)


def _not_found(words: str) -> NoReturn:
    click.echo(f"penstock: {words}", err=True)
    click.get_current_context().exit(NOT_FOUND)


def _time(ms: int) -> str:
    from datetime import datetime

    return datetime.fromtimestamp(ms / 1000).astimezone().isoformat(sep=" ", timespec="seconds")


def _now_ms() -> int:
    import time

    return time.time_ns() // 1_000_000
