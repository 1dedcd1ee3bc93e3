"""Redrives in a process that is killed at its second transaction: before it is committed, or after."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from penstock.client.producer.transactions.driver import TransactionDriver
from penstock.spark.pipeline.reading import read_flow
from penstock.spark.pipeline.redriving import redrive

LETTERS_A_SECOND = 3
"""So many are in one transaction."""
COMMITS = 2


def main(file: str, source: str, moment: str) -> None:
    commit, committed = TransactionDriver.commit, 0

    async def struck(self: TransactionDriver) -> None:
        nonlocal committed
        committed += 1
        if committed == COMMITS and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        await commit(self)
        if committed == COMMITS:
            os.kill(os.getpid(), signal.SIGKILL)

    TransactionDriver.commit = struck  # type: ignore[method-assign]  # that is the strike
    redrive(read_flow(Path(file)), source, rate_per_s=LETTERS_A_SECOND)


main(*sys.argv[1:])
