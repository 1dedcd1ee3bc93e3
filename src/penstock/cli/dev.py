"""`penstock dev`: a node on this machine with no format step and no file."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack

import click


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=9092, show_default=True, help="0 takes a free one.")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False),
    help="Where data is kept; .penstock in this folder if not given.",
)
@click.option("--ephemeral", is_flag=True, help="Keep data in a temporary folder that goes when the node stops.")
@click.option("-c", "--config", "configs", multiple=True, metavar="KEY=VALUE", help="A broker property; repeatable.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="warning")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text")
def dev(
    port: int, data_dir: str | None, ephemeral: bool, configs: tuple[str, ...], log_level: str, log_format: str
) -> None:
    """Run a node on 127.0.0.1 with nothing to set up. Ctrl-C stops it cleanly."""
    from penstock.cli.output import pairs
    from penstock.server.launch import dev_node, serve
    from penstock.server.logs import configure

    if data_dir is not None and ephemeral:
        raise click.UsageError("--data-dir and --ephemeral exclude each other")
    configure(log_level.upper(), form=log_format)
    with ExitStack() as stack:
        if ephemeral:
            data_dir = stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-dev-"))
        directory = data_dir or ".penstock"
        overrides = pairs(configs)

        serve(
            lambda: dev_node(directory, port=port, overrides=overrides),
            lambda node: _announce(node.port, node.admin_port, directory, ephemeral),
        )


def _announce(port: int, admin_port: int, directory: str, ephemeral: bool) -> None:
    address = f"127.0.0.1:{port}"
    click.echo("Penstock is ready.")
    click.echo(f"  bootstrap   {address}")
    if admin_port:
        click.echo(f"  metrics     http://127.0.0.1:{admin_port}/metrics")
    click.echo(f"  data        {directory}{' (gone when the node stops)' if ephemeral else ''}")
    click.echo(f"  try         penstock topic create clicks -p 6 -b {address}")
    click.get_text_stream("stdout").flush()
