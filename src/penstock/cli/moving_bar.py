"""How far moves of partitions have come, for whoever watches the command."""

from __future__ import annotations

import sys
import time
from typing import Final

import click

from penstock.cli.progress import bar, columns_of_stderr, overwrite
from penstock.model.units import bytes_text, count
from penstock.operations.moving.carrying_out import Tally

SILENCE_S: Final = 30.0
BAR_WIDTH: Final = 24


class Bar:
    """Says how far moves have come: on a terminal in one line, elsewhere only when nothing happens for long."""

    def __init__(self, verb: str) -> None:
        self._verb, self._shown = verb, sys.stderr.isatty()
        self._done, self._changed_s = -1, time.monotonic()

    def __call__(self, tally: Tally) -> None:
        if self._shown:
            drawn = bar(tally.partitions_done / max(1, tally.partitions), BAR_WIDTH, columns_of_stderr())
            amount = f", {bytes_text(tally.bytes_done)} of {bytes_text(tally.bytes)}" if tally.bytes else ""
            overwrite(
                f"{self._verb} [{drawn}] {tally.partitions_done} of {count('partition', tally.partitions)}{amount}"
            )
        if tally.partitions_done != self._done:
            self._done, self._changed_s = tally.partitions_done, time.monotonic()
        elif time.monotonic() - self._changed_s >= SILENCE_S:
            self._changed_s = time.monotonic()
            self.close()
            names = ", ".join(map(str, tally.waiting_for[:3]))
            click.echo(
                f"still waiting for {count('partition', len(tally.waiting_for))} ({names}); are their brokers up?"
                " `penstock cluster health` tells, `penstock cluster partitions status` shows how far they are",
                err=True,
            )

    def close(self) -> None:
        """Takes the line away, so that what follows has the terminal for itself."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
