"""Transactions that nobody ends: the coordinator does, and the producer learns it."""

from __future__ import annotations

from tests.compat.transactions.looking import in_state, look
from tests.compat.transactions.scripts.table import script
from tests.compat.transactions.stage import Stage

SOON_MS = 100


async def _timed_out(stage: Stage) -> None:
    await stage.init(timeout_ms=SOON_MS)
    await stage.add()
    await in_state(stage, "CompleteAbort")
    await look(stage)


@script("EndTxn")
async def of_one_that_timed_out(stage: Stage, version: int) -> None:
    for commit in (True, False):
        await _timed_out(stage)
        await stage.end(version, commit=commit)
        await look(stage)
        await stage.add()
        await stage.end(version, commit=commit)


@script("AddPartitionsToTxn")
async def to_one_that_timed_out(stage: Stage, version: int) -> None:
    await _timed_out(stage)
    await stage.add(version)
    await stage.add(version, epoch=stage.epoch + 1)


@script("Produce")
async def into_one_that_timed_out(stage: Stage, version: int) -> None:
    await _timed_out(stage)
    await stage.produce(version)
    await stage.produce(version, epoch=stage.epoch + 1)


@script("TxnOffsetCommit")
async def offsets_of_one_that_timed_out(stage: Stage, version: int) -> None:
    await stage.init(timeout_ms=SOON_MS)
    await stage.add_offsets()
    await in_state(stage, "CompleteAbort")
    await stage.commit_offsets(version)
    await stage.commit_offsets(version, epoch=stage.epoch + 1)


@script("InitProducerId", since=3)
async def named_after_a_time_out(stage: Stage, version: int) -> None:
    await _timed_out(stage)
    epoch = stage.epoch
    await stage.init(version, pid=stage.pid, epoch=epoch)
    await stage.init(version, pid=stage.pid, epoch=epoch + 1)
