"""AddPartitionsToTxn of clients and of brokers, and AddOffsetsToTxn."""

from __future__ import annotations

from penstock.model.ids import METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from tests.compat.transactions.scripts.table import INT32_MAX, INT64_MAX, NOBODY, script
from tests.compat.transactions.stage import Stage

API, OFFSETS = "AddPartitionsToTxn", "AddOffsetsToTxn"
WRONG = ((NOBODY, 0), (-1, -1), (-1, 0), (INT64_MAX, 0), (None, -1), (None, 1), (None, 32_767), (0, None))
"""Producer ids and epochs that are not the script's own; None for what is."""


@script(API)
async def for_an_unknown_id(stage: Stage, version: int) -> None:
    for name in (None, ""):
        await stage.add(version, name=name, pid=NOBODY, epoch=0)
        await stage.add(version, name=name, pid=-1, epoch=-1)


@script(API)
async def by_a_wrong_producer(stage: Stage, version: int) -> None:
    await stage.init()
    await stage.init()
    await stage.init()
    for pid, epoch in WRONG:
        await stage.add(version, pid=pid, epoch=epoch)
    await stage.add(version)
    for pid, epoch in WRONG:
        await stage.add(version, pid=pid, epoch=epoch)


@script(API)
async def partitions_that_do_not_exist(stage: Stage, version: int) -> None:
    await stage.init()
    missing = ({"missing": [0]}, {stage.topic: [2]}, {stage.topic: [-1]}, {stage.topic: [INT32_MAX]}, {"": [0]})
    for partitions in (*missing, {"not a name!": [0]}, {"x" * 250: [0]}, {stage.topic: [0, 7], "missing": [0]}):
        await stage.add(version, partitions=partitions)
        await stage.add(version, partitions=partitions, pid=NOBODY)
    await stage.add(version, partitions={stage.topic: [0, 1]})
    await stage.add(version, partitions={stage.topic: [0, 2]})


@script(API)
async def topics_of_brokers(stage: Stage, version: int) -> None:
    await stage.init()
    for topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC, METADATA_TOPIC):
        await stage.add(version, partitions={topic: [0]})
    await stage.end(4, commit=False)


@script(API)
async def nothing_at_all(stage: Stage, version: int) -> None:
    await stage.init()
    await stage.add(version, partitions={})
    await stage.add(version, partitions={stage.topic: []})
    await stage.end(4)
    await stage.add(version, partitions={}, pid=NOBODY)


@script(API)
async def twice_in_one_request(stage: Stage, version: int) -> None:
    await stage.init()
    await stage.add(version, partitions={stage.topic: [0, 0, 1]})
    await stage.add(version, partitions=[(stage.topic, [0]), (stage.topic, [1, 0])])


@script(API)
async def again_and_more(stage: Stage, version: int) -> None:
    await stage.init()
    await stage.add(version)
    await stage.add(version)
    await stage.add(version, partitions={stage.topic: [1]})


@script(API)
async def after_each_end(stage: Stage, version: int) -> None:
    for end in (3, 5):
        for commit in (True, False):
            await stage.init()
            await stage.add(version)
            before = stage.epoch
            await stage.end(end, commit=commit)
            await stage.add(version, partitions={stage.topic: [1]}, epoch=before)
            await stage.add(version, partitions={stage.topic: [1]})


@script(API)
async def by_a_fenced_producer(stage: Stage, version: int) -> None:
    await stage.begin()
    old = stage.epoch
    await stage.init()
    await stage.add(version, epoch=old)
    await stage.add(version)
    await stage.add(version, epoch=old)


@script(API, since=4)
async def looked_at_only(stage: Stage, version: int) -> None:
    async def verify(**said: object) -> None:
        await stage.ask(
            AddPartitionsToTxnRequest(transactions=[stage.transaction(verify_only=True, **said)]),  # type: ignore[arg-type]
            version,
        )

    await verify(pid=NOBODY, epoch=0)
    await verify(name="", pid=NOBODY, epoch=0)
    await stage.init()
    await verify()
    await stage.add(3)
    await verify()
    await verify(partitions={stage.topic: [0, 1]})
    await verify(partitions={stage.topic: [0, 2]})
    await verify(partitions={"missing": [0]})
    await verify(partitions={})
    for pid, epoch in WRONG:
        await verify(pid=pid, epoch=epoch)
    for end in (4, 5):
        await stage.end(end)
        await verify()
        await stage.add(version)
        await verify()


@script(API, since=4)
async def many_transactions_at_once(stage: Stage, version: int) -> None:
    await stage.init()
    other = await stage.init(name=f"{stage.id}-other")
    theirs = {"name": f"{stage.id}-other", "pid": other.producer_id, "epoch": 0}
    made = AddPartitionsToTxnRequest
    await stage.ask(
        made(
            transactions=[
                stage.transaction(),
                stage.transaction(verify_only=True, **theirs),
                stage.transaction(name="unheard-of", pid=NOBODY, epoch=0),
                stage.transaction(name=f"{stage.id}-third", partitions={"missing": [0]}),
            ]
        ),
        version,
    )
    await stage.ask(made(transactions=[stage.transaction(partitions={}), stage.transaction(**theirs)]), version)


@script(OFFSETS)
async def offsets_for_an_unknown_id(stage: Stage, version: int) -> None:
    for name in (None, ""):
        await stage.add_offsets(version, name=name, pid=NOBODY, epoch=0)
        await stage.add_offsets(version, name=name, pid=-1, epoch=-1)


@script(OFFSETS)
async def offsets_by_a_wrong_producer(stage: Stage, version: int) -> None:
    await stage.init()
    await stage.init()
    for pid, epoch in WRONG:
        await stage.add_offsets(version, pid=pid, epoch=epoch)
    await stage.add_offsets(version)
    for pid, epoch in WRONG:
        await stage.add_offsets(version, pid=pid, epoch=epoch)


@script(OFFSETS)
async def offsets_of_odd_groups(stage: Stage, version: int) -> None:
    await stage.init()
    for group in ("", " ", "ünïcödé", "x" * 1_000):
        await stage.add_offsets(version, group=group)
    await stage.end(4, commit=False)


@script(OFFSETS)
async def offsets_again_and_after_each_end(stage: Stage, version: int) -> None:
    for end in (4, 5):
        for commit in (True, False):
            await stage.init()
            await stage.add_offsets(version)
            await stage.add_offsets(version)
            before = stage.epoch
            await stage.end(end, commit=commit)
            await stage.add_offsets(version, epoch=before)
            await stage.end(end, commit=commit)
