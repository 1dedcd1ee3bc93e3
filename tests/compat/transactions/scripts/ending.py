"""EndTxn, in both protocols."""

from __future__ import annotations

from itertools import product

from tests.compat.transactions.looking import look
from tests.compat.transactions.scripts.adding import WRONG
from tests.compat.transactions.scripts.table import NOBODY, script
from tests.compat.transactions.stage import Stage

API = "EndTxn"
BOTH = (True, False)


@script(API)
async def of_an_unknown_id(stage: Stage, version: int) -> None:
    for name, commit in product((None, ""), BOTH):
        await stage.end(version, name=name, pid=NOBODY, epoch=0, commit=commit)
        await stage.end(version, name=name, pid=-1, epoch=-1, commit=commit)


@script(API)
async def without_a_beginning(stage: Stage, version: int) -> None:
    await stage.init()
    await stage.end(version, commit=True)
    await stage.end(version, commit=False)
    await stage.end(version, commit=True)


@script(API)
async def abort_without_a_beginning(stage: Stage, version: int) -> None:
    await stage.init()
    await stage.end(version, commit=False, adopt=False)
    await stage.end(version, commit=False, adopt=False)
    await stage.end(version, commit=True)


@script(API)
async def by_a_wrong_producer(stage: Stage, version: int) -> None:
    await stage.init()
    await stage.init()
    for state in ("empty", "open", "ended"):
        if state == "open":
            await stage.add()
        if state == "ended":
            await stage.end(version)
        for (pid, epoch), commit in product(WRONG, BOTH):
            await stage.end(version, pid=pid, epoch=epoch, commit=commit, adopt=False)


@script(API)
async def twice_and_the_other_way_round(stage: Stage, version: int) -> None:
    """With the epoch of before, as a retry has it."""
    for first, second in product(BOTH, BOTH):
        await stage.begin()
        await stage.produce(9)
        epoch = stage.epoch
        await stage.end(version, commit=first, adopt=False)
        await stage.end(version, commit=second, epoch=epoch, adopt=False)
        await stage.end(version, commit=first, epoch=epoch, adopt=False)
        await look(stage)


@script(API)
async def twice_with_the_epoch_of_the_answer(stage: Stage, version: int) -> None:
    for first, second in product(BOTH, BOTH):
        await stage.begin()
        await stage.end(version, commit=first)
        await stage.end(version, commit=second)
        await stage.end(version, commit=first)


@script(API)
async def late_and_into_the_next_transaction(stage: Stage, version: int) -> None:
    for commit in BOTH:
        await stage.begin()
        epoch = stage.epoch
        await stage.end(version, commit=True)
        await stage.add()
        await stage.end(version, commit=commit, epoch=epoch, adopt=False)
        await look(stage)


@script(API)
async def by_a_fenced_producer(stage: Stage, version: int) -> None:
    await stage.written()
    old = stage.epoch
    await stage.init()
    for commit in BOTH:
        await stage.end(version, commit=commit, epoch=old, adopt=False)
        await stage.end(version, commit=commit, epoch=old + 1, adopt=False)
    await stage.add()
    for commit in BOTH:
        await stage.end(version, commit=commit, epoch=old, adopt=False)


@script(API)
async def after_a_transaction_of_each_protocol(stage: Stage, version: int) -> None:
    """A transaction may be begun by one protocol and ended by the other."""
    for add, produce, commit in ((3, 9, True), (4, 12, True), (5, 13, False), (0, 3, False)):
        await stage.init()
        await stage.add(add)
        await stage.produce(produce)
        await stage.end(version, commit=commit)
        await look(stage)


@script(API)
async def with_offsets_only(stage: Stage, version: int) -> None:
    for commit in BOTH:
        await stage.init()
        await stage.add_offsets()
        await stage.commit_offsets()
        await look(stage)
        await stage.end(version, commit=commit)
        await look(stage)


@script(API)
async def of_somebody_elses_id(stage: Stage, version: int) -> None:
    other = f"{stage.id}-other"
    told = await stage.init(name=other)
    await stage.add(name=other, pid=told.producer_id, epoch=0)
    await stage.begin()
    await stage.end(version, name=other)
    await stage.end(version, pid=told.producer_id, epoch=0, adopt=False)
