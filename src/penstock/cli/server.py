"""`penstock server`: a node from a configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.options import examples, format_option, log_format_option, log_level_option
from penstock.cli.output import show, table
from penstock.model.units import count

if TYPE_CHECKING:
    from penstock.certificates import SecuredCluster
    from penstock.metadata.records import VersionedRecord
    from penstock.model.config import BrokerSettings
    from penstock.protocol.disk.raft_records import VotersRecord

config_option = click.option(
    "--config",
    "path",
    type=click.Path(exists=True, dir_okay=False),
    required=True,
    metavar="FILE",
    help="Kafka's server.properties, or TOML with quoted property names when FILE ends in .toml.",
)


@click.group()
def server() -> None:
    """Run, format and check a node from a configuration file."""


def _load(path: str) -> BrokerSettings:
    """The settings in a file; what is wrong with it is told under the file's name, all at once."""
    from penstock.model.config import BadSettings
    from penstock.model.errors import PenstockError
    from penstock.server.launch import load_settings

    try:
        return load_settings(path)
    except UnicodeDecodeError as broken:
        raise PenstockError(f"{path} is not UTF-8 text: {broken.reason} at byte {broken.start}") from None
    except BadSettings as bad:
        told = count("problem", len(bad.problems))
        raise PenstockError("\n".join([f"{path} has {told}:", *bad.problems])) from None


@server.command(epilog=examples("penstock server start --config server.properties"))
@config_option
@log_level_option("info")
@log_format_option
def start(path: str, log_level: str, log_format: str) -> None:
    """Run the node that FILE describes. SIGTERM and Ctrl-C stop it cleanly."""
    from penstock.server.launch import configured_node
    from penstock.server.logs import configure
    from penstock.server.running import serve

    configure(log_level.upper(), form=log_format)
    settings = _load(path)

    serve(
        lambda: configured_node(settings),
        lambda node: click.echo(f"node {settings.node_id} is ready on {', '.join(node.addresses)}", err=True),
    )


@server.command(
    "format",
    epilog=examples(
        "penstock server format --config server.properties --standalone",
        "penstock server format --config server.properties --ignore-formatted",
        "ADMIN_PASSWORD=secret penstock server format --config server.properties --ignore-formatted "
        "--add-scram 'SCRAM-SHA-512=[name=admin,password-env=ADMIN_PASSWORD]'",
    ),
)
@config_option
@click.option("-t", "--cluster-id", help="22 characters of base64url; a new one if not given.")
@click.option("-g", "--ignore-formatted", is_flag=True, help="Leave directories alone that are formatted already.")
@click.option("-s", "--standalone", is_flag=True, help="This controller is the only voter of a new quorum.")
@click.option(
    "-I",
    "--initial-controllers",
    metavar="LIST",
    help="All voters of a new quorum, as ID@HOST:PORT:DIRECTORY_ID entries; the same list on each of them.",
)
@click.option(
    "-N", "--no-initial-controllers", is_flag=True, help="This controller joins a quorum that is there already."
)
@click.option(
    "-S",
    "--add-scram",
    "users",
    multiple=True,
    metavar="USER",
    help="A first user, as MECHANISM=[name=NAME,password-file=PATH], with password-env=VARIABLE, password= or "
    "saltedpassword= in its place, and salt= and iterations= if wanted; repeatable. The same on every controller.",
)
def format_(
    path: str,
    cluster_id: str | None,
    ignore_formatted: bool,
    standalone: bool,
    initial_controllers: str | None,
    no_initial_controllers: bool,
    users: tuple[str, ...],
) -> None:
    """Prepare the log directories of a new node. Prints the cluster id.

    The controllers of a new cluster are formatted with one cluster id and one list of initial controllers. A node that
    is only a broker, and one with controller.quorum.voters, need neither.
    """
    from penstock.server.launch import format_node

    settings = _load(path)
    if sum((standalone, initial_controllers is not None, no_initial_controllers)) > 1:
        raise click.UsageError("--standalone, --initial-controllers and --no-initial-controllers exclude each other")
    _check_choice(settings, standalone or initial_controllers is not None, no_initial_controllers)
    voters = None if initial_controllers is None else _voters(settings, initial_controllers)
    formatted = format_node(
        settings,
        cluster_id,
        ignore_formatted=ignore_formatted,
        standalone=not no_initial_controllers,
        voters=voters,
        records=_first_users(users),
    )
    for directory in formatted.made:
        click.echo(f"formatted {directory}", err=True)
    if not formatted.made:
        click.echo("all directories were formatted already", err=True)
    click.echo(formatted.cluster_id)


