"""`penstock token create|renew|expire|list`: delegation tokens, with which programs log in as somebody for a time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.acl import principal_of
from penstock.cli.amounts import Seconds
from penstock.cli.options import connection_options, examples, format_option, yes_option
from penstock.cli.output import show, table

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.client.admin import Admin, DelegationToken

hmac_argument = click.argument("hmac", required=False)
hmac_file_option = click.option(
    "--hmac-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the HMAC from this file: an argument can be seen by everybody on this machine.",
)


@click.group()
def token() -> None:
    """Lend programs a login that ends by itself: make delegation tokens, renew, end and list them."""


@token.command(
    epilog=examples(
        "penstock token create",
        "penstock token create --renewer bob --max-life 2d --client-config-out token.properties",
    )
)
@click.option("--owner", metavar="USER", help="Whom it logs in, NAME or Kind:NAME; else whoever asks.")
@click.option(
    "--renewer",
    "renewers",
    multiple=True,
    metavar="USER",
    help="Who may renew and end it beside its owner; repeatable.",
)
@click.option(
    "--max-life",
    "max_life_s",
    type=Seconds(min=0.001),
    metavar="TIME",
    help="How long it can live, renewals included, such as 7d; else as long as the cluster allows.",
)
@click.option(
    "--client-config-out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a client.properties that logs in with it, for this user's eyes alone.",
)
@format_option
@connection_options
def create(
    owner: str | None,
    renewers: tuple[str, ...],
    max_life_s: float | None,
    client_config_out: Path | None,
    style: str,
    connection: Connection,
) -> None:
    """Make a token. Prints its id and HMAC, the name and the password of logins with it."""
    from penstock.cli.connection import administer
    from penstock.cli.token_file import token_file

    file = None if client_config_out is None else token_file(client_config_out, connection)

    async def work(admin: Admin) -> DelegationToken:
        return await admin.create_token(
            owner=None if owner is None else principal_of(owner),
            renewers=[principal_of(each) for each in renewers],
            max_lifetime_ms=_ms(max_life_s),
        )

    made = administer(connection, work)
    if file is not None:
        file.write(made.jaas_config)
    rows = [("token id", made.token_id), ("HMAC", made.password), *_facts(made)]
    width = max(len(name) for name, _ in rows)
    show(_data(made, with_hmac=True), style, "\n".join(f"{name:{width}}  {value}" for name, value in rows))
    if file is not None:
        click.echo(f"wrote {file.path}; try: penstock topic list --client-config {file.path}", err=True)


@token.command(epilog=examples("penstock token renew --hmac-file token.hmac --period 12h"))
@hmac_argument
@hmac_file_option
@click.option(
    "--period",
    "period_s",
    type=Seconds(min=0.001),
    metavar="TIME",
    help="How long it lasts from now, such as 12h; else as long as the cluster grants.",
)
@connection_options
def renew(hmac: str | None, hmac_file: Path | None, period_s: float | None, connection: Connection) -> None:
    """Let a token last longer, though never beyond its longest life."""
    from penstock.cli.connection import administer

    proof = _proof(hmac, hmac_file)
    until_ms = administer(connection, lambda admin: admin.renew_token(proof, period_ms=_ms(period_s)))
    click.echo(f"the token lasts until {_moment(until_ms)}", err=True)


@token.command(epilog=examples("penstock token expire --hmac-file token.hmac --yes"))
@hmac_argument
@hmac_file_option
@click.option(
    "--after", "after_s", type=Seconds(min=0), metavar="TIME", help="How long it still lasts; else not at all."
)
@yes_option
@connection_options
def expire(hmac: str | None, hmac_file: Path | None, after_s: float | None, yes: bool, connection: Connection) -> None:
    """End a token, at once or after a time. Connections that logged in with it are cut."""
    from penstock.cli.connection import administer

    proof = _proof(hmac, hmac_file)
    if not yes:
        click.confirm("End the token?", abort=True, err=True)
    until_ms = administer(connection, lambda admin: admin.expire_token(proof, after_ms=_ms(after_s)))
    click.echo("the token is gone" if after_s is None else f"the token lasts until {_moment(until_ms)}", err=True)


@token.command("list", epilog=examples("penstock token list", "penstock token list --owner alice"))
@click.option(
    "--owner", "owners", multiple=True, metavar="USER", help="Only those that this user has to do with; repeatable."
)
@click.option("--show-hmac", is_flag=True, help="Print HMACs too, with which anybody can log in.")
@format_option
@connection_options
def list_tokens(owners: tuple[str, ...], show_hmac: bool, style: str, connection: Connection) -> None:
    """List the tokens that one may know of: one's own, those one may renew, and those that ACLs show."""
    from penstock.cli.connection import administer

    wanted = [principal_of(each) for each in owners] or None
    found = administer(connection, lambda admin: admin.describe_tokens(wanted))
    headings = ["TOKEN ID", *(name.upper() for name, _ in _facts(found[0]))] if found else []
    rows = [[each.token_id, *(value for _, value in _facts(each))] for each in found]
    if show_hmac and found:
        headings.append("HMAC")
        rows = [[*row, each.password] for row, each in zip(rows, found, strict=True)]
    show([_data(each, with_hmac=show_hmac) for each in found], style, table(headings, rows) if found else "")
    if not found:
        click.echo("no tokens", err=True)


def _proof(hmac: str | None, hmac_file: Path | None) -> bytes:
    import base64

    if (hmac is None) == (hmac_file is None):
        raise click.UsageError("give the HMAC of the token, or --hmac-file")
    text = hmac if hmac_file is None else hmac_file.read_text(encoding="utf-8").strip()
    assert text is not None, "one of both is given"
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise click.UsageError("the HMAC is not base64") from None


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1_000)


def _facts(token: DelegationToken) -> list[tuple[str, str | None]]:
    return [
        ("owner", token.owner),
        ("requester", token.requester),
        ("renewers", ",".join(token.renewers) or None),
        ("expires", _moment(token.expires_ms)),
        ("longest", _moment(token.max_ms)),
    ]


def _data(token: DelegationToken, *, with_hmac: bool) -> dict[str, Any]:
    from dataclasses import asdict

    data = asdict(token)
    data.pop("hmac")
    return {**data, "renewers": list(token.renewers), **({"hmac": token.password} if with_hmac else {})}


def _moment(at_ms: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
