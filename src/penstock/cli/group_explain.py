"""`penstock group explain`: why a group is behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from penstock.cli.amounts import Seconds
from penstock.cli.options import connection_options, examples, format_option
from penstock.cli.output import show, wrapped

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.client.admin import Admin
    from penstock.operations.diagnosis.findings import Finding
    from penstock.operations.explaining.sights import GroupFacts


@click.command(
    epilog=examples("penstock group explain billing", "penstock group explain billing --over 0 --format json")
)
@click.argument("name", metavar="GROUP")
@click.option(
    "--over",
    "span_s",
    type=Seconds(min=0),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to look; what needs a trend is left out when it is short.",
)
@format_option
@connection_options
def explain(name: str, span_s: float, style: str, connection: Connection) -> None:
    """Say why GROUP is behind: who does not read, what stands, what is lost, how fast it goes, and what to try.

    Looks at it several times over a while. Exit code 0 when nothing is wrong with it, 10 when something is.
    """
    from penstock.cli.connection import administer
    from penstock.cli.failures import UNHEALTHY
    from penstock.cli.progress import Countdown
    from penstock.cli.suggesting import suggesting
    from penstock.operations.explaining import explain as explaining
    from penstock.operations.explaining.looking import look

    async def work(admin: Admin) -> GroupFacts:
        countdown = Countdown()
        countdown.begin(f"looking at {name}", span_s)
        showing = asyncio.create_task(countdown.show())
        try:
            async with suggesting(admin, groups=[name]):
                return await look(admin, name, span_s)
        finally:
            showing.cancel()
            countdown.close()

    facts = administer(connection, work)
    findings = explaining.explain(facts)
    show(_data(facts, findings), style, _text(explaining.summary(facts), findings))
    if any(each.level == "problem" for each in findings):
        click.get_current_context().exit(UNHEALTHY)


def _data(facts: GroupFacts, findings: list[Finding]) -> dict[str, object]:
    from penstock.operations.explaining.explain import behind_ms
    from penstock.operations.explaining.paces import paces_of

    paces = paces_of(facts)
    return {
        "group": facts.group_id,
        "state": facts.last.state,
        "members": len(facts.last.readers),
        "lag": facts.last.lag,
        "behind_ms": behind_ms(facts),
        "span_ms": facts.span_ms,
        "findings": [
            {"level": f.level, "kind": f.kind, "what": f.what, "why": f.why, "try": f.attempt} for f in findings
        ],
        "partitions": [
            {
                "topic": item.topic,
                "partition": item.partition,
                "committed": part.committed,
                "start": part.start,
                "end": part.end,
                "lag": part.lag,
                "behind_ms": facts.behind_ms(item),
                "incoming": paces[item].incoming if item in paces else None,
                "outgoing": paces[item].outgoing if item in paces else None,
                "drain_s": paces[item].drain_s if item in paces else None,
            }
            for item, part in sorted(facts.last.partitions.items())
        ],
    }


def _text(summary: str, findings: list[Finding]) -> str:
    lines = [wrapped(summary)]
    for found in findings:
        said = (f"{found.level}: {found.what}", f"  why  {found.why}", f"  try  {found.attempt}")
        lines += ["", *(wrapped(line, indent=7) for line in said)]
    return "\n".join(lines if findings else [*lines, "nothing is wrong with it"])
