"""`penstock quota set|remove|list`: how much users, client ids and addresses may take."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock.cli.options import connection_options, examples, format_option
from penstock.cli.output import show, table

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.client.admin import Admin, QuotaEntity

Command = TypeVar("Command", bound=Callable[..., Any])

KEYS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)
_BYTES = ("producer_byte_rate", "consumer_byte_rate")

_ENTITY_OPTIONS = [
    click.option("--user", metavar="NAME", help="A user, by name."),
    click.option("--user-default", is_flag=True, help="Users without limits of their own."),
    click.option("--client-id", metavar="ID", help="A client id; together with a user only that user's."),
    click.option("--client-id-default", is_flag=True, help="Client ids without limits of their own."),
    click.option("--ip", metavar="ADDRESS", help="An address; it has limits of its own kind."),
    click.option("--ip-default", is_flag=True, help="Addresses without limits of their own."),
]


def entity_options(command: Command) -> Command:
    decorated: Any = command
    for option in reversed(_ENTITY_OPTIONS):
        decorated = option(decorated)
    result: Command = decorated
    return result


def _entity(given: dict[str, Any], *, required: bool = True) -> QuotaEntity | None:
    from penstock.client.admin import QuotaEntity

    parts: dict[str, str] = {}
    for kind in ("user", "client_id", "ip"):
        name, default = given[kind], given[f"{kind}_default"]
        option = f"--{kind.replace('_', '-')}"
        if default and name is not None:
            raise click.UsageError(f"{option} and {option}-default exclude each other")
        if name == "":
            raise click.UsageError(f"{option} is empty; {option}-default means those without a limit of their own")
        if default or name is not None:
            parts[kind] = "" if default else name
    if not parts and required:
        raise click.UsageError("say whose limits: --user, --client-id or --ip, or the default of one of them")
    return QuotaEntity(**parts) if parts else None


@click.group()
def quota() -> None:
    """Limit what users, client ids and addresses may take of each broker."""


@quota.command(
    "set",
    epilog=examples(
        "penstock quota set --user alice producer_byte_rate=10MiB consumer_byte_rate=20MiB",
        "penstock quota set --client-id-default request_percentage=25",
        "penstock quota set --ip 10.0.0.7 connection_creation_rate=5",
    ),
)
@entity_options
@click.argument("limits", nargs=-1, required=True, metavar="KEY=VALUE...")
@connection_options
def set_limits(limits: tuple[str, ...], connection: Connection, **given: Any) -> None:
    """Set limits: producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate; of addresses
    connection_creation_rate."""
    entity = _entity(given)
    assert entity is not None, "one is required"
    _alter(connection, entity, dict(map(_limit, limits)))


def _limit(text: str) -> tuple[str, float]:
    key, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not key=value", param_hint="KEY=VALUE")
    if key not in KEYS:
        raise click.BadParameter(f"{key!r} is none of {', '.join(KEYS)}", param_hint="KEY=VALUE")
    from penstock.declared.amounts import size_of

    try:
        return key, float(value)
    except ValueError:
        size = size_of(value) if key in _BYTES else None
        if size is None:
            expected = "bytes a second, or a size such as 10MiB" if key in _BYTES else "a number"
            raise click.BadParameter(f"{text}: expected {expected}", param_hint="KEY=VALUE") from None
        return key, float(size)


@quota.command(
    epilog=examples(
        "penstock quota remove --user alice consumer_byte_rate", "penstock quota remove --client-id-default"
    )
)
@entity_options
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@connection_options
def remove(keys: tuple[str, ...], connection: Connection, **given: Any) -> None:
    """Remove limits, all of them when no KEY is named. Exit code 3 when there are none."""
    from penstock.cli.connection import administer
    from penstock.cli.failures import NOT_FOUND

    entity = _entity(given)
    assert entity is not None, "one is required"
    known = administer(connection, lambda admin: admin.describe_quotas(entity, strict=True)).get(entity, {})
    missing = [key for key in keys if key not in known] or ([] if known else ["a limit"])
    if missing:
        click.echo(f"{entity} has no {', '.join(missing)}", err=True)
        raise SystemExit(NOT_FOUND)
    _alter(connection, entity, dict.fromkeys(keys or known))


def _alter(connection: Connection, entity: QuotaEntity, changes: dict[str, float | None] | dict[str, float]) -> None:
    from penstock.cli.connection import administer

    async def work(admin: Admin) -> None:
        (await admin.alter_quotas({entity: changes})).checked()

    administer(connection, work)
    for key, value in changes.items():
        click.echo(f"{entity}: {key} {'removed' if value is None else f'= {_whole(value)}'}", err=True)


def _whole(value: float) -> float:
    """The limit with all its digits, and without a point where it needs none."""
    return int(value) if value.is_integer() else value


@quota.command("list", epilog=examples("penstock quota list", "penstock quota list --user alice"))
@entity_options
@format_option
@connection_options
def list_limits(style: str, connection: Connection, **given: Any) -> None:
    """List limits, all of them or those of whom the options name."""
    from penstock.cli.connection import administer

    entity = _entity(given, required=False)
    found = administer(connection, lambda admin: admin.describe_quotas(entity))
    ordered = sorted(found.items(), key=lambda each: str(each[0]))
    data = [
        {"entity": {kind: name or None for kind, name in entity.parts.items()}, "limits": limits}
        for entity, limits in ordered
    ]
    rows = [(str(entity), key, value) for entity, limits in ordered for key, value in sorted(limits.items())]
    show(data, style, table(("ENTITY", "LIMIT", "VALUE"), rows) if rows else "")
    if not rows:
        click.echo("no limits", err=True)
