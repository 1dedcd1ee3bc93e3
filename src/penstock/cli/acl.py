"""`penstock acl allow|deny|remove|list|explain`: who may do what, and by which rule."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

import click

from penstock.cli.options import connection_options, examples, format_option, yes_option
from penstock.cli.output import show, table
from penstock.model.units import count

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.client.admin import Acl, AclFilter, Admin
    from penstock.security.acls import AclEntry

KINDS = ("topic", "group", "cluster", "transactional_id", "delegation_token", "user")
RESOURCE_HELP = "topic:NAME, group:NAME, transactional_id:NAME, user:NAME or cluster; NAME* means all that begin so"

host_option = click.option(
    "--host", default="*", show_default=True, metavar="ADDRESS", help="Only from this address; no names, no ranges."
)
literal_option = click.option("--literal", is_flag=True, help="A star at the end of the name is part of it.")


class Resource(NamedTuple):
    """What an ACL is about, as the command line says it."""

    kind: str
    name: str | None
    pattern: str


@click.group()
def acl() -> None:
    """Allow and deny users what they do to topics, groups and the cluster; list the rules and explain decisions."""


def resource_of(text: str, *, literal: bool) -> Resource:
    """`topic:orders`, `topic:ord*` (a prefix), `topic:*` (all), `cluster`. A kind without a name has none."""
    kind, colon, name = text.partition(":")
    kind = kind.lower().replace("-", "_")
    if kind not in KINDS:
        raise click.BadParameter(f"{text!r} is none of {RESOURCE_HELP}")
    if kind == "cluster":
        return Resource(kind, "kafka-cluster", "literal")
    if not colon or not name:
        return Resource(kind, None, "literal")
    if name.endswith("*") and name != "*" and not literal:
        return Resource(kind, name[:-1], "prefixed")
    return Resource(kind, name, "literal")


def principal_of(text: str) -> str:
    """`alice` is `User:alice`."""
    return text if ":" in text else f"User:{text}"


def _operations(text: str) -> list[str]:
    from penstock.model.security import Operation

    known = {operation.name.lower() for operation in Operation if operation > Operation.ANY}
    wanted = [each.strip().lower().replace("-", "_") for each in text.split(",")]
    for each in wanted:
        if each not in known:
            raise click.BadParameter(f"{each!r} is none of {', '.join(sorted(known))}", param_hint="OPERATION")
    return wanted


def _add(permission: str, given: tuple[str, str, str], host: str, literal: bool, connection: Connection) -> None:
    from penstock.cli.connection import administer
    from penstock.client.admin import Acl

    principal, operations, resource_text = given
    resource = resource_of(resource_text, literal=literal)
    if resource.name is None:
        raise click.BadParameter(f"{resource_text!r} has no name: {resource.kind}:NAME, or {resource.kind}:* for all")
    acls = [
        Acl(principal_of(principal), each, resource.kind, resource.name, resource.pattern, host, permission)
        for each in _operations(operations)
    ]

    async def work(admin: Admin) -> None:
        (await admin.create_acls(acls)).checked()

    administer(connection, work)
    for each in acls:
        click.echo(str(each), err=True)


@acl.command(
    epilog=examples(
        "penstock acl allow alice read,describe topic:orders",
        "penstock acl allow alice read group:billing",
        "penstock acl allow bob write 'topic:logs-*' --host 10.0.0.7",
    )
)
@click.argument("principal")
@click.argument("operation", metavar="OPERATION[,...]")
@click.argument("resource")
@host_option
@literal_option
@connection_options
def allow(principal: str, operation: str, resource: str, host: str, literal: bool, connection: Connection) -> None:
    """Allow a user (NAME or Kind:NAME) operations on RESOURCE: topic:NAME, group:NAME, cluster …; NAME* is a prefix."""
    _add("allow", (principal, operation, resource), host, literal, connection)


@acl.command(epilog=examples("penstock acl deny mallory all 'topic:*'"))
@click.argument("principal")
@click.argument("operation", metavar="OPERATION[,...]")
@click.argument("resource")
@host_option
@literal_option
@connection_options
def deny(principal: str, operation: str, resource: str, host: str, literal: bool, connection: Connection) -> None:
    """Deny a user operations on RESOURCE, whatever else allows them. Super users are not bound by it."""
    _add("deny", (principal, operation, resource), host, literal, connection)


def _filter(
    principal: str | None,
    operation: str | None,
    resource_text: str | None,
    host: str | None,
    permission: str | None,
    *,
    literal: bool,
    match: bool,
) -> AclFilter:
    from penstock.client.admin import AclFilter

    resource = None if resource_text is None else resource_of(resource_text, literal=literal)
    operations = [None] if operation is None else _operations(operation)
    if len(operations) > 1:
        raise click.BadParameter("one operation, please", param_hint="--operation")
    named = resource is not None and resource.name is not None
    if match and not named:
        raise click.UsageError("--match needs --resource KIND:NAME")
    pattern = None
    if resource is not None and named:
        pattern = "match" if match else resource.pattern
    return AclFilter(
        principal=None if principal is None else principal_of(principal),
        operation=operations[0],
        resource=None if resource is None else resource.kind,
        name=None if resource is None else resource.name,
        pattern=pattern,
        host=host,
        permission=permission,
    )


principal_filter = click.option("--principal", metavar="NAME", help="Only rules of this user, NAME or Kind:NAME.")
operation_filter = click.option("--operation", metavar="OPERATION", help="Only rules about this operation.")
resource_filter = click.option("--resource", metavar="RESOURCE", help=f"Only rules of this resource: {RESOURCE_HELP}.")
host_filter = click.option("--host", metavar="ADDRESS", help="Only rules for this address, * being every one.")
permission_filter = click.option(
    "--permission", type=click.Choice(["allow", "deny"]), help="Only rules that allow, or that deny."
)


@acl.command("list", epilog=examples("penstock acl list", "penstock acl list --resource topic:orders --match"))
@principal_filter
@operation_filter
@resource_filter
@host_filter
@permission_filter
@click.option("--match", is_flag=True, help="With --resource: all rules that affect it, those of prefixes and * too.")
@literal_option
@format_option
@connection_options
def list_acls(
    principal: str | None,
    operation: str | None,
    resource: str | None,
    host: str | None,
    permission: str | None,
    match: bool,
    literal: bool,
    style: str,
    connection: Connection,
) -> None:
    """List rules, all of them or those that the options mean."""
    from penstock.cli.connection import administer

    which = _filter(principal, operation, resource, host, permission, literal=literal, match=match)
    found = administer(connection, lambda admin: admin.describe_acls(which))
    show([asdict(each) for each in found], style, _acl_table(found) if found else "")
    if not found:
        click.echo("no ACLs", err=True)


def _acl_table(acls: list[Acl]) -> str:
    rows = [
        (each.principal, each.permission, each.operation, each.resource, each.name, each.pattern, each.host)
        for each in acls
    ]
    return table(("PRINCIPAL", "PERMISSION", "OPERATION", "RESOURCE", "NAME", "PATTERN", "HOST"), rows)


@acl.command(epilog=examples("penstock acl remove --principal alice --resource topic:orders --yes"))
@principal_filter
@operation_filter
@resource_filter
@host_filter
@permission_filter
@click.option("--all", "everything", is_flag=True, help="All rules, when nothing says which.")
@literal_option
@yes_option
@format_option
@connection_options
def remove(
    principal: str | None,
    operation: str | None,
    resource: str | None,
    host: str | None,
    permission: str | None,
    everything: bool,
    literal: bool,
    yes: bool,
    style: str,
    connection: Connection,
) -> None:
    """Remove the rules that the options mean. Shows them and asks first."""
    from penstock.cli.connection import administer
    from penstock.cli.failures import NOT_FOUND
    from penstock.client.admin import AclFilter

    which = _filter(principal, operation, resource, host, permission, literal=literal, match=False)
    if which == AclFilter() and not everything:
        raise click.UsageError("say which rules, or --all")
    found = administer(connection, lambda admin: admin.describe_acls(which))
    if not found:
        click.echo("no such ACLs", err=True)
        raise SystemExit(NOT_FOUND)
    if not yes:
        click.echo(_acl_table(found), err=True)
        click.confirm(f"Remove {count('ACL', len(found))}?", abort=True, err=True)
    results = administer(connection, lambda admin: admin.delete_acls([which]))
    gone = results.checked()[which]
    show([asdict(each) for each in gone], style, _acl_table(gone) if gone else "")


@acl.command(
    epilog=examples(
        "penstock acl explain admin alter cluster --super-user admin",
        "penstock acl explain bob write topic:logs-web --host 10.0.0.7",
    )
)
@click.argument("principal")
@click.argument("operation")
@click.argument("resource")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="From where it is asked.")
@click.option(
    "--super-user",
    "super_users",
    multiple=True,
    metavar="NAME",
    help="Somebody in super.users of the nodes, who do not tell it; repeatable.",
)
@click.option("--allow-everyone", is_flag=True, help="The nodes have allow.everyone.if.no.acl.found=true.")
@format_option
@connection_options
def explain(
    principal: str,
    operation: str,
    resource: str,
    host: str,
    super_users: tuple[str, ...],
    allow_everyone: bool,
    style: str,
    connection: Connection,
) -> None:
    """Say whether a user may do something, and by which rule. Exit code 0 for allowed, 4 for denied."""
    from penstock.cli.connection import administer
    from penstock.cli.failures import NOT_ALLOWED
    from penstock.model.security import Operation, ResourceType
    from penstock.security.acls import parse_principal
    from penstock.security.authorizer import Authorizer

    about = resource_of(resource, literal=True)
    if about.name is None:
        raise click.BadParameter(f"{resource!r} has no name: {about.kind}:NAME", param_hint="RESOURCE")
    asked = _operations(operation)
    if len(asked) > 1:
        raise click.BadParameter("one operation, please", param_hint="OPERATION")
    address = _address(host)
    found = administer(connection, lambda admin: admin.describe_acls())
    authorizer = Authorizer([principal_of(each) for each in super_users], allow_everyone=allow_everyone)
    authorizer.take(_entry(each) for each in found)
    kind = ResourceType[about.kind.upper()]
    verdict = authorizer.decide(
        parse_principal(principal_of(principal)), address, Operation[asked[0].upper()], kind, about.name
    )
    rule = None if verdict.entry is None else str(verdict.entry)
    data = {"allowed": verdict.allowed, "why": verdict.rule.value, "rule": rule}
    show(data, style, str(verdict))
    if not verdict.allowed:
        if not super_users:
            click.echo(
                f"{principal} may do it all the same if super.users has {principal_of(principal)}: nodes do not tell, "
                "--super-user NAME does",
                err=True,
            )
        raise SystemExit(NOT_ALLOWED)


def _address(host: str) -> str:
    from penstock.security.hosts import host_text

    try:
        return host_text(host)
    except ValueError:
        raise click.BadParameter(f"{host!r} is no address", param_hint="--host") from None


def _entry(acl: Acl) -> AclEntry:
    from penstock.model.security import Operation, PatternType, Permission, ResourceType
    from penstock.security.acls import acl_entry

    def number(kind: type[Operation | ResourceType | PatternType | Permission], word: str) -> int:
        return int(kind[word.upper()]) if word.upper() in kind.__members__ else 0

    return acl_entry(
        number(ResourceType, acl.resource),
        acl.name,
        number(PatternType, acl.pattern),
        acl.principal,
        acl.host,
        number(Operation, acl.operation),
        number(Permission, acl.permission),
    )
