"""`penstock dev kill|start|stop`: the nodes of a cluster that `penstock dev --nodes N` made, one by one."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.dev_ports import NODES_MAX
from penstock.cli.options import examples, log_format_option, log_level_option

if TYPE_CHECKING:
    from penstock.cli.dev_cluster import DevCluster

folder_option = click.option(
    "--data-dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=".penstock",
    show_default=True,
    help="The folder of the cluster.",
)
node_argument = click.argument("node_id", type=click.IntRange(1, NODES_MAX), metavar="NODE")


@click.command(epilog=examples("penstock dev kill 2 --data-dir data"))
@node_argument
@folder_option
def kill(node_id: int, folder: Path) -> None:
    """Kill -9 a node, as a crash would."""
    from penstock.cli.dev_cluster import found_in
    from penstock.cli.dev_processes import kill as kill_process

    cluster = found_in(folder)
    _refuse_unknown(cluster, node_id)
    pid = kill_process(cluster.process(node_id))
    if pid is None:
        click.echo(f"node {node_id} was not running", err=True)
    else:
        click.echo(f"killed node {node_id} (process {pid})", err=True)


def _refuse_unknown(cluster: DevCluster, node_id: int) -> None:
    from penstock.client.errors import BrokerRefused
    from penstock.model.errors import BROKER_ID_NOT_REGISTERED

    if node_id not in cluster.nodes:
        known = ", ".join(map(str, cluster.nodes))
        raise BrokerRefused(
            f"there is no node {node_id} in {cluster.folder}; there are {known}", error=BROKER_ID_NOT_REGISTERED
        )


@click.command(epilog=examples("penstock dev start 2 --data-dir data", "penstock dev start 4 --data-dir data"))
@node_argument
@folder_option
@log_level_option("info")
@log_format_option
def start(node_id: int, folder: Path, log_level: str, log_format: str) -> None:
    """Bring a node back, or add one that was not there: a broker that joins the cluster.

    A new broker holds nothing yet; `penstock cluster partitions balance` gives it its share.
    """
    from penstock.cli.dev_cluster import found_in
    from penstock.cli.dev_processes import wait_ready

    cluster = found_in(folder)
    node = cluster.process(node_id)
    if node.pid is not None:
        click.echo(f"node {node_id} runs already (process {node.pid})", err=True)
        return
    cluster.check_ports(node_id)
    is_new = node_id not in cluster.nodes
    if is_new:
        cluster.add(node_id)
    cluster.stay(node_id)
    node.start(log_level=log_level, log_format=log_format)
    wait_ready([node])
    click.echo(f"node {node_id} is ready on {cluster.address(node_id)}", err=True)
    if is_new:
        click.echo(
            f"it holds nothing yet; give it its share with: penstock cluster partitions balance "
            f"{cluster.asked_at(cluster.bootstrap)}",
            err=True,
        )


@click.command(epilog=examples("penstock dev stop --data-dir data"))
@click.argument("node_ids", nargs=-1, type=click.IntRange(1, NODES_MAX), metavar="[NODE...]")
@folder_option
def stop(node_ids: tuple[int, ...], folder: Path) -> None:
    """Stop nodes cleanly; all of them, and the command that runs them, if none is named."""
    from penstock.cli.dev_cluster import found_in
    from penstock.cli.dev_demo import stop_kept
    from penstock.cli.dev_processes import STOP_TIMEOUT_S, stop_all, wait_until
    from penstock.cli.dev_running import Foreground

    cluster = found_in(folder)
    for node_id in node_ids:
        _refuse_unknown(cluster, node_id)
    chosen = [cluster.process(node_id) for node_id in node_ids or cluster.nodes]
    running = [node.node_id for node in chosen if node.pid is not None]
    beside = [] if node_ids else stop_kept(folder)
    foreground = Foreground(folder)
    if not node_ids and foreground.pid is not None:
        os.kill(foreground.pid, signal.SIGTERM)
        wait_until(lambda: foreground.pid is None, STOP_TIMEOUT_S)
    stop_all(chosen)
    if beside:
        click.echo(f"stopped {', '.join(beside)}", err=True)
    names = ", ".join(map(str, running))
    click.echo(f"stopped node {names}" if running else "no node was running", err=True)
