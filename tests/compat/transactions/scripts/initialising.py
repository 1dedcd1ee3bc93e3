"""InitProducerId with transactional ids."""

from __future__ import annotations

from tests.compat.transactions.scripts.table import INT16_MAX, INT32_MAX, INT64_MAX, NOBODY, script
from tests.compat.transactions.stage import Stage

API = "InitProducerId"


@script(API)
async def an_id_again_and_again(stage: Stage, version: int) -> None:
    for _ in range(3):
        await stage.init(version)


@script(API)
async def ids_of_odd_letters(stage: Stage, version: int) -> None:
    for odd in (" ", "\0", "ünïcödé", "a/b:c*", "x" * 1_000, "x" * 20_000):
        await stage.init(version, name=f"{stage.id}{odd}")


@script(API)
async def an_empty_id(stage: Stage, version: int) -> None:
    from penstock.protocol.messages.init_producer_id import InitProducerIdRequest

    for timeout_ms in (60_000, -1):
        await stage.ask(InitProducerIdRequest(transactional_id="", transaction_timeout_ms=timeout_ms), version)


@script(API)
async def odd_time_outs(stage: Stage, version: int) -> None:
    for timeout_ms in (0, -1, 900_001, INT32_MAX, -INT32_MAX, 1, 900_000):
        await stage.init(version, timeout_ms=timeout_ms)
    await stage.init(version, name=None, timeout_ms=-1)


@script(API, since=3)
async def half_a_name(stage: Stage, version: int) -> None:
    for known in (False, True):
        if known:
            await stage.init(version)
        pairs = [(5, -1), (-1, 5), (-2, -2), (-5, -1), (0, -1), (-1, 0), (0, 0), (INT64_MAX, INT16_MAX), (NOBODY, 3)]
        for pid, epoch in pairs:
            await stage.init(version, pid=pid, epoch=epoch)
            await stage.init(version, name=None, pid=pid, epoch=epoch)


@script(API, since=3)
async def a_stranger_names_itself_at_a_new_id(stage: Stage, version: int) -> None:
    await stage.init(version, pid=NOBODY, epoch=7)
    await stage.init(version)


@script(API, since=3)
async def current_last_older_and_later_epochs(stage: Stage, version: int) -> None:
    await stage.init(version)
    pid = stage.pid
    await stage.init(version, pid=pid, epoch=0)
    await stage.init(version, pid=pid, epoch=0)  # a retry
    await stage.init(version, pid=pid, epoch=1)
    for epoch in (0, 5, INT16_MAX, 1, 2, 2):
        await stage.init(version, pid=pid, epoch=epoch)
    await stage.init(version)
    await stage.init(version, pid=pid, epoch=3)
    await stage.init(version, pid=NOBODY, epoch=stage.epoch)


@script(API)
async def it_ends_what_is_open(stage: Stage, version: int) -> None:
    await stage.written()
    await stage.init(version)
    await stage.init(version)


@script(API, since=3)
async def open_and_named_right_and_wrong(stage: Stage, version: int) -> None:
    await stage.written()
    await stage.init(version, pid=NOBODY, epoch=0)
    await stage.init(version, pid=stage.pid, epoch=5)
    await stage.written()
    await stage.init(version, pid=stage.pid, epoch=stage.epoch)
    await stage.init(version, pid=stage.pid, epoch=0)


@script(API, since=3)
async def named_after_each_end(stage: Stage, version: int) -> None:
    for end in (4, 5):
        for commit in (True, False):
            await stage.begin()
            before = stage.epoch
            await stage.end(end, commit=commit)
            await stage.init(version, pid=stage.pid, epoch=before)
            await stage.init(version, pid=stage.pid, epoch=before)
            await stage.init(version, pid=stage.pid, epoch=before + 1)


@script(API)
async def somebody_elses_id(stage: Stage, version: int) -> None:
    """A second producer takes the id; the first learns it whatever it does."""
    await stage.written()
    pid, epoch = stage.pid, stage.epoch
    await stage.init(version)
    for late in range(6):
        await stage.end(late, pid=pid, epoch=epoch, adopt=False)
    for late in range(4):
        await stage.add(late, pid=pid, epoch=epoch)
    await stage.produce(9, 1, pid=pid, epoch=epoch)
    if version >= 3:
        await stage.init(version, pid=pid, epoch=epoch)


@script(API)
async def a_time_out_that_changes(stage: Stage, version: int) -> None:
    await stage.init(version, timeout_ms=60_000)
    await stage.init(version, timeout_ms=1_000)
    await stage.begin()
    await stage.init(version, timeout_ms=2_000)
