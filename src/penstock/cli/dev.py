"""`penstock dev`: one node or several on this machine, with no format step and no file."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.amounts import Seconds
from penstock.cli.dev_commands import kill, start, stop
from penstock.cli.dev_ports import NODES_MAX
from penstock.cli.options import examples, log_format_option, log_level_option, pairs

if TYPE_CHECKING:
    from penstock.server.node import Node

ADMIN_LISTENER = "penstock.admin.listener"
DEFAULT_PORT = 9092
DEFAULT_FOLDER = ".penstock"
DEMO_NODES = 3


@click.group(
    invoke_without_command=True,
    epilog=examples(
        "penstock dev --ephemeral",
        "penstock dev --port 0 --data-dir data -c num.partitions=6",
        "penstock dev --nodes 3 --port 0 --ephemeral",
        "penstock dev --secure --port 0 --ephemeral",
        "penstock dev --demo",
    ),
)
@click.option(
    "--nodes",
    type=click.IntRange(1, NODES_MAX),
    help="How many: brokers and controllers, a process each. As many as the folder has, else 1.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Of the first node, the others have the next ones. 0 takes free ones.",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False),
    help="Where data is kept; .penstock in this folder if not given.",
)
@click.option("--ephemeral", is_flag=True, help="Keep data in a temporary folder that goes when the nodes stop.")
@click.option(
    "--secure",
    is_flag=True,
    help="TLS and passwords for clients, certificates among nodes, nothing allowed that no ACL allows. Made once, in "
    "DIR/security; a folder that has it is always started so.",
)
@click.option("-c", "--config", "configs", multiple=True, metavar="KEY=VALUE", help="A broker property; repeatable.")
@click.option(
    "--no-console",
    is_flag=True,
    envvar="PENSTOCK_NO_CONSOLE",
    show_envvar=True,
    help="Do without the web console, which runs at port 8080 or a free one where the extra [console] is installed.",
)
@click.option(
    "--demo",
    is_flag=True,
    help="Show everything at work: an agent, three nodes, Spark and a table, three crashes, and checks of every line.",
)
@click.option("--keep", is_flag=True, help="With --demo: leave everything up and say how to stop it.")
@click.option(
    "--seconds",
    type=Seconds(5, 3600),
    help="With --demo: how long lines are written; 60 if not given.",
)
@click.option(
    "--plant",
    type=click.Choice(["lost", "doubled", "gap"]),
    help="With --demo: break something on purpose, to see the checks find it.",
)
@log_level_option("warning")
@log_format_option
@click.pass_context
def dev(
    context: click.Context,
    nodes: int | None,
    port: int,
    data_dir: str | None,
    ephemeral: bool,
    secure: bool,
    configs: tuple[str, ...],
    no_console: bool,
    demo: bool,
    keep: bool,
    seconds: float | None,
    plant: str | None,
    log_level: str,
    log_format: str,
) -> None:
    """Run a node, or a cluster of several, on 127.0.0.1 with nothing to set up. Ctrl-C stops it cleanly.

    Of several nodes each has a process of its own, and `penstock dev kill`, `start` and `stop` reach them from another
    terminal.
    """
    if context.invoked_subcommand is not None:
        return
    if data_dir is not None and ephemeral:
        raise click.UsageError("--data-dir and --ephemeral exclude each other")
    if demo and secure:
        raise click.UsageError("--demo and --secure exclude each other")
    if demo:
        context.exit(_run_demo(nodes, data_dir, keep, seconds, plant))
    for name, said in (("--keep", keep), ("--seconds", seconds is not None), ("--plant", plant is not None)):
        if said:
            raise click.UsageError(f"{name} goes with --demo")
    with ExitStack() as stack:
        if ephemeral:
            data_dir = stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-dev-"))
        directory = data_dir or DEFAULT_FOLDER
        given = pairs(configs)
        secure = _is_secure(Path(directory), secure, given)
        if nodes == 1 or (nodes is None and not (Path(directory) / "cluster.json").exists()):
            _run_one(directory, port, given, ephemeral, log_level, log_format, secure=secure, console=not no_console)
        else:
            chosen = port if context.get_parameter_source("port") is click.core.ParameterSource.COMMANDLINE else None
            logs = (log_level, log_format)
            _run_several(Path(directory), nodes, chosen, given, ephemeral, *logs, secure=secure, console=not no_console)


def _is_secure(folder: Path, asked: bool, overrides: Mapping[str, str]) -> bool:
    """Whether the folder is a secured one, or becomes one now."""
    if not asked and not (folder / "security").exists():
        return False
    from penstock.cli.dev_secure import check_secure

    check_secure(folder, list(overrides))
    return True


def _run_demo(nodes: int | None, data_dir: str | None, keep: bool, seconds: float | None, plant: str | None) -> int:
    from penstock.cli.dev_demo import run
    from penstock.demo.plan import SECONDS, Plan

    if nodes is not None and nodes < DEMO_NODES:
        raise click.UsageError(f"--demo loses a node and goes on: it needs {DEMO_NODES} or more")
    plan = Plan(seconds=seconds or SECONDS, plant=plant, keep=keep)
    return run(plan, nodes=nodes or DEMO_NODES, data_dir=data_dir)


def _run_one(
    directory: str,
    port: int,
    overrides: dict[str, str],
    ephemeral: bool,
    log_level: str,
    log_format: str,
    *,
    secure: bool,
    console: bool,
) -> None:
    from penstock.cli.dev_console import DevConsole
    from penstock.cli.dev_ports import HOST, controller_port, is_free, keep_controller_port
    from penstock.model.errors import PenstockError
    from penstock.server.launch import dev_node
    from penstock.server.logs import configure
    from penstock.server.running import serve

    if (Path(directory) / "cluster.json").exists():
        raise PenstockError(f"{directory} holds a cluster of several nodes; run it without --nodes")
    if port and "listeners" not in overrides and not is_free(port):
        raise PenstockError(f"cannot listen on {HOST}:{port}: Address already in use; choose with --port")
    configure(log_level.upper(), form=log_format)
    overrides = _with_free_admin_port(directory, port, overrides)
    chosen = controller_port(Path(directory))
    if secure:
        from penstock.cli.dev_secure import secure_one

        port, overrides = secure_one(Path(directory), port, chosen, overrides)

    beside: list[DevConsole] = []

    def ready(node: Node) -> None:
        # Only now: the folder is ours.
        keep_controller_port(Path(directory), chosen)
        if console:
            beside.append(DevConsole(Path(directory), f"{HOST}:{node.port}", secure=secure))
        _announce(node, directory, ephemeral, [each.start() for each in beside], secure=secure)

    try:
        serve(lambda: dev_node(directory, port=port, overrides=overrides, controller_port=chosen), ready)
    finally:
        for each in beside:
            each.stop()


def _run_several(
    folder: Path,
    nodes: int | None,
    port: int | None,
    overrides: dict[str, str],
    ephemeral: bool,
    log_level: str,
    log_format: str,
    *,
    secure: bool,
    console: bool,
) -> None:
    from penstock.cli.dev_cluster import create, find
    from penstock.cli.dev_running import run

    cluster = find(folder)
    if cluster is None:
        assert nodes is not None, "a folder without a cluster has one node if nothing is said"
        first = DEFAULT_PORT if port is None else port
        cluster = create(folder, nodes=nodes, port=first, overrides=overrides, secure=secure)
    else:
        cluster.agree(nodes=nodes, port=port, overrides=overrides)
    run(cluster, ephemeral=ephemeral, log_level=log_level, log_format=log_format, console=console)


def _with_free_admin_port(directory: str, port: int, overrides: dict[str, str]) -> dict[str, str]:
    """Nobody chose the admin port of a node for development, so a taken one is no reason not to start."""
    from penstock.cli.dev_ports import is_free
    from penstock.server.launch import dev_properties

    if ADMIN_LISTENER in overrides:
        return overrides
    host, _, admin_port = dev_properties(directory, port=port, overrides={})[ADMIN_LISTENER].rpartition(":")
    return overrides if is_free(int(admin_port), host) else {**overrides, ADMIN_LISTENER: f"{host}:0"}


def _announce(node: Node, directory: str, ephemeral: bool, consoles: list[str], *, secure: bool) -> None:
    address = f"127.0.0.1:{node.port}"
    click.echo("Penstock is ready.")
    click.echo(f"  bootstrap   {address}")
    if node.admin_port:
        click.echo(f"  metrics     {node.admin_url}/metrics")
    for told in consoles:
        click.echo(f"  console     {told}")
    click.echo(f"  data        {directory}{' (gone when the node stops)' if ephemeral else ''}")
    if secure:
        from penstock.cli.dev_secure import announce

        announce(Path(directory), address)
    found = not secure or Path(directory).absolute() == Path(DEFAULT_FOLDER).absolute()
    where = "" if found else f" --data-dir {Path(directory).absolute()}"
    click.echo(f"  try         penstock topic create clicks -p 6 -b {address}{where}")


dev.add_command(kill)
dev.add_command(start)
dev.add_command(stop)
