"""Produce with transactional batches: before 11 the leader verifies, at 11 it says so, from 12 on it adds."""

from __future__ import annotations

from penstock.model.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tests.compat.transactions.looking import look
from tests.compat.transactions.scripts.table import INT16_MAX, INT64_MAX, NOBODY, script
from tests.compat.transactions.stage import Stage

API = "Produce"
ATTRIBUTES_LOW = 22
CONTROL = 0x20


@script(API)
async def without_being_added(stage: Stage, version: int) -> None:
    await stage.init()
    await stage.produce(version)
    await stage.produce(version, 1)
    await look(stage)
    await stage.end(4, commit=False)


@script(API)
async def without_an_id(stage: Stage, version: int) -> None:
    await stage.begin()
    await stage.produce(version, name=None)
    plain = stage.batch(pid=-1, epoch=-1, transactional=False, sequence=-1)
    await stage.produce(version, name=None, data={0: plain, 1: stage.batch()})


@script(API)
async def with_an_id_and_no_transaction(stage: Stage, version: int) -> None:
    await stage.begin()
    await stage.produce(version, transactional=False)
    await stage.produce(version, -1, pid=-1, epoch=-1, transactional=False)
    await stage.produce(version, 1)
    await look(stage)
    await stage.produce(version, 2, transactional=False)
    await stage.produce(version, 2)


@script(API)
async def with_an_odd_id(stage: Stage, version: int) -> None:
    await stage.begin()
    for name in ("unheard-of", "x" * 1_000):
        await stage.produce(version, name=name)
    from penstock.protocol.messages.produce import ProduceRequest

    request = stage.produced(version, {stage.topic: {0: stage.batch()}}, name="")
    assert isinstance(request, ProduceRequest)
    await stage.ask(request, version)


@script(API)
async def sequences_in_and_out_of_order(stage: Stage, version: int) -> None:
    await stage.begin()
    for sequence in (0, 1, 1, 0, 5, 3, 2, 2, 4, 3):
        await stage.produce(version, sequence)
    await stage.produce(version, 4, count=3)
    await stage.produce(version, 5)
    await stage.produce(version, 7)


@script(API)
async def a_first_sequence_that_is_not_the_first(stage: Stage, version: int) -> None:
    await stage.begin()
    await stage.produce(version, 5)
    await stage.produce(version, 6)
    await look(stage)
    await stage.produce(version, 0)
    await stage.end(4)
    await stage.add()
    await stage.produce(version, 9)


@script(API)
async def by_a_wrong_producer(stage: Stage, version: int) -> None:
    await stage.init()
    await stage.begin()
    wrong = ((NOBODY, 0), (NOBODY, -1), (INT64_MAX, 0), (None, 0), (None, 7), (None, INT16_MAX), (None, -1))
    for written in (False, True):
        if written:
            await stage.produce(version)
        for pid, epoch in (*wrong, (-1, -1), (-1, 0)):
            await stage.produce(version, int(written), pid=pid, epoch=epoch)


@script(API)
async def with_a_negative_sequence(stage: Stage, version: int) -> None:
    await stage.begin()
    await stage.produce(version, -1)
    await stage.produce(version, -1, transactional=False)


@script(API)
async def by_somebody_elses_id(stage: Stage, version: int) -> None:
    other = f"{stage.id}-other"
    told = await stage.init(name=other)
    await stage.add(name=other, pid=told.producer_id, epoch=0)
    await stage.begin()
    await stage.produce(version, name=other)
    await stage.produce(version, pid=told.producer_id, epoch=0)


@script(API)
async def two_producers_in_one_request(stage: Stage, version: int) -> None:
    other = f"{stage.id}-other"
    told = await stage.init(name=other)
    await stage.begin(partitions={stage.topic: [0, 1]})
    theirs = stage.batch(pid=told.producer_id, epoch=0)
    await stage.produce(version, data={0: stage.batch(), 1: theirs})
    await stage.produce(version, data={0: stage.batch(), 1: stage.batch(epoch=7)})
    plain = stage.batch(-1, pid=-1, epoch=-1, transactional=False)
    await stage.produce(version, data={0: stage.batch(), 1: plain})
    await stage.produce(version, data={0: stage.batch(1), 1: stage.batch(pid=told.producer_id, transactional=False)})


@script(API)
async def two_batches_for_a_partition(stage: Stage, version: int) -> None:
    await stage.begin()
    await stage.produce(version, data={0: stage.batch(0) + stage.batch(1)})
    await stage.produce(version, 0)
    await stage.produce(version, 1)


@script(API)
async def one_partition_of_two_was_added(stage: Stage, version: int) -> None:
    await stage.begin()
    await stage.produce(version, data={0: stage.batch(), 1: stage.batch()})
    await look(stage)
    await stage.end(4)


@script(API)
async def partitions_that_do_not_exist(stage: Stage, version: int) -> None:
    await stage.begin()
    for partition in (2, -1, 99):
        await stage.produce(version, partition=partition)
    if version < 13:
        for topic in ("missing", "", "not a name!"):
            await stage.produce(version, topic=topic)
    await stage.produce(version, data={0: stage.batch(), 7: stage.batch()})


@script(API)
async def topics_of_brokers(stage: Stage, version: int) -> None:
    await stage.begin()
    for topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
        await stage.produce(version, topic=topic)


@script(API)
async def a_marker_of_its_own(stage: Stage, version: int) -> None:
    """Clients write no control batches."""
    await stage.begin()
    raw = bytearray(stage.batch())
    raw[ATTRIBUTES_LOW] |= CONTROL
    from tests.compat.transactions.record_words import renamed

    await stage.produce(version, data={0: renamed(bytes(raw), lambda pid: pid)})
    await stage.produce(version)


@script(API)
async def after_each_end(stage: Stage, version: int) -> None:
    for end in (4, 5):
        for commit in (True, False):
            await stage.begin()
            await stage.produce(version)
            before = stage.epoch
            await stage.end(end, commit=commit)
            await look(stage)
            await stage.produce(version, 1, epoch=before)
            await stage.produce(version, 0)
            await look(stage)


@script(API)
async def by_a_fenced_producer(stage: Stage, version: int) -> None:
    await stage.begin()
    await stage.produce(version)
    old = stage.epoch
    await stage.init()
    await stage.produce(version, 1, epoch=old)
    await stage.produce(version, 0, epoch=old, partition=1)
    await stage.add()
    await stage.produce(version, 1, epoch=old)
    await stage.produce(version, 0)
    await stage.produce(version, 1, epoch=old)


@script(API)
async def with_other_acks(stage: Stage, version: int) -> None:
    await stage.begin()
    await stage.produce(version, acks=1)
    await stage.produce(version, 1, acks=2)
    await stage.produce(version, 1, acks=-2)


@script(API)
async def whole_transactions_one_after_the_other(stage: Stage, version: int) -> None:
    end = 5 if version >= 12 else 4
    await stage.init()
    sequence = 0
    for commit in (True, False, False, True):
        if version < 12:
            await stage.add()
        await stage.produce(version, sequence)
        await stage.produce(version, sequence + 1)
        await stage.end(end, commit=commit)
        await look(stage)
        sequence = 0 if version >= 12 else sequence + 2


@script(API)
async def idempotent_first_and_transactional_later(stage: Stage, version: int) -> None:
    await stage.init()
    await stage.produce(version, transactional=False, name=None)
    await stage.add()
    await stage.produce(version, 1)
    await look(stage)
    await stage.end(4)
    await stage.produce(version, 2, transactional=False, name=None)
