"""`penstock cluster quorum`: the controllers that vote, and changing who does."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from penstock.cli.options import connection_options, examples, format_option, yes_option
from penstock.cli.output import show, table

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.client.admin import Admin, QuorumInfo, QuorumReplica

directory_option = click.option(
    "--directory-id",
    metavar="ID",
    help="Of its metadata directory, as in its meta.properties; looked up in the quorum if not given.",
)


@click.group(invoke_without_command=True, epilog=examples("penstock cluster quorum"))
@format_option
@connection_options
@click.pass_context
def quorum(context: click.Context, style: str, connection: Connection) -> None:
    """Show the metadata quorum: leader, epoch, high watermark, voters and observers with their lag."""
    if context.invoked_subcommand is not None:
        return
    from penstock.cli.connection import administer

    found = administer(connection, lambda admin: admin.describe_quorum())
    rows = [
        (each.id, role, each.log_end, each.lag, ", ".join(found.endpoints.get(each.id, [])) or "-")
        for role, replicas in (("voter", found.voters), ("observer", found.observers))
        for each in replicas
    ]
    lines = [f"leader  {found.leader} (epoch {found.epoch}, high watermark {found.high_watermark})", ""]
    show(asdict(found), style, "\n".join([*lines, table(("ID", "ROLE", "END", "LAG", "ENDPOINT"), rows)]))


@quorum.command("add-voter", epilog=examples("penstock cluster quorum add-voter 4 --at 127.0.0.1:19095"))
@click.argument("node_id", type=click.IntRange(min=0), metavar="ID")
@click.option("--at", "address", required=True, metavar="HOST:PORT", help="Where the other controllers reach it.")
@click.option("--listener", default="CONTROLLER", show_default=True, metavar="NAME", help="The name of that listener.")
@directory_option
@connection_options
def add_voter(node_id: int, address: str, listener: str, directory_id: str | None, connection: Connection) -> None:
    """Let a controller vote that runs and follows the quorum already.

    Voters come one at a time, and one that is not caught up yet is refused.
    """
    from penstock.cli.connection import administer

    async def work(admin: Admin) -> QuorumInfo:
        directory = directory_id or _directory_of(node_id, (await admin.describe_quorum()).observers, "observer")
        await admin.add_voter(node_id, directory, [f"{listener}://{address}"])
        return await admin.describe_quorum()

    click.echo(f"node {node_id} votes now; {_voters(administer(connection, work))}", err=True)


@quorum.command("remove-voter", epilog=examples("penstock cluster quorum remove-voter 4 --yes"))
@click.argument("node_id", type=click.IntRange(min=0), metavar="ID")
@directory_option
@yes_option
@connection_options
def remove_voter(node_id: int, directory_id: str | None, yes: bool, connection: Connection) -> None:
    """Take a voter out of the quorum, running or not. Do it before a controller goes for good."""
    from penstock.cli.connection import administer

    async def work(admin: Admin) -> QuorumInfo:
        voters = (await admin.describe_quorum()).voters
        directory = directory_id or _directory_of(node_id, voters, "voter")
        if not yes:
            click.confirm(f"Let {len(voters) - 1} voters go on without node {node_id}?", abort=True, err=True)
        await admin.remove_voter(node_id, directory)
        return await admin.describe_quorum()

    click.echo(f"node {node_id} does not vote any more; {_voters(administer(connection, work))}", err=True)


def _directory_of(node_id: int, replicas: list[QuorumReplica], role: str) -> str:
    from penstock.client.errors import BrokerRefused
    from penstock.model.errors import VOTER_NOT_FOUND

    found = [each.directory_id for each in replicas if each.id == node_id]
    if len(found) == 1:
        return found[0]
    why = f"is no {role} of the quorum" if not found else f"is {len(found)} {role}s, with a directory each"
    raise BrokerRefused(
        f"node {node_id} {why}; `penstock cluster quorum` lists them, and --directory-id names one",
        error=VOTER_NOT_FOUND,
    )


def _voters(found: QuorumInfo) -> str:
    return "voters are " + ", ".join(str(each.id) for each in found.voters)
