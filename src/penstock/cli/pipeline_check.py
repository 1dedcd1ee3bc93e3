"""What `penstock pipeline check` tells: how fresh sinks are, and whether that is what their file promises."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from penstock.cli.failures import UNHEALTHY, UNREACHABLE
from penstock.cli.output import show, table
from penstock.model.units import duration_text

if TYPE_CHECKING:
    from penstock.spark.pipeline.objectives import Standing

HEADINGS: Final = ("SINK", "STATE", "FRESH", "WITHIN", "KEPT", "WHY")


def tell(file: Path, found: Sequence[Standing], silent: Sequence[str], style: str) -> None:
    """Ends the command with 10 when a promise is not kept, with 5 when brokers do not say."""
    rows = [
        (
            each.sink,
            each.state,
            None if each.fresh_s is None else duration_text(each.fresh_s * 1000),
            duration_text(each.within_s * 1000) if each.within_s else None,
            ("yes" if each.met else "NO") if each.within_s else None,
            each.words,
        )
        for each in found
    ]
    show([each._asdict() for each in found], style, table(HEADINGS, rows))
    if not any(each.within_s for each in found):
        click.echo(f'no sink of {file} promises anything: fresh_within = "30 seconds" would', err=True)
    for address in silent:
        click.echo(f"penstock: no broker answers at {address}, so nobody knows what waits", err=True)
    if silent:
        click.get_current_context().exit(UNREACHABLE)
    if not all(each.met for each in found):
        click.get_current_context().exit(UNHEALTHY)
