"""`penstock doctor`: what is wrong, why it matters, what to try."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from penstock.cli.options import connection_options, examples, format_option
from penstock.cli.output import show, wrapped

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.operations.diagnosis.examine import Report


@click.command(epilog=examples("penstock doctor", "penstock doctor --format json"))
@click.option(
    "--max-lag",
    type=click.IntRange(min=0),
    default=100_000,
    show_default=True,
    help="Groups that are further behind are named.",
)
@format_option
@connection_options
def doctor(max_lag: int, style: str, connection: Connection) -> None:
    """Look for what keeps a cluster from working and say it in words.

    Checks the addresses (name, port, protocol), certificates, the advertised addresses, weak settings, API versions,
    the health of the cluster, clocks, disks, transactions that hold readers back and the lag of groups. Exit code 0
    when all is well, 5 when no broker answers, 10 when something is wrong.
    """
    from penstock.cli import on_a_loop
    from penstock.cli.failures import UNHEALTHY, UNREACHABLE
    from penstock.operations.diagnosis.examine import examine

    report = on_a_loop.run(examine(connection, max_lag))
    problems = [found for found in report.findings if found.level == "problem"]
    data = {
        "bootstrap": connection.bootstrap,
        "reachable": report.reachable,
        "healthy": not problems,
        "checks": [{"check": check, "outcome": outcome} for check, outcome in report.checks],
        "findings": [
            {"level": f.level, "kind": f.kind, "what": f.what, "why": f.why, "try": f.attempt} for f in report.findings
        ],
    }
    show(data, style, _text(report))
    if problems:
        click.get_current_context().exit(UNHEALTHY if report.reachable else UNREACHABLE)


def _text(report: Report) -> str:
    width = max(len(check) for check, _ in report.checks)
    lines = [f"{check:{width}}  {outcome}" for check, outcome in report.checks]
    for found in report.findings:
        said = (f"{found.level}: {found.what}", f"  why  {found.why}", f"  try  {found.attempt}")
        lines += ["", *(wrapped(line, indent=7) for line in said)]
    if not report.findings:
        lines += ["", "all is well"]
    return "\n".join(lines)
