"""`penstock console`: the web console as a process of its own."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from penstock.cli.amounts import Seconds
from penstock.cli.options import connection_options, examples, log_format_option, log_level_option

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.console.settings import ClusterAddress, ConsoleSettings

PORT = 8080
MISSING = (
    "the console needs the packages of the extra `console`:"
    " pip install 'starlette>=1.0' 'uvicorn>=0.40', or install Penstock with [console]"
)


@click.command(
    epilog=examples(
        "penstock console --port 0", "penstock console --port 0 --base-path /kafka --host-name console.example.com"
    )
)
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 takes a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option(
    "--host-name",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name that browsers call this console by, beside localhost; repeatable.",
)
@click.option("--base-path", default="", metavar="/PATH", help="Serve below this path, behind a proxy.")
@click.option("--read-only", is_flag=True, help="Change nothing, whoever asks.")
@click.option("--name", default="", metavar="NAME", help="What to call this cluster; its first address if not given.")
@click.option(
    "--cluster",
    "others",
    multiple=True,
    metavar="NAME=HOST:PORT",
    help="Another cluster to show; repeatable.",
)
@click.option(
    "--every",
    type=Seconds(0.1, 3600),
    default="5s",
    show_default=True,
    help="How often brokers and topics are looked at; offsets and groups half as often.",
)
@log_level_option("warning")
@log_format_option
@connection_options
def console(
    port: int,
    host: str,
    hosts: tuple[str, ...],
    base_path: str,
    read_only: bool,
    name: str,
    others: tuple[str, ...],
    every: float,
    log_level: str,
    log_format: str,
    connection: Connection,
) -> None:
    """Show clusters in a browser: topics, records, groups, pipelines, tables. Ctrl-C stops it."""
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise click.ClickException(MISSING)
    from penstock.console.settings import ConsoleSettings
    from penstock.server.logs import configure

    configure(log_level.upper(), form=log_format)
    clusters = [cluster_address(name or connection.bootstrap.partition(",")[0], connection)]
    for text in others:
        named, equals, bootstrap = text.partition("=")
        if not equals or not named or not bootstrap:
            raise click.BadParameter(f"{text!r} is not NAME=HOST:PORT", param_hint="--cluster")
        clusters.append(cluster_address(named, connection.towards(bootstrap)))
    run(ConsoleSettings(tuple(clusters), host, port, base_path, hosts, read_only, round(every * 1_000)))


def cluster_address(name: str, connection: Connection) -> ClusterAddress:
    """A cluster with the keywords of each kind of client, under a client id of the console's own.

    Quotas by client id can then hold the console without holding what else a person runs.
    """
    from penstock.client.settings import AdminSettings, ConsumerSettings, ProducerSettings
    from penstock.console.settings import ClusterAddress

    def keywords(kind: type[AdminSettings | ConsumerSettings | ProducerSettings]) -> dict[str, object]:
        return {**connection.beside().keywords(kind), "client_id": "penstock-console"}

    return ClusterAddress(name, keywords(AdminSettings), keywords(ConsumerSettings), keywords(ProducerSettings))


def run(settings: ConsoleSettings) -> None:
    """Serves until a signal comes."""
    import asyncio
    import signal

    from penstock.cli import on_a_loop
    from penstock.console.serving import listen, serve

    listening = listen(settings)

    def ready(address: str) -> None:
        click.echo(f"Penstock console is at {address}")

    async def main() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await serve(settings, listening, stop, ready)

    on_a_loop.run(main())
