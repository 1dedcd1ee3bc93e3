"""`penstock console`: the web console as a process of its own."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from penstock.cli.amounts import Seconds
from penstock.cli.options import connection_options, examples, log_format_option, log_level_option

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.console.settings import ClusterAddress, ConsoleSettings, LoginBy, WarehouseAddress

PORT = 8080
COLLECT_AFTER = (5_000, 10, 10_000)
"""New objects, young collections and middle ones until cycles are looked for."""
SWITCH_S = 0.001
MISSING = (
    "the console needs the packages of the extra `console`:"
    " pip install 'starlette>=0.50' 'uvicorn>=0.38', or install Penstock with [console]"
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
@click.option(
    "--login",
    type=click.Choice(["none", "kafka", "oidc", "proxy"]),
    default=None,
    help="Who is let in: whoever reaches it (on the loopback only), users of the cluster, people whom an identity"
    " provider knows, or whom a proxy in front names. kafka where the cluster has logins, else none.",
)
@click.option("--oidc-issuer", metavar="URL", help="The identity provider, with --login oidc.")
@click.option("--oidc-client-id", metavar="ID", help="As whom the console asks there.")
@click.option(
    "--oidc-client-secret-file", type=click.Path(dir_okay=False, exists=True), metavar="FILE", help="With its secret."
)
@click.option("--oidc-scope", default="openid profile", show_default=True, help="What access tokens are asked for.")
@click.option(
    "--proxy-header", default="X-Forwarded-User", show_default=True, help="Names the user, with --login proxy."
)
@click.option(
    "--proxy-from",
    multiple=True,
    default=("127.0.0.1/32", "::1/128"),
    show_default=True,
    metavar="NETWORK",
    help="Where that proxy is; nobody else is believed. Repeatable. The default lets every user of this machine, who"
    " can reach the console, say who they are.",
)
@click.option(
    "--certfile", type=click.Path(dir_okay=False, exists=True), metavar="FILE", help="Serve over TLS with this."
)
@click.option("--keyfile", type=click.Path(dir_okay=False, exists=True), metavar="FILE", help="The key of --certfile.")
@click.option("--behind-tls", is_flag=True, help="A proxy in front speaks TLS to browsers.")
@click.option(
    "--audit-log",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Append a line for each login, look at records and change. penstock/console-audit.log in the directory for"
    " state of whoever starts this ($XDG_STATE_HOME, ~/.local/state), if not given.",
)
@click.option("--no-audit-log", is_flag=True, help="Write none.")
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
@click.option(
    "--warehouse",
    "warehouses",
    multiple=True,
    metavar="DIR",
    help="A directory of tables to show and to ask, as of `penstock lake`; repeatable. Else PENSTOCK_WAREHOUSE.",
)
@click.option(
    "--catalog",
    default="",
    metavar="URI",
    help="Catalog of Iceberg tables of the first --warehouse; else catalog.db of each.",
)
@click.option(
    "--storage",
    multiple=True,
    envvar="PENSTOCK_STORAGE",
    show_envvar=True,
    metavar="NAME=VALUE",
    help="How an object store of warehouses is reached, as for `penstock lake`.",
)
@click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="URL",
    help="The admin port of an agent to show, as in http://web-1:9645; repeatable.",
)
@click.option(
    "--no-history",
    is_flag=True,
    help="Keep the past in memory only, and not in the topic __penstock_history of each cluster.",
)
@click.option("--while-input", is_flag=True, help="End when standard input does: whoever started this is gone then.")
@log_level_option("warning")
@log_format_option
@connection_options
def console(
    port: int,
    host: str,
    hosts: tuple[str, ...],
    base_path: str,
    read_only: bool,
    login: LoginBy | None,
    oidc_issuer: str | None,
    oidc_client_id: str | None,
    oidc_client_secret_file: str | None,
    oidc_scope: str,
    proxy_header: str,
    proxy_from: tuple[str, ...],
    certfile: str | None,
    keyfile: str | None,
    behind_tls: bool,
    audit_log: str | None,
    no_audit_log: bool,
    name: str,
    others: tuple[str, ...],
    every: float,
    warehouses: tuple[str, ...],
    catalog: str,
    storage: tuple[str, ...],
    agents: tuple[str, ...],
    no_history: bool,
    while_input: bool,
    log_level: str,
    log_format: str,
    connection: Connection,
) -> None:
    """Show clusters in a browser: topics, records, groups, pipelines, tables. Ctrl-C stops it."""
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise click.ClickException(MISSING)
    from penstock.console.settings import ConsoleSettings, OidcSettings
    from penstock.server.logs import configure

    configure(log_level.upper(), form=log_format)
    clusters = [cluster_address(name or connection.bootstrap.partition(",")[0], connection)]
    for text in others:
        named, equals, bootstrap = text.partition("=")
        if not equals or not named or not bootstrap:
            raise click.BadParameter(f"{text!r} is not NAME=HOST:PORT", param_hint="--cluster")
        clusters.append(cluster_address(named, connection.towards(bootstrap)))
    if login is None:
        login = "kafka" if connection.security_protocol().startswith("SASL") else "none"
    oidc = None
    if oidc_issuer is not None and oidc_client_id is not None:
        secret = Path(oidc_client_secret_file).read_text("utf-8").strip() if oidc_client_secret_file else None
        oidc = OidcSettings(oidc_issuer, oidc_client_id, secret, oidc_scope)
    run(
        ConsoleSettings(
            tuple(clusters),
            login=login,
            oidc=oidc,
            proxy_header=proxy_header,
            proxy_from=proxy_from,
            certfile=certfile,
            keyfile=keyfile,
            behind_tls=behind_tls,
            host=host,
            port=port,
            base_path=base_path,
            hosts=hosts,
            read_only=read_only,
            audit_log=None if no_audit_log else audit_log or usual_audit_log(),
            warehouses=warehouse_addresses(warehouses, catalog, storage),
            agents=tuple(map(agent_address, agents)),
            history=not no_history,
            every_ms=round(every * 1_000),
        ),
        while_input=while_input,
    )


def usual_audit_log() -> str:
    """Where state of a user's programs belongs, by the rules of freedesktop.org."""
    told = os.environ.get("XDG_STATE_HOME", "")
    return str((Path(told) if told else Path.home() / ".local/state") / "penstock/console-audit.log")


