"""`penstock cluster config`: properties of brokers while they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from penstock.cli.options import connection_options, examples, format_option, pairs
from penstock.cli.output import show, table

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.client.admin import Admin, ConfigEntry, ConfigResource

broker_option = click.option(
    "--broker", type=click.IntRange(min=0), metavar="ID", help="Of this broker; the defaults of all if not given."
)


@click.group()
def config() -> None:
    """Read and change properties of brokers while they run."""


def _resource(broker: int | None) -> ConfigResource:
    from penstock.client.admin.configs import ConfigResource

    return ConfigResource.cluster() if broker is None else ConfigResource.broker(broker)


def _read(connection: Connection, broker: int | None) -> dict[str, ConfigEntry]:
    """The properties of one broker, or what was set as default of all of them."""
    from penstock.cli.connection import administer

    resource = _resource(broker)

    async def work(admin: Admin) -> dict[str, ConfigEntry]:
        return (await admin.describe_configs([resource])).checked()[resource]

    return administer(connection, work)


@config.command("list", epilog=examples("penstock cluster config list", "penstock cluster config list --broker 1"))
@broker_option
@click.option("--all", "everything", is_flag=True, help="With --broker: defaults too.")
@format_option
@connection_options
def list_configs(broker: int | None, everything: bool, style: str, connection: Connection) -> None:
    """List what was set for all brokers, or what one broker runs with."""
    found = _read(connection, broker)
    entries = [each for _, each in sorted(found.items()) if everything or each.source != "default"]
    rows = [(each.name, _value(each), each.source) for each in entries]
    data = {each.name: {"value": each.value, "source": each.source, "read_only": each.read_only} for each in entries}
    show(data, style, table(("NAME", "VALUE", "SOURCE"), rows) if rows else "")
    if not rows:
        click.echo("nothing was set; `penstock cluster config set KEY=VALUE` does it", err=True)


def _value(entry: ConfigEntry) -> str:
    return "(secret)" if entry.sensitive else entry.value or ""


@config.command("get", epilog=examples("penstock cluster config get log.retention.ms --broker 1"))
@click.argument("name")
@broker_option
@format_option
@connection_options
def get_config(name: str, broker: int | None, style: str, connection: Connection) -> None:
    """Print one property of a broker, or the default that was set for all of them."""
    from penstock.cli.config_names import unknown_broker_configs
    from penstock.cli.connection import administer
    from penstock.cli.failures import NOT_FOUND

    resource = _resource(broker)

    async def work(admin: Admin) -> ConfigEntry | str:
        """The property, or why there is none."""
        entry = (await admin.describe_configs([resource])).checked()[resource].get(name)
        if entry is not None:
            return entry
        if unknown := await unknown_broker_configs(admin, broker, [name]):
            return unknown[0]
        where = "for all brokers; --broker ID asks one of them" if broker is None else f"of broker {broker}"
        return f"{name} is not set {where}"

    entry = administer(connection, work)
    if isinstance(entry, str):
        click.echo(f"penstock: {entry}", err=True)
        click.get_current_context().exit(NOT_FOUND)
    show({"name": name, "value": entry.value, "source": entry.source}, style, _value(entry))


@config.command(
    "set",
    epilog=examples(
        "penstock cluster config set log.retention.ms=86400000", "penstock cluster config set -d log.retention.ms"
    ),
)
@click.argument("changes", nargs=-1, metavar="KEY=VALUE...")
@click.option("-d", "--delete", "deleted", multiple=True, metavar="KEY", help="Back to the default; repeatable.")
@broker_option
@click.option("--dry-run", is_flag=True, help="Check everything, change nothing.")
@connection_options
def set_config(
    changes: tuple[str, ...], deleted: tuple[str, ...], broker: int | None, dry_run: bool, connection: Connection
) -> None:
    """Set properties of all brokers, or of one, while they run."""
    from penstock.cli.config_names import check_broker_configs
    from penstock.cli.connection import administer

    wanted: dict[str, str | None] = {**pairs(changes, "KEY=VALUE"), **dict.fromkeys(deleted)}
    if not wanted:
        raise click.UsageError("nothing to change: give KEY=VALUE or -d KEY")
    resource = _resource(broker)

    async def work(admin: Admin) -> None:
        await check_broker_configs(admin, broker, wanted)
        (await admin.alter_configs({resource: wanted}, validate_only=dry_run)).checked()

    administer(connection, work)
    verb = "could change" if dry_run else "changed"
    click.echo(
        f"{verb} {', '.join(sorted(wanted))} of {'all brokers' if broker is None else f'broker {broker}'}", err=True
    )
