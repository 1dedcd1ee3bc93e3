"""`penstock cluster`: info, health, brokers; the other subjects have modules of their own."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.cluster_config import config
from penstock.cli.cluster_decommission import decommission
from penstock.cli.cluster_features import features
from penstock.cli.cluster_partitions import alias, elect, partitions
from penstock.cli.cluster_quorum import quorum
from penstock.cli.cluster_rearrange import balance
from penstock.cli.options import connection_options, examples, format_option
from penstock.cli.output import show, table, wrapped
from penstock.cli.watching import interval_option, watch_option
from penstock.model.units import count

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.client.admin import Admin, BrokerInfo


@click.group()
def cluster() -> None:
    """See who is in the cluster, how it is, and change the defaults of its brokers."""


@cluster.command(epilog=examples("penstock cluster info"))
@format_option
@connection_options
def info(style: str, connection: Connection) -> None:
    """Show the cluster's id, brokers, controller and its epoch, features and how much it holds."""
    from penstock.cli.connection import administer
    from penstock.operations.health import TIMEOUT_MS

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

    data = administer(connection, work, TIMEOUT_MS)
    led = f"{data['controller']} (epoch {data['controller_epoch']})"
    controller = led if data["controller"] >= 0 else "nobody; `penstock cluster health` says more"
    lines = [
        f"cluster      {data['cluster_id']}",
        f"controller   {controller}",
        f"topics       {data['topics']} with {count('partition', data['partitions'])}",
        "features     " + ", ".join(f"{name} {level}" for name, level in data["features"].items()),
        "",
        _brokers([(b["id"], b["host"], b["port"], b["rack"], b["fenced"]) for b in data["brokers"]]),
    ]
    show(data, style, "\n".join(lines))


@cluster.command(epilog=examples("penstock cluster brokers"))
@format_option
@connection_options
def brokers(style: str, connection: Connection) -> None:
    """List the brokers, those that are down too, with their racks, what they lead and what their disks hold."""
    from penstock.cli.connection import administer

    leads: Counter[int] = Counter()
    replicas: Counter[int] = Counter()

    async def work(admin: Admin) -> list[tuple[BrokerInfo, list[dict[str, Any]]]]:
        for topic in await admin.topics(internal=True):
            leads.update(partition.leader for partition in topic.partitions)
            replicas.update(node for partition in topic.partitions for node in partition.replicas)
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
    every = [
        (b.id, f"{b.host}:{b.port}", b.rack or "-", "down" if b.fenced else "up", leads[b.id], replicas[b.id])
        for b, _ in found
    ]
    text = [table(("ID", "ADDRESS", "RACK", "STATE", "LEADS", "REPLICAS"), every)]
    rows = [
        (b.id, each["path"], each["error"] or "online", each["replicas"], _size(each["size_bytes"]),
         _size(each["usable_bytes"]))
        for b, dirs in found
        for each in dirs
    ]  # fmt: skip
    if rows:
        text += ["", table(("ID", "DIRECTORY", "STATE", "REPLICAS", "SIZE", "FREE"), rows)]
    data = [
        {**asdict(broker), "leads": leads[broker.id], "replicas": replicas[broker.id], "log_dirs": dirs}
        for broker, dirs in found
    ]
    show(data, style, "\n".join(text))


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
    from penstock.cli.watching import watch as keep_watching
    from penstock.operations.health import TIMEOUT_MS, look, sentence

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
            lines = [line for reason in reasons for line in (f"  {sentence(reason)}", f"    try: {reason.attempt}")]
            words = "\n".join(wrapped(line, indent=6) for line in lines)
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


cluster.add_command(features)
cluster.add_command(quorum)
cluster.add_command(partitions)
cluster.add_command(alias(elect, "penstock cluster elect"))
cluster.add_command(alias(balance, "penstock cluster balance --dry-run"))
cluster.add_command(decommission)
cluster.add_command(config)
