"""`penstock dev`: a node on this machine with no format step and no file."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from penstock.cli.options import examples, log_format_option, log_level_option, pairs

if TYPE_CHECKING:
    from penstock.server.node import Node

ADMIN_LISTENER = "penstock.admin.listener"


@click.command(epilog=examples("penstock dev --ephemeral", "penstock dev --port 0 --data-dir data -c num.partitions=6"))
@click.option("--port", type=click.IntRange(0, 65535), default=9092, show_default=True, help="0 takes a free one.")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False),
    help="Where data is kept; .penstock in this folder if not given.",
)
@click.option("--ephemeral", is_flag=True, help="Keep data in a temporary folder that goes when the node stops.")
@click.option("-c", "--config", "configs", multiple=True, metavar="KEY=VALUE", help="A broker property; repeatable.")
@log_level_option("warning")
@log_format_option
def dev(
    port: int, data_dir: str | None, ephemeral: bool, configs: tuple[str, ...], log_level: str, log_format: str
) -> None:
    """Run a node on 127.0.0.1 with nothing to set up. Ctrl-C stops it cleanly."""
    from penstock.server.launch import dev_node, serve
    from penstock.server.logs import configure

    if data_dir is not None and ephemeral:
        raise click.UsageError("--data-dir and --ephemeral exclude each other")
    configure(log_level.upper(), form=log_format)
    with ExitStack() as stack:
        if ephemeral:
            data_dir = stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-dev-"))
        directory = data_dir or ".penstock"
        overrides = _with_free_admin_port(directory, port, pairs(configs))

        serve(
            lambda: dev_node(directory, port=port, overrides=overrides),
            lambda node: _announce(node, directory, ephemeral),
        )


def _with_free_admin_port(directory: str, port: int, overrides: dict[str, str]) -> dict[str, str]:
    """Nobody chose the admin port of a node for development, so a taken one is no reason not to start."""
    from penstock.server.launch import dev_properties

    if ADMIN_LISTENER in overrides:
        return overrides
    host, _, admin_port = dev_properties(directory, port=port, overrides={})[ADMIN_LISTENER].rpartition(":")
    return overrides if _is_free(host, int(admin_port)) else {**overrides, ADMIN_LISTENER: f"{host}:0"}


def _is_free(host: str, port: int) -> bool:
    import socket

    try:
        socket.create_server((host, port)).close()
    except OSError:
        return False
    return True


def _announce(node: Node, directory: str, ephemeral: bool) -> None:
    address = f"127.0.0.1:{node.port}"
    click.echo("Penstock is ready.")
    click.echo(f"  bootstrap   {address}")
    if node.admin_port:
        click.echo(f"  metrics     http://127.0.0.1:{node.admin_port}/metrics")
    click.echo(f"  data        {directory}{' (gone when the node stops)' if ephemeral else ''}")
    click.echo(f"  try         penstock topic create clicks -p 6 -b {address}")
