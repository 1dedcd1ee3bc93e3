"""`penstock user add|passwd|delete|list`: who can log in by SCRAM."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.new_passwords import password_options, read_password
from penstock.cli.options import connection_options, examples, format_option, yes_option
from penstock.cli.output import show, table

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.client.admin import Admin, ScramCredential

MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256")
ITERATIONS = 4_096

iterations_option = click.option(
    "--iterations",
    type=click.IntRange(4_096, 16_384),
    default=ITERATIONS,
    show_default=True,
    help="How often the password is hashed.",
)


@click.group()
def user() -> None:
    """Add users who log in with a password, change their passwords, list and delete them."""


@user.command(
    epilog=examples(
        "echo secret | penstock user add alice --password-stdin",
        "PASSWORD=secret penstock user add bob --password-env PASSWORD --mechanism SCRAM-SHA-256",
    )
)
@click.argument("name")
@click.option(
    "--mechanism",
    "mechanisms",
    type=click.Choice(MECHANISMS),
    multiple=True,
    help="How the user can log in; repeatable. Both, unless one is given.",
)
@iterations_option
@password_options
@connection_options
def add(
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    from_stdin: bool,
    from_file: Path | None,
    from_variable: str | None,
    connection: Connection,
) -> None:
    """Add a user. The password is asked for, unless one of the options says where it is."""
    from penstock.cli.connection import administer
    from penstock.client.admin import ScramPassword
    from penstock.model.errors import PenstockError

    password = read_password(name, from_stdin=from_stdin, from_file=from_file, from_variable=from_variable)

    async def work(admin: Admin) -> None:
        if await _known(admin, name):
            raise PenstockError(f"there is a user {name} already; `penstock user passwd {name}` changes the password")
        chosen = mechanisms or MECHANISMS
        changes = [ScramPassword(name, password.reveal(), each, iterations) for each in chosen]
        (await admin.alter_scram_users(changes)).checked()

    administer(connection, work)
    click.echo(f"added user {name}", err=True)


@user.command(epilog=examples("echo other | penstock user passwd alice --password-stdin"))
@click.argument("name")
@iterations_option
@password_options
@connection_options
def passwd(
    name: str,
    iterations: int,
    from_stdin: bool,
    from_file: Path | None,
    from_variable: str | None,
    connection: Connection,
) -> None:
    """Change the password of a user, for every mechanism that the user has."""
    from penstock.cli.connection import administer
    from penstock.client.admin import ScramPassword

    password = read_password(name, from_stdin=from_stdin, from_file=from_file, from_variable=from_variable)

    async def work(admin: Admin) -> None:
        known = (await admin.describe_scram_users([name])).checked()[name]
        changes = [ScramPassword(name, password.reveal(), each.mechanism, iterations) for each in known]
        (await admin.alter_scram_users(changes)).checked()

    administer(connection, work)
    click.echo(f"changed the password of {name}", err=True)


@user.command(epilog=examples("penstock user delete alice --yes"))
@click.argument("name")
@yes_option
@connection_options
def delete(name: str, yes: bool, connection: Connection) -> None:
    """Delete a user, who cannot log in any more then. ACLs and limits of the name stay."""
    from penstock.cli.connection import administer
    from penstock.client.admin import ScramRemoval

    if not yes:
        click.confirm(f"Delete user {name}?", abort=True)

    async def work(admin: Admin) -> None:
        known = (await admin.describe_scram_users([name])).checked()[name]
        (await admin.alter_scram_users([ScramRemoval(name, each.mechanism) for each in known])).checked()

    administer(connection, work)
    click.echo(f"deleted user {name}", err=True)


@user.command("list", epilog=examples("penstock user list"))
@format_option
@connection_options
def list_users(style: str, connection: Connection) -> None:
    """List users and how they can log in."""
    from penstock.cli.connection import administer

    async def work(admin: Admin) -> dict[str, list[ScramCredential]]:
        return (await admin.describe_scram_users()).checked()

    found = sorted(administer(connection, work).items())
    data = [{"user": name, "credentials": [asdict(each) for each in credentials]} for name, credentials in found]
    rows = [(name, each.mechanism, each.iterations) for name, credentials in found for each in credentials]
    show(data, style, table(("USER", "MECHANISM", "ITERATIONS"), rows) if rows else "")
    if not rows:
        click.echo("no users", err=True)


async def _known(admin: Admin, name: str) -> bool:
    return name in (await admin.describe_scram_users()).checked()
