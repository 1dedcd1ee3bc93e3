"""`penstock cluster`: info, health, brokers, quorum, config."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.options import connection_options, examples, format_option, pairs
from penstock.cli.output import show, table
from penstock.cli.watching import interval_option, watch_option

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.client.admin import Admin, BrokerInfo, ConfigEntry, ConfigResource

broker_option = click.option(
    "--broker", type=click.IntRange(min=0), metavar="ID", help="Of this broker; the defaults of all if not given."
)


@click.group()
def cluster() -> None:
    """See who is in the cluster, how it is, and change the defaults of its brokers."""


@cluster.command(epilog=examples("penstock cluster info"))
@format_option
@connection_options
def info(style: str, connection: Connection) -> None:
    """Show the cluster's id, brokers, controller and its epoch, features and how much it holds."""
    from penstock.cli.connection import administer

    async def work(admin: Admin) -> dict[str, Any]:
        found = await admin.describe_cluster()
        topics = await admin.topics(internal=True)
        features = await admin.features()
        return {
            **asdict(found),
            "topics": len(topics),
            "partitions": sum(len(topic.partitions) for topic in topics),
            "features": {each.name: each.finalized for each in features if each.finalized is not None},
        }

    data = administer(connection, work)
    controller = f"{data['controller']} (epoch {data['controller_epoch']})"
    lines = [
        f"cluster      {data['cluster_id']}",
        f"controller   {controller}",
        f"topics       {data['topics']} with {data['partitions']} partitions",
        "features     " + ", ".join(f"{name} {level}" for name, level in data["features"].items()),
        "",
        _brokers([(b["id"], b["host"], b["port"], b["rack"], b["fenced"]) for b in data["brokers"]]),
    ]
    show(data, style, "\n".join(lines))


@cluster.command(epilog=examples("penstock cluster brokers"))
@format_option
@connection_options
def brokers(style: str, connection: Connection) -> None:
    """List the brokers, those that are down too, with their racks and what their disks hold."""
    from penstock.cli.connection import administer

    async def work(admin: Admin) -> list[tuple[BrokerInfo, list[dict[str, Any]]]]:
        found = (await admin.describe_cluster()).brokers
        dirs = await admin.describe_log_dirs([broker.id for broker in found if not broker.fenced])
        return [
            (
                broker,
                [
                    {
                        "path": each.path,
                        "error": each.error,
                        "size_bytes": each.size_bytes,
                        "usable_bytes": each.usable_bytes,
                        "total_bytes": each.total_bytes,
                        "replicas": len(each.replicas),
                    }
                    for each in dirs.done.get(broker.id, [])
                ],
            )
            for broker in found
        ]

    found = administer(connection, work)
    text = [_brokers([(b.id, b.host, b.port, b.rack, b.fenced) for b, _ in found])]
    rows = [
        (b.id, each["path"], each["error"] or "online", each["replicas"], _size(each["size_bytes"]),
         _size(each["usable_bytes"]))
        for b, dirs in found
        for each in dirs
    ]  # fmt: skip
    if rows:
        text += ["", table(("ID", "DIRECTORY", "STATE", "REPLICAS", "SIZE", "FREE"), rows)]
    show([{**asdict(broker), "log_dirs": dirs} for broker, dirs in found], style, "\n".join(text))


def _brokers(rows: list[tuple[Any, ...]]) -> str:
    shown = [(id_, f"{host}:{port}", rack or "-", "down" if fenced else "up") for id_, host, port, rack, fenced in rows]
    return table(("ID", "ADDRESS", "RACK", "STATE"), shown)


def _size(number: int) -> str:
    if number < 0:
        return "-"
    amount, units = float(number), iter(("B", "KB", "MB", "GB"))
    for unit in units:
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


@cluster.command(epilog=examples("penstock cluster quorum"))
@format_option
@connection_options
def quorum(style: str, connection: Connection) -> None:
    """Show the metadata quorum: leader, epoch, high watermark, voters and observers with their lag."""
    from penstock.cli.connection import administer

    found = administer(connection, lambda admin: admin.describe_quorum())
    rows = [
        (each.id, role, each.log_end, each.lag, ", ".join(found.endpoints.get(each.id, [])) or "-")
        for role, replicas in (("voter", found.voters), ("observer", found.observers))
        for each in replicas
    ]
    lines = [f"leader  {found.leader} (epoch {found.epoch}, high watermark {found.high_watermark})", ""]
    show(asdict(found), style, "\n".join([*lines, table(("ID", "ROLE", "END", "LAG", "ENDPOINT"), rows)]))


@cluster.command(epilog=examples("penstock cluster health", "penstock cluster health --watch --exit-when-healthy"))
@watch_option
@click.option("--exit-when-healthy", is_flag=True, help="With --watch: end when all is well.")
@interval_option
@format_option
@connection_options
def health(watch: bool, exit_when_healthy: bool, interval_s: float, style: str, connection: Connection) -> None:
    """Say whether the cluster is healthy, and why not. Exit code 10 when it is not."""
    from penstock.cli.connection import administer
    from penstock.cli.failures import UNHEALTHY
    from penstock.cli.health import TIMEOUT_MS, look, sentence
    from penstock.cli.watching import watch as keep_watching

    healthy = True

    async def work(admin: Admin) -> None:
        async def once() -> tuple[Any, str]:
            nonlocal healthy
            found, reasons = await look(admin)
            healthy = not reasons
            data = {
                "healthy": healthy,
                "reasons": [asdict(reason) for reason in reasons],
                "controller": found.controller,
                "controller_epoch": found.controller_epoch,
                "brokers": len(found.brokers),
            }
            words = "\n".join(f"  {sentence(reason)}\n    try: {reason.attempt}" for reason in reasons)
            return data, "healthy" if healthy else f"unhealthy\n{words}"

        if watch:
            await keep_watching(once, style, interval_s, lambda: exit_when_healthy and healthy)
        else:
            data, text = await once()
            show(data, style, text)

    if exit_when_healthy and not watch:
        raise click.UsageError("--exit-when-healthy goes with --watch")
    try:
        administer(connection, work, TIMEOUT_MS)
    except KeyboardInterrupt:
        if not watch:  # where it is the way to end
            raise
    if not healthy:
        click.get_current_context().exit(UNHEALTHY)


@cluster.group()
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
    from penstock.cli.failures import NOT_FOUND

    entry = _read(connection, broker).get(name)
    if entry is None:
        where = "for all brokers; --broker ID asks one of them" if broker is None else f"of broker {broker}"
        click.echo(f"penstock: {name} is not set {where}", err=True)
        click.get_current_context().exit(NOT_FOUND)
    assert entry is not None
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
    from penstock.cli.connection import administer

    wanted: dict[str, str | None] = {**pairs(changes, "KEY=VALUE"), **dict.fromkeys(deleted)}
    if not wanted:
        raise click.UsageError("nothing to change: give KEY=VALUE or -d KEY")
    resource = _resource(broker)

    async def work(admin: Admin) -> None:
        (await admin.alter_configs({resource: wanted}, validate_only=dry_run)).checked()

    administer(connection, work)
    verb = "could change" if dry_run else "changed"
    click.echo(
        f"{verb} {', '.join(sorted(wanted))} of {'all brokers' if broker is None else f'broker {broker}'}", err=True
    )
