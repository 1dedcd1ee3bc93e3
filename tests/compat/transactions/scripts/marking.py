"""WriteTxnMarkers, which anybody with the right to it may send."""

from __future__ import annotations

from penstock.model.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.compat.transactions.looking import look
from tests.compat.transactions.scripts.table import INT16_MAX, NOBODY, script
from tests.compat.transactions.stage import Stage

API = "WriteTxnMarkers"


@script(API)
async def for_nobody(stage: Stage, version: int) -> None:
    for commit in (True, False):
        await stage.mark(version, pid=NOBODY, epoch=0, commit=commit)
        await stage.mark(version, pid=NOBODY, epoch=0, commit=commit)
        await stage.mark(version, pid=NOBODY, epoch=0, commit=commit, level=2)
    for level in (-1, 1, 2, 3, 100):
        await stage.mark(version, pid=NOBODY + 1, epoch=level, level=level)


@script(API)
async def of_no_epoch_and_no_producer(stage: Stage, version: int) -> None:
    for level in (0, 2):
        await stage.mark(version, pid=NOBODY, epoch=-1, level=level)
        await stage.mark(version, pid=-1, epoch=-1, level=level)
        await stage.mark(version, pid=-1, epoch=0, level=level)
        await stage.mark(version, pid=NOBODY + 2, epoch=INT16_MAX, level=level)
        await stage.mark(version, pid=NOBODY + 2, epoch=0, level=level)


@script(API)
async def where_nothing_is(stage: Stage, version: int) -> None:
    for partitions in ({"missing": [0]}, {stage.topic: [2]}, {stage.topic: [-1]}, {stage.topic: []}, {}):
        await stage.mark(version, pid=NOBODY, epoch=0, partitions=partitions)
    await stage.mark(version, pid=NOBODY, epoch=0, partitions={stage.topic: [0, 5], "missing": [1]})
    await stage.ask(WriteTxnMarkersRequest(markers=[]), version)


@script(API)
async def many_in_one_request(stage: Stage, version: int) -> None:
    await stage.written()
    await stage.ask(
        WriteTxnMarkersRequest(
            markers=[
                stage.marker(commit=True),
                stage.marker(pid=NOBODY, epoch=0),
                stage.marker(pid=NOBODY + 1, epoch=0, partitions={"missing": [0]}),
            ]
        ),
        version,
    )


@script(API)
async def epochs_while_it_is_open(stage: Stage, version: int) -> None:
    for level in (0, 1, 2):
        for step in (-1, 0, 1):
            await stage.init()
            await stage.written()
            await stage.mark(version, epoch=stage.epoch + step, level=level)
            await look(stage)
            await stage.mark(version, epoch=stage.epoch + step, level=level)
            await look(stage)


@script(API)
async def coordinator_epochs(stage: Stage, version: int) -> None:
    await stage.written()
    await stage.mark(version, coordinator_epoch=-1)
    await look(stage)
    for coordinator_epoch in (5, 4, 5, 6, 0, -1):
        await stage.mark(version, coordinator_epoch=coordinator_epoch)
        await look(stage)
    stage.ids.clear()  # its own coordinator has an older epoch now, and could never end it


@script(API)
async def an_end_that_an_operator_makes(stage: Stage, version: int) -> None:
    for commit in (True, False):
        await stage.written()
        await stage.mark(version, commit=commit)
        await look(stage)
        await stage.produce(9, 1)
        await stage.end(4, commit=not commit)
        await look(stage)


@script(API)
async def in_topics_of_brokers(stage: Stage, version: int) -> None:
    await stage.mark(version, pid=NOBODY, epoch=0, partitions={OFFSETS_TOPIC: [0, 1, 2]})
    await stage.mark(version, pid=NOBODY, epoch=0, partitions={TRANSACTIONS_TOPIC: [0]})


@script(API)
async def for_the_offsets_of_a_group(stage: Stage, version: int) -> None:
    for commit in (True, False):
        await stage.init()
        await stage.add_offsets()
        await stage.commit_offsets(3, offsets={stage.topic: [(0, stage.epoch)]})
        await look(stage)
        for step in (-1, 0):
            epoch = max(stage.epoch + step, 0)
            await stage.mark(version, epoch=epoch, commit=commit, partitions={OFFSETS_TOPIC: [0, 1, 2]})
            await look(stage)
        await stage.end(4, commit=False)