def warehouse_addresses(
    directories: tuple[str, ...], catalog: str, storage: tuple[str, ...]
) -> tuple[WarehouseAddress, ...]:
    from penstock.console.settings import WarehouseAddress

    if not directories and os.environ.get("PENSTOCK_WAREHOUSE"):
        directories = (os.environ["PENSTOCK_WAREHOUSE"],)
    if (catalog or storage) and not directories:
        raise click.UsageError("--catalog and --storage go with --warehouse")
    reached = dict(_named(each) for each in storage)
    if reached:
        from penstock.spark.stores.settings import check_storage

        check_storage(reached, directories[0])
    return tuple(
        # A place on this machine is named whole, whatever directory whoever asks is in.
        WarehouseAddress(
            each if "://" in each else str(Path(each).absolute()), catalog if number == 0 else "", storage=reached
        )
        for number, each in enumerate(dict.fromkeys(directories))
    )


def _named(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter("NAME=VALUE is wanted, such as endpoint=https://…", param_hint="--storage")
    return name.strip(), value.strip()


def agent_address(text: str) -> str:
    """`http://HOST:PORT` of what somebody wrote."""
    parts = urlsplit(text if "://" in text else f"http://{text}")
    if parts.scheme != "http" or not parts.hostname or parts.path.strip("/") or parts.query or parts.username:
        raise click.BadParameter(f"{text!r} is no address such as http://web-1:9645", param_hint="--agent")
    try:
        port = parts.port
    except ValueError:
        port = None
    if port is None:
        raise click.BadParameter(f"{text!r} names no port", param_hint="--agent")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"http://{host}:{port}"


def cluster_address(name: str, connection: Connection) -> ClusterAddress:
    """A cluster with the keywords of each kind of client, under a client id of the console's own.

    Quotas by client id can then hold the console without holding what else a person runs.
    """
    from penstock.client.settings import AdminSettings, ConsumerSettings, ProducerSettings
    from penstock.console.settings import ClusterAddress

    def keywords(kind: type[AdminSettings | ConsumerSettings | ProducerSettings]) -> dict[str, object]:
        return {**connection.beside().keywords(kind), "client_id": "penstock-console"}

    return ClusterAddress(name, keywords(AdminSettings), keywords(ConsumerSettings), keywords(ProducerSettings))


def one_of_many_threads() -> None:
    """Settles how the threads of this process live together: samplers, those who make answers, and browsers' loop."""
    import gc
    import sys

    # What is known of a large cluster is a million objects without cycles, which go when they are replaced. To walk
    # through all of them would hold up browsers for tenths of a second each time.
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    # Whoever waits for the interpreter's lock behind two busy threads gets it after 2 ms and not after 10.
    sys.setswitchinterval(SWITCH_S)


def run(settings: ConsoleSettings, *, while_input: bool = False) -> None:
    """Serves until a signal comes, or, if that is asked for, until standard input ends."""
    import asyncio
    import signal
    import sys

    from penstock.cli import on_a_loop
    from penstock.console.serving import listen, serve

    one_of_many_threads()
    listening = listen(settings)

    def ready(address: str) -> None:
        click.echo(f"Penstock console is at {address}")

    async def main() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        if while_input:
            source = sys.stdin.fileno()

            def heard() -> None:
                if not os.read(source, 4_096):
                    stop.set()

            loop.add_reader(source, heard)
        await serve(settings, listening, stop, ready)

    on_a_loop.run(main())
