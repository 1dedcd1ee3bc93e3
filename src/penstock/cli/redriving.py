"""How `penstock pipeline redrive` tells what it does and has done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from penstock.cli.output import show, table
from penstock.cli.progress import bar, columns_of_stderr, overwrite
from penstock.model.units import count

if TYPE_CHECKING:
    from penstock.spark.redrive.driving import Redriven

_BAR = 24


@contextmanager
def watching(*, quiet: bool) -> Iterator[Callable[[Redriven], None]]:
    """A bar on a terminal's standard error, which is taken away in the end."""
    shown = not quiet and sys.stderr.isatty()

    def draw(told: Redriven) -> None:
        if shown:
            share = told.looked_at / told.total if told.total else 1.0
            verb = "counted" if told.dry_run else "sent"
            words = f"{verb} {count('letter', told.letters, grouped=True)}"
            overwrite(f"[{bar(share, _BAR, columns_of_stderr())}] {words}")

    try:
        yield draw
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def show_redriven(told: Redriven, style: str) -> None:
    rows = [(topic, f"{number:,}") for topic, number in told.by_target.items()]
    reasons = [(f"{number:,}", words) for words, number in told.errors.items()]
    parts = [table(("TOPIC", "LETTERS"), rows)] if rows else []
    if told.dry_run and reasons:
        parts.append(table(("LETTERS", "WHY"), reasons))
    show(told.to_json(), style, "\n\n".join(parts))
    verb = "would be sent" if told.dry_run else "sent"
    click.echo(f"{count('letter', told.letters, grouped=True)} of {told.place} {verb}", err=True)
    if told.twins:
        click.echo(f"{count('letter', told.twins, grouped=True)} more are there twice and count once", err=True)
    if told.others:
        click.echo(f"{count('record', told.others, grouped=True)} of {told.place} are no letters", err=True)
    if not told.done:
        click.echo("some may be left; the same command goes on", err=True)