@server.command(
    epilog=examples(
        "penstock server init --secure --dir cluster --node 1=kafka-1 --node 2=kafka-2 --node 3=kafka-3",
        "penstock server init --secure --dir one --node 1=10.0.0.1:9092 --home /var/lib/penstock --format json",
    )
)
@click.option(
    "--dir", "folder", type=click.Path(file_okay=False, path_type=Path), required=True, help="Where everything is made."
)
@click.option(
    "--node",
    "nodes",
    multiple=True,
    required=True,
    metavar="ID=HOST[:PORT]",
    help="A node and the name or address that everybody reaches it at; repeatable. Clients have PORT (9092), "
    "controllers the next, brokers the one after it.",
)
@click.option("--secure", is_flag=True, help="Certificates, TLS, a first user `admin`, and an authorizer that denies.")
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="PATH",
    help="Where a node's directory will be on its host; where it is made if not given.",
)
@format_option
def init(folder: Path, nodes: tuple[str, ...], secure: bool, home: Path | None, style: str) -> None:
    """Make a new cluster offline: for each node a directory to copy to its host, configured and formatted.

    Of one or two nodes the first is the controller, of three or four the first three are, of more the first five; all
    are brokers. With --secure clients log in by SCRAM over TLS, nodes know each other by certificates of the cluster's
    own authority, and nobody but the nodes and `admin` may do anything that no ACL allows.

    In the DIR of a cluster that was made before, the nodes are added to it: as brokers, and in need of an ACL or a
    place in the others' super.users, which is told.
    """
    from penstock.cli.server_init import described, make, parse_node, plan_of

    try:
        plan = plan_of(folder.absolute(), [parse_node(each) for each in nodes], secure=secure, home=home)
    except ValueError as wrong:
        raise click.BadParameter(str(wrong), param_hint="--node") from None
    cluster_id, secured = make(plan)
    rows = [(each.node_id, each.host, str(plan.directory(each)), str(plan.home_of(each))) for each in plan.new]
    show(described(plan, cluster_id, secured), style, table(("NODE", "HOST", "COPY", "TO"), rows))
    click.echo(f"start each node with: penstock server start --config {home or 'TO'}/server.properties", err=True)
    if secured is not None:
        _tell_secured(secured)
    if secured is not None and plan.cluster_id:
        from penstock.certificates.node_settings import node_principal

        for node in plan.new:
            click.echo(f"let the others know node {node.node_id} before it starts:", err=True)
            principal = node_principal(node.node_id, cluster_id)
            click.echo(f"  penstock acl allow '{principal}' all cluster --client-config {secured.admin.java}", err=True)


def _tell_secured(secured: SecuredCluster) -> None:
    click.echo(f"clients need {secured.directory.trusted}, SHA-256 {secured.fingerprint}", err=True)
    click.echo(f"the user admin is in {secured.admin.java} (Java, Penstock) and {secured.admin.librdkafka}", err=True)
    click.echo(
        f"{secured.directory.path} has the keys that sign nodes and clients: keep it off the nodes, and safe", err=True
    )


def _first_users(users: tuple[str, ...]) -> list[VersionedRecord]:
    """The records of --add-scram; two for one user and mechanism would leave open which one counts."""
    if not users:
        return []
    from penstock.cli.scram_arguments import scram_record

    records: dict[tuple[int, str], VersionedRecord] = {}
    for user in users:
        try:
            record = scram_record(user)
        except ValueError as wrong:
            raise click.BadParameter(str(wrong), param_hint="--add-scram") from None
        key = (record[0].mechanism, record[0].name)
        if key in records:
            raise click.BadParameter(f"user {key[1]} stands twice with one mechanism", param_hint="--add-scram")
        records[key] = record
    return list(records.values())


def _check_choice(settings: BrokerSettings, names_voters: bool, joins: bool) -> None:
    """Controllers that each believe to be the only one would make as many clusters as there are nodes."""
    if names_voters and not settings.is_controller:
        raise click.UsageError("this node is no controller (process.roles); leave the voters to those that are")
    if names_voters and settings.quorum_voters:
        raise click.UsageError("the voters are in controller.quorum.voters already; give them in one place only")
    several = len(settings.quorum_bootstrap_servers) > 1
    if settings.is_controller and several and not (names_voters or joins or settings.quorum_voters):
        raise click.UsageError(
            "controller.quorum.bootstrap.servers names several controllers; say which vote at first: "
            "--initial-controllers LIST, or --standalone on one and --no-initial-controllers on the others"
        )


def _voters(settings: BrokerSettings, text: str) -> VotersRecord:
    from penstock.server.controller.initial_controllers import BadControllers, parse_initial_controllers, voters_of

    try:
        controllers = parse_initial_controllers(text)
    except BadControllers as bad:
        raise click.UsageError(f"--initial-controllers: {bad}") from bad
    if all(each.node_id != settings.node_id for each in controllers):
        raise click.UsageError(
            f"--initial-controllers has no entry for this node, {settings.node_id}; "
            "one that joins later is formatted with --no-initial-controllers"
        )
    return voters_of(controllers, settings.controller_listener_names[0])


@server.group()
def config() -> None:
    """Print or check the configuration of a node."""


@config.command("print", epilog=examples("penstock server config print --config server.properties --format json"))
@config_option
@click.option("--all", "everything", is_flag=True, help="Defaults too, not only what the file sets.")
@format_option
def print_(path: str, everything: bool, style: str) -> None:
    """Show what a configuration file comes to."""
    from penstock.server.launch import explain_settings

    rows = explain_settings(_load(path), everything=everything)
    data = {row.name: row.value for row in rows}
    show(data, style, table(("NAME", "VALUE", "SOURCE"), [(row.name, row.value, row.source) for row in rows]))


@config.command(epilog=examples("penstock server config lint --config server.properties"))
@config_option
@format_option
def lint(path: str, style: str) -> None:
    """Name the properties of a file that have no effect here, and those that are weak. Mistakes are errors, all of
    them named."""
    from penstock.security.weak_settings import weak_settings
    from penstock.server.launch import idle_properties

    settings = _load(path)
    idle = idle_properties(settings)
    named = [*idle, *((each.name, f"weak: {each.why}") for each in weak_settings(settings))]
    data = [{"name": name, "why": why} for name, why in named]
    show(data, style, "\n".join(f"{name}: {why}" for name, why in named))
    if not idle:
        click.echo("every property in the file has an effect", err=True)
