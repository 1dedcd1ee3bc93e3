"""`penstock lake`: tables, show, query, snapshots, compact, audit."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from penstock.cli.failures import FAILED, NOT_FOUND, UNHEALTHY, USAGE
from penstock.cli.options import connection_options, examples, format_option
from penstock.cli.output import show, table
from penstock.declared.amounts import size_of
from penstock.model.errors import PenstockError
from penstock.model.units import count

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.spark.lake.findings import Audit
    from penstock.spark.lake.store import TableStore
    from penstock.spark.lake.warehouse import Warehouse

Command = TypeVar("Command", bound=Callable[..., Any])

_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def age(text: str) -> timedelta:
    """`7d`, `12h`: how long ago."""
    number, unit = text[:-1], text[-1:].lower()
    if unit not in _UNITS_S or not number.replace(".", "", 1).isdigit():
        raise click.BadParameter(f"{text!r} is not a time such as 30m, 12h, 7d")
    return timedelta(seconds=float(number) * _UNITS_S[unit])


def size(text: str) -> int:
    """`128m`: bytes."""
    found = size_of(text)
    if found is None or found < 4096:
        raise click.BadParameter(f"{text!r} is not a size such as 64m, 1g, of at least 4096 bytes")
    return found


@contextmanager
def said_plainly() -> Iterator[None]:
    """What the lake raises, as exit codes."""
    from penstock.spark.errors import BadOption
    from penstock.spark.lake.query import SqlRefused
    from penstock.spark.lake.warehouse import NoSuchTable

    try:
        yield
    except (NoSuchTable, BadOption, SqlRefused) as failure:
        code = NOT_FOUND if isinstance(failure, NoSuchTable) else USAGE if isinstance(failure, BadOption) else FAILED
        _end(str(failure), code)


def _end(words: str, code: int) -> NoReturn:
    click.echo("penstock: " + "\n  ".join(words.splitlines()), err=True)
    click.get_current_context().exit(code)


def warehouse_options(command: Command) -> Command:
    """Adds --warehouse, --catalog and how both are reached; the command is given what they come to as `warehouse`."""

    @functools.wraps(command)
    def wrapped(
        *arguments: Any,
        directory: str,
        catalog: str,
        storage: tuple[str, ...],
        catalog_settings: tuple[str, ...],
        **rest: Any,
    ) -> Any:
        with said_plainly():
            from penstock.spark.lake.warehouse import Warehouse
            from penstock.spark.stores.settings import check_catalog, check_storage

            reached, login = _pairs("--storage", storage), _pairs("--catalog-setting", catalog_settings)
            check_storage(reached, directory)
            check_catalog(login)
            found = Warehouse(directory, catalog, storage=reached, catalog_settings=login)
            return command(*arguments, warehouse=found, **rest)

    decorated: Any = wrapped
    for option in (
        click.option(
            "--catalog-setting",
            "catalog_settings",
            multiple=True,
            metavar="NAME=VALUE",
            help="How to log in to the catalog: warehouse, credential, token and others of [catalog].",
        ),
        click.option(
            "--storage",
            multiple=True,
            envvar="PENSTOCK_STORAGE",
            show_envvar=True,
            metavar="NAME=VALUE",
            help="How an object store is reached: endpoint, region, access_key and others of [storage].",
        ),
        click.option(
            "--catalog",
            default="",
            metavar="URI",
            help="Catalog of Iceberg tables: sqlite:///FILE, http(s)://…, name=NAME; else catalog.db of the warehouse.",
        ),
        click.option(
            "--warehouse",
            "directory",
            envvar="PENSTOCK_WAREHOUSE",
            show_envvar=True,
            default="lake",
            show_default=True,
            metavar="DIR",
            help="The directory of the tables.",
        ),
    ):
        decorated = option(decorated)
    result: Command = decorated
    return result


def _pairs(option: str, given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise click.BadParameter("NAME=VALUE is wanted, such as endpoint=https://…", param_hint=option)
        found[name.strip()] = value.strip()
    return found


@click.group()
def lake() -> None:
    """See, ask, tidy and prove the tables that topics are written to."""


@lake.command(epilog=examples("penstock lake tables", "penstock lake tables --warehouse lake --format json"))
@format_option
@warehouse_options
def tables(style: str, warehouse: Warehouse) -> None:
    """List the tables of a warehouse: rows, files, size."""
    from penstock.cli import lake_output as output

    found = warehouse.tables()
    data = []
    for each in found:
        try:
            data.append(output.summary(each.name, each.open()))
        except (PenstockError, OSError) as failure:
            # One that is broken does not hide the others.
            click.echo(f"penstock: {each.name} cannot be read: {failure}", err=True)
    rows = [
        (d["name"], d["format"], d["rows"], d["files"], output.size_text(d["bytes"]), d["version"], d["changed"])
        for d in data
    ]
    headings = ("TABLE", "FORMAT", "ROWS", "FILES", "SIZE", "VERSION", "CHANGED")
    show(data, style, table(headings, rows) if rows else "")
    if not found:
        click.echo(f"no tables in {warehouse.directory}", err=True)


@lake.command("show", epilog=examples("penstock lake show orders", "penstock lake show lake/orders --format json"))
@click.argument("name", metavar="TABLE")
@format_option
@warehouse_options
def show_table(name: str, style: str, warehouse: Warehouse) -> None:
    """Show columns, partitioning and how far TABLE, a name or a path, has the topics that feed it."""
    from penstock.cli import lake_output as output

    store = warehouse.find(name).open()
    data = output.description(name, store)
    show(data, style, output.description_text(data))


@lake.command(
    epilog=examples(
        'penstock lake query "select count(*) from orders"',
        'penstock lake query "select * from orders where n < 3" --format csv',
    )
)
@click.argument("sql")
@click.option(
    "--engine", type=click.Choice(["duckdb", "spark"]), default="duckdb", show_default=True, help="Who answers."
)
@click.option("--master", default="", metavar="URL", help="With --engine spark: where it runs; else on this machine.")
@click.option(
    "--limit", type=click.IntRange(min=0), default=1000, show_default=True, help="Rows to print at most; 0 is all."
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "yaml", "csv"]),
    default="text",
    help="How to print the result.",
)
@warehouse_options
def query(sql: str, engine: str, master: str, limit: int, style: str, warehouse: Warehouse) -> None:
    """Ask tables with SQL. Nothing is changed.

    Tables go by the names that `penstock lake tables` lists.
    """
    from penstock.cli import lake_output as output
    from penstock.spark.asking import ask_spark
    from penstock.spark.lake.query import ask_duckdb

    if master and engine != "spark":
        raise click.UsageError("--master goes with --engine spark")
    most = limit or None
    answer = (
        ask_spark(warehouse, sql, master=master, limit=most)
        if engine == "spark"
        else ask_duckdb(warehouse, sql, limit=most)
    )
    if style == "csv":
        click.echo(output.csv_text(answer.rows), nl=False)
    else:
        rows = output.plain_rows(answer.rows)
        show(rows, style, output.rows_text(answer.rows.schema.names, rows))
    if answer.more:
        click.echo(f"there are more than {count('row', limit)}; --limit 0 shows all", err=True)


@lake.command(epilog=examples("penstock lake snapshots orders", "penstock lake snapshots orders --limit 5 --ledger"))
@click.argument("name", metavar="TABLE")
@click.option(
    "--limit", type=click.IntRange(min=0), default=20, show_default=True, help="The newest so many; 0 is all."
)
@click.option("--ledger", is_flag=True, help="Also those that the table has forgotten and its ledger has not.")
@format_option
@warehouse_options
def snapshots(name: str, limit: int, ledger: bool, style: str, warehouse: Warehouse) -> None:
    """List the versions of TABLE: who committed what, from which offsets."""
    from penstock.cli import lake_output as output
    from penstock.spark.lake.ledger import Ledger

    store = warehouse.find(name).open()
    kept = {commit.version: commit for commit in store.commits()}
    written_down = Ledger(store.location, store.storage).entries() if ledger else ()
    found = {**{entry.version: entry for entry in written_down}, **kept}
    commits = [found[version] for version in sorted(found)][-limit if limit else 0 :]
    data = [{**commit.to_json(), "kept": commit.version in kept} for commit in commits]
    show(data, style, output.snapshots_text(data) if data else "")
    if not data:
        click.echo(f"{name} has no versions yet", err=True)


@lake.command(
    epilog=examples(
        "penstock lake compact orders",
        "penstock lake compact orders --expire-older-than 7d --sweep-older-than 7d",
    )
)
@click.argument("names", nargs=-1, required=True, metavar="TABLE...")
@click.option(
    "--target-bytes", type=size, default="128m", show_default=True, metavar="SIZE", help="Size of files to aim at."
)
@click.option(
    "--expire-older-than",
    "expire",
    type=age,
    metavar="AGE",
    help="Also forget versions older than this, such as 7d, and delete the files that only they had.",
)
@click.option(
    "--sweep-older-than",
    "sweep",
    type=age,
    metavar="AGE",
    help="Also delete files that no version names and that are older than this: at least 1d, for Delta 7d.",
)
@format_option
@warehouse_options
def compact(
    names: tuple[str, ...],
    target_bytes: int,
    expire: timedelta | None,
    sweep: timedelta | None,
    style: str,
    warehouse: Warehouse,
) -> None:
    """Make few large files of many small ones, beside whoever writes; the rows stay as they are.

    Old files stay for readers of old versions until these are expired.
    """
    from penstock.cli import lake_output as output
    from penstock.spark.lake.upkeep import tidy

    now = datetime.now(UTC)
    found = [(name, warehouse.find(name).open()) for name in names]
    for name, store in found:
        _check_safe(name, store, sweep)
    data = []
    for name, store in found:
        with steps() as told:
            done = tidy(
                store,
                target_bytes=target_bytes,
                expire_before=now - expire if expire is not None else None,
                sweep_before=now - sweep if sweep is not None else None,
                told=told,
            )
        data.append({"table": name, **done.to_json()})
    show(data, style, output.tidied_text(data))


def _check_safe(name: str, store: TableStore, sweep: timedelta | None) -> None:
    from penstock.spark.lake.upkeep import SAFE_AGE

    safe = SAFE_AGE[store.format]
    if sweep is not None and sweep < safe:
        raise click.BadParameter(
            f"{name}: files younger than {safe.days}d may belong to a task or a reader that still runs",
            param_hint="--sweep-older-than",
        )


@lake.command(epilog=examples("penstock lake audit orders", "penstock lake audit --format json"))
@click.argument("names", nargs=-1, metavar="[TABLE]...")
@format_option
@connection_options
@warehouse_options
def audit(names: tuple[str, ...], style: str, connection: Connection, warehouse: Warehouse) -> None:
    """Prove from commits and ledger that no offset was skipped or doubled; all tables if none is named.

    Offsets that hold no record (compacted, markers of transactions, aborted) are counted by the commits. Where one does
    not explain them all, the topic is read again: from the brokers that the table names, or from those of -b.

    Exit code 10 when something is not as it must be.
    """
    from penstock.spark.lake.store import NotUnderstood

    chosen = [warehouse.find(name) for name in names] if names else warehouse.tables()
    found = []
    refused = False
    for each in chosen:
        try:
            with steps() as told:
                told(f"auditing {each.name}")
                store = each.open()
                found.append((each.name, _audited(each.name, store, connection)))
        except NotUnderstood as failure:
            # What nobody can prove is not clean, and does not hide the others.
            click.echo(f"penstock: {each.name} cannot be audited: {failure}", err=True)
            refused = True
    data = [{**result.to_json(), "table": name} for name, result in found]
    show(data, style, "\n\n".join(str(result) for _, result in found))
    if not chosen:
        click.echo(f"no tables in {warehouse.directory}", err=True)
    if refused or not all(result.clean for _, result in found):
        click.get_current_context().exit(UNHEALTHY)


def _audited(name: str, store: TableStore, connection: Connection) -> Audit:
    """With what the topics tell, if they have to be asked and answer."""
    from penstock.client.settings import ConsumerSettings
    from penstock.spark.errors import BadOption, Missing
    from penstock.spark.lake.audit import audit as look
    from penstock.spark.recount import recount_for

    def settings_for(bootstrap: str) -> dict[str, Any]:
        return connection.towards(bootstrap).beside().keywords(ConsumerSettings)

    said = click.get_current_context().get_parameter_source("bootstrap") is click.core.ParameterSource.COMMANDLINE
    store.refresh()
    try:
        return look(store, recount_for(store, connection.bootstrap if said else "", settings_for))
    except (BadOption, Missing) as silent:
        click.echo(f"penstock: {name} is audited without its topics: {silent}", err=True)
        return look(store)


@contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """A line on a terminal that says what goes on, written over itself and taken away at the end."""
    from penstock.cli.progress import overwrite

    shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def told(words: str) -> None:
        if shown:
            overwrite(f"{words} …")

    try:
        yield told
    finally:
        if shown:
            click.echo("\r\x1b[K", err=True, nl=False)
