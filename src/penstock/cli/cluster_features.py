"""`penstock cluster features`: the levels that the cluster has settled on, and raising them after an upgrade."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from penstock.cli.options import connection_options, examples, format_option, yes_option
from penstock.cli.output import show, table

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.client.admin import Admin, FeatureInfo


@click.group(invoke_without_command=True, epilog=examples("penstock cluster features"))
@format_option
@connection_options
@click.pass_context
def features(context: click.Context, style: str, connection: Connection) -> None:
    """Show the features: the level the cluster has settled on, and the levels that every broker knows."""
    if context.invoked_subcommand is not None:
        return
    from penstock.cli.connection import administer

    found = administer(connection, _known_to_all)
    rows = [(each.name, _level(each.finalized), each.lowest, each.highest) for each in found]
    show([asdict(each) for each in found], style, table(("NAME", "LEVEL", "LOWEST", "HIGHEST"), rows))


@features.command(epilog=examples("penstock cluster features upgrade --yes"))
@click.argument("names", nargs=-1, metavar="[NAME]…")
@yes_option
@connection_options
def upgrade(names: tuple[str, ...], yes: bool, connection: Connection) -> None:
    """Raise features (all, if none is named) to the highest level that every broker knows.

    Do it last, when every node runs the new release for good: a release that does not know a level cannot come back
    into a cluster that runs at it, and what a level brought may be impossible to lower again.
    """
    from penstock.cli.connection import administer
    from penstock.client.errors import BrokerRefused

    async def work(admin: Admin) -> dict[str, tuple[int, int]]:
        found = {each.name: each for each in await _known_to_all(admin)}
        for name in names:
            if name not in found:
                raise BrokerRefused(f"no broker knows the feature {name!r}; there are {', '.join(sorted(found))}")
        wanted = [each for each in found.values() if not names or each.name in names]
        rises = {
            each.name: (each.finalized or 0, each.highest) for each in wanted if (each.finalized or 0) < each.highest
        }
        if rises and not yes:
            click.confirm(f"Raise {_words(rises)}? An older release may not come back after that", abort=True, err=True)
        if rises:
            await admin.update_features({name: level for name, (_, level) in rises.items()})
        return rises

    rises = administer(connection, work)
    click.echo(f"raised {_words(rises)}" if rises else "every feature is at its highest level", err=True)


async def _known_to_all(admin: Admin) -> list[FeatureInfo]:
    """What every broker that is alive supports; the level is the cluster's."""
    alive = [broker.id for broker in (await admin.describe_cluster()).brokers if not broker.fenced]
    known: dict[str, FeatureInfo] = {}
    for node_id in alive:
        of_node = {each.name: each for each in await admin.features(node_id)}
        known = _both(known, of_node) if known else of_node
    return sorted(known.values(), key=lambda each: each.name)


def _both(some: dict[str, FeatureInfo], others: dict[str, FeatureInfo]) -> dict[str, FeatureInfo]:
    return {
        name: replace(
            some[name],
            lowest=max(some[name].lowest, others[name].lowest),
            highest=min(some[name].highest, others[name].highest),
        )
        for name in some.keys() & others.keys()
    }


def _level(finalized: int | None) -> str:
    return "-" if finalized is None else str(finalized)


def _words(rises: dict[str, tuple[int, int]]) -> str:
    return ", ".join(f"{name} from {before} to {level}" for name, (before, level) in sorted(rises.items()))
