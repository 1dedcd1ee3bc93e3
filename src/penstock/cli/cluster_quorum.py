"""`penstock cluster quorum`: the controllers that vote, and changing who does."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from penstock.cli.options import connection_options, examples, format_option, yes_option
from penstock.cli.output import show, table
from penstock.model.units import count

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
    lines = [f"leader  {found.leader} (epoch {found.epoch}, high watermark {found.high_watermark})", ""]
    show(asdict(found), style, "\n".join([*lines, _replicas(found)]))


def _replicas(found: QuorumInfo) -> str:
    """A table. Directories are of interest when a node has had more than one of them."""
    replicas = [*found.voters, *found.observers]
    header: tuple[str, ...] = ("ID", "ROLE", "END", "LAG", "ENDPOINT")
    rows: list[tuple[object, ...]] = [
        (each.id, role, each.log_end, each.lag, ", ".join(found.endpoints.get(each.id, [])) or "-")
        for role, of_role in (("voter", found.voters), ("observer", found.observers))
        for each in of_role
    ]
    if len({each.id for each in replicas}) < len(replicas):
        header = (*header, "DIRECTORY")
        rows = [(*row, each.directory_id) for row, each in zip(rows, replicas, strict=True)]
    return table(header, rows)


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
        found = await admin.describe_quorum()
        _refuse_second_disk(node_id, found.voters)
        directory = directory_id or _directory_of(node_id, found.observers, "observer")
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
    from penstock.cli.cluster_decommission import note_gone, state_of
    from penstock.cli.connection import administer

    async def work(admin: Admin) -> QuorumInfo:
        voters = (await admin.describe_quorum()).voters
        directory = directory_id or _directory_of(node_id, voters, "voter")
        if not yes:
            click.confirm(f"Let {count('voter', len(voters) - 1)} go on without node {node_id}?", abort=True, err=True)
        await admin.remove_voter(node_id, directory)
        if await state_of(admin, node_id) is None:
            await note_gone(admin, node_id)
        return await admin.describe_quorum()

    click.echo(f"node {node_id} does not vote any more; {_voters(administer(connection, work))}", err=True)


def _refuse_second_disk(node_id: int, voters: list[QuorumReplica]) -> None:
    """A voter is a node with one disk. With another it comes back as an observer, and the old one votes on."""
    from penstock.client.errors import BrokerRefused
    from penstock.model.errors import DUPLICATE_VOTER

    for voter in voters:
        if voter.id == node_id:
            removing = f"penstock cluster quorum remove-voter {node_id} --directory-id {voter.directory_id}"
            raise BrokerRefused(
                f"node {node_id} votes already, with directory {voter.directory_id}; if its disk is new, that vote"
                f" has to go first: `{removing}`",
                error=DUPLICATE_VOTER,
            )


def _directory_of(node_id: int, replicas: list[QuorumReplica], role: str) -> str:
    from penstock.client.errors import BrokerRefused
    from penstock.model.errors import VOTER_NOT_FOUND

    found = sorted((each for each in replicas if each.id == node_id), key=lambda each: -each.last_fetch_ms)
    if len(found) == 1:
        return found[0].directory_id
    if not found:
        words = f"node {node_id} is no {role} of the quorum; `penstock cluster quorum` lists them"
    else:
        now_ms = max(each.last_fetch_ms for each in replicas)
        heard = ", ".join(
            f"{each.directory_id} (heard of {max(now_ms - each.last_fetch_ms, 0) / 1_000:.0f} s before the last)"
            for each in found
        )
        words = (
            f"node {node_id} is {len(found)} {role}s, because its disk was made anew: {heard}. Say which one is meant: "
            f"--directory-id {found[0].directory_id} if that is the directory.id in its meta.properties"
        )
    raise BrokerRefused(words, error=VOTER_NOT_FOUND)


def _voters(found: QuorumInfo) -> str:
    return "voters are " + ", ".join(str(each.id) for each in found.voters)
