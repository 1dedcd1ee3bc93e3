"""Offsets committed in transactions on a whole node: through the group's home, its log, markers and restarts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.kernels import scan_batches
from penstock.model.errors import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    ILLEGAL_GENERATION,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_TXN_STATE,
    NONE,
    NOT_COORDINATOR,
    PRODUCER_FENCED,
    TRANSACTION_ABORTABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSTABLE_OFFSET_COMMIT,
    ErrorCode,
)
from penstock.model.ids import OFFSETS_TOPIC
from penstock.protocol.batch import is_transactional
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest
from penstock.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from penstock.replication.verifying import VerifyMode
from penstock.storage.log import Log
from tests.patience import until
from tests.walks.data_plane import Client, Machine, walk
from tests.walks.membership import commit, committed, coordinator
from tests.walks.transacting import ID, Transactional, mark, serve_transactions

OK = NONE.code


def home_of(machine: Machine, group: str = "g") -> tuple[str, int]:
    return OFFSETS_TOPIC, machine.node.broker.groups.home_of(group)


def home(machine: Machine, group: str = "g") -> Any:
    groups = machine.node.broker.groups
    return groups._homes[groups.home_of(group)]


def log_of(machine: Machine, group: str = "g") -> Log:
    return machine.node.partitions.named(*home_of(machine, group)).require_log()


async def add(
    client: Client,
    producer: Transactional,
    at: int,
    *,
    group: str = "g",
    partitions: tuple[int, ...] = (0,),
    topic: str = "orders",
    version: int = 5,
    **said: Any,
) -> list[int]:
    """TxnOffsetCommit; the error code of each partition."""
    made = TxnOffsetCommitRequest
    done = [
        made.TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=at, committed_metadata="note")
        for index in partitions
    ]
    request = made(
        transactional_id=ID,
        group_id=group,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        topics=[made.TxnOffsetCommitRequestTopic(name=topic, partitions=done)],
        **said,
    )
    reply = await client.ask(request, version)
    return [each.error_code for one in reply.topics for each in one.partitions]


async def stable(client: Client, *, version: int = 9, partition: int = 0) -> int:
    """The committed offset of one partition, or what is wrong with it, negated and less 1000."""
    made = OffsetFetchRequest
    if version < 8:
        old = made.OffsetFetchRequestTopic(name="orders", partition_indexes=[partition])
        reply = await client.ask(made(group_id="g", require_stable=True, topics=[old]), version)
        (found,) = reply.topics[0].partitions
    else:
        topic = made.OffsetFetchRequestTopics(name="orders", partition_indexes=[partition])
        group = made.OffsetFetchRequestGroup(group_id="g", topics=[topic])
        reply = await client.ask(made(groups=[group], require_stable=True), version)
        (found,) = reply.groups[0].topics[0].partitions
    if found.error_code:
        assert (found.committed_offset, found.committed_leader_epoch) == (-1, -1)
        return -1_000 - int(found.error_code)
    return int(found.committed_offset)


UNSTABLE = -1_000 - UNSTABLE_OFFSET_COMMIT.code


async def ready(machine: Machine, client: Client) -> None:
    await client.create("orders", 2)
    await coordinator(client, "g")


@pytest.mark.parametrize("version", range(6))
def test_offsets_count_when_the_transaction_is_committed(version: int) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        said = serve_transactions(machine)
        await ready(machine, client)
        producer = Transactional(client)
        assert await add(client, producer, 10, version=version, partitions=(0, 1)) == [OK, OK]
        assert await add(client, producer, 11, version=version) == [OK], "of a transaction that is open nobody is asked"
        modes = [VerifyMode.VERIFY] * 4 + [VerifyMode.VERIFY_ABORTABLE, VerifyMode.ADD]
        assert said.asked == [(ID, producer.id, 0, [home_of(machine)], modes[version])]
        assert await committed(client, "g") == {}
        assert await mark(client, producer, home_of(machine)) == [OK]
        assert await committed(client, "g") == {("orders", 0): 11, ("orders", 1): 10}

    walk(steps)


def test_they_are_one_batch_of_the_transaction_each() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await ready(machine, client)
        producer = Transactional(client, epoch=4)
        await add(client, producer, 10, partitions=(0, 1))
        await commit(client, "g", "orders", 3)
        log = log_of(machine)
        read = log.read(0, max_bytes=1 << 20, limit=log.next, at_least_one=True)
        headers = [header for _, header in scan_batches(b"".join(span.read() for span in read.spans))]
        told = [
            (
                each.record_count,
                each.producer_id,
                each.producer_epoch,
                each.base_sequence,
                is_transactional(each.attributes),
            )
            for each in headers
        ]
        assert told == [(2, producer.id, 4, 0, True), (1, -1, -1, -1, False)]

    walk(steps)


def test_offsets_of_an_aborted_transaction_never_count() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await ready(machine, client)
        await commit(client, "g", "orders", 3)
        producer = Transactional(client)
        await add(client, producer, 10)
        assert await mark(client, producer, home_of(machine), commit=False) == [OK]
        assert await stable(client) == 3

    walk(steps)


@pytest.mark.parametrize("version", [7, 8, 9])
def test_who_requires_a_stable_offset_waits_for_the_end_of_the_transaction(version: int) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await ready(machine, client)
        await commit(client, "g", "orders", 3)
        producer = Transactional(client)
        await add(client, producer, 10)
        assert await stable(client, version=version) == UNSTABLE
        assert await stable(client, version=version, partition=1) == -1
        assert await committed(client, "g") == {("orders", 0): 3}
        await mark(client, producer, home_of(machine))
        assert await stable(client, version=version) == 10

    walk(steps)


def test_script_10_the_later_written_offset_wins() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await ready(machine, client)
        producer = Transactional(client)
        assert await add(client, producer, 10) == [OK]
        assert await commit(client, "g", "orders", 12) == OK
        assert await stable(client) == UNSTABLE

        # The home goes and is read again before the marker: what was pending is pending still.
        home(machine)._drop()
        await until(lambda: not home(machine).is_loading)
        assert await stable(client) == UNSTABLE

        assert await mark(client, producer, home_of(machine)) == [OK]
        assert await stable(client) == 12, "the next owner starts where the plain commit says"
        assert await mark(client, producer, home_of(machine)) == [OK]
        assert await stable(client) == 12, "a marker that is sent again changes nothing"
        home(machine)._drop()
        await until(lambda: not home(machine).is_loading)
        assert await stable(client) == 12

    walk(steps)


def test_what_is_pending_outlives_a_restart() -> None:
    async def main() -> None:
        machine = Machine()
        await machine.start()
        serve_transactions(machine)
        client = await machine.dial()
        await ready(machine, client)
        producer = Transactional(client)
        assert await add(client, producer, 10) == [OK]
        await machine.stop()
        await machine.start()
        client = await machine.dial()
        assert await stable(client) == UNSTABLE
        assert await mark(client, producer, home_of(machine)) == [OK]
        assert await stable(client) == 10
        await machine.stop()

    asyncio.run(main())


def test_a_marker_is_answered_when_both_the_log_and_the_group_have_it() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await ready(machine, client)
        producer, other = Transactional(client), await machine.dial()
        await add(client, producer, 10)
        machine.offload.hold()  # nothing is committed that is not synced
        ending = asyncio.ensure_future(mark(client, producer, home_of(machine)))
        await until(lambda: log_of(machine).next == 2)
        assert home(machine).shard.table.offsets["g"]["orders", 0].offset == 10, "applied in the same step"
        asked = asyncio.ensure_future(stable(other))
        await coordinator(await machine.dial(), "g")  # whatever was under way has been answered by now
        assert not ending.done()
        assert not asked.done(), "whoever looks waits until it cannot be taken back"
        machine.offload.release()
        assert await ending == [OK]
        assert await asked == 10

    walk(steps, log_flush_interval_messages="1")


def test_a_marker_ends_what_a_producer_did_in_all_groups_of_the_partition() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await ready(machine, client)
        producer = Transactional(client)
        await add(client, producer, 10)
        await add(client, producer, 20, group="h")
        assert await mark(client, producer, home_of(machine)) == [OK]
        assert (await committed(client, "g"), await committed(client, "h")) == (
            {("orders", 0): 10},
            {("orders", 0): 20},
        )

    walk(steps, offsets_topic_num_partitions="1")


ANSWERS: list[tuple[ErrorCode | None, dict[int, ErrorCode]]] = [
    (None, {1: COORDINATOR_NOT_AVAILABLE, 2: COORDINATOR_LOAD_IN_PROGRESS, 5: COORDINATOR_LOAD_IN_PROGRESS}),
    (PRODUCER_FENCED, dict.fromkeys((0, 3, 4, 5), INVALID_PRODUCER_EPOCH)),
    (TRANSACTION_ABORTABLE, {3: INVALID_TXN_STATE, 4: TRANSACTION_ABORTABLE, 5: TRANSACTION_ABORTABLE}),
    (CONCURRENT_TRANSACTIONS, dict.fromkeys((3, 4, 5), CONCURRENT_TRANSACTIONS)),
    (INVALID_PRODUCER_ID_MAPPING, dict.fromkeys((3, 5), INVALID_PRODUCER_ID_MAPPING)),
    (NOT_COORDINATOR, dict.fromkeys((3, 5), NOT_COORDINATOR)),
    (COORDINATOR_LOAD_IN_PROGRESS, {1: COORDINATOR_NOT_AVAILABLE, 5: COORDINATOR_LOAD_IN_PROGRESS}),
]


@pytest.mark.parametrize(
    ("answer", "version", "told"),
    [(answer, version, told) for answer, by_version in ANSWERS for version, told in by_version.items()],
)
def test_what_is_told_of_the_coordinators_answer(answer: ErrorCode | None, version: int, told: ErrorCode) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        said = serve_transactions(machine)
        await ready(machine, client)
        said.answers[home_of(machine)] = [answer]
        assert await add(client, Transactional(client), 10, version=version) == [told.code]
        assert len(said.asked) == 1, "nobody asks twice"
        assert log_of(machine).next == 0

    walk(steps)


def test_what_does_not_exist_is_refused_by_itself() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await ready(machine, client)
        producer, unknown = Transactional(client), UNKNOWN_TOPIC_OR_PARTITION.code
        assert sorted(await add(client, producer, 10, partitions=(0, 7, -1))) == [OK, unknown, unknown]
        assert await add(client, producer, 10, topic="missing") == [unknown]
        await mark(client, producer, home_of(machine))
        assert await committed(client, "g") == {("orders", 0): 10}

    walk(steps)


def test_members_are_checked_after_the_coordinator_has_agreed() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        said = serve_transactions(machine)
        await ready(machine, client)
        producer = Transactional(client)
        assert await add(client, producer, 10, member_id="m", generation_id=4) == [ILLEGAL_GENERATION.code]
        assert len(said.asked) == 1
        assert log_of(machine).next == 0

    walk(steps)


def test_a_producer_that_was_replaced_costs_nobody_the_shard() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        said = serve_transactions(machine)
        await ready(machine, client)
        zombie, other = Transactional(client), await machine.dial()
        await commit(client, "g", "orders", 3)
        shard = home(machine).shard
        said.hold()
        late = asyncio.ensure_future(add(client, zombie, 10))
        await until(lambda: bool(said.asked))
        assert await mark(other, zombie, home_of(machine), commit=False, epoch=1) == [OK]
        said.release()
        assert await late == [INVALID_PRODUCER_EPOCH.code]
        assert await add(client, zombie, 10) == [INVALID_PRODUCER_EPOCH.code]
        zombie.epoch = 1
        said.hold()
        late = asyncio.ensure_future(add(client, zombie, 11, version=4))
        await until(lambda: len(said.asked) == 2)
        assert await mark(other, zombie, home_of(machine), commit=False, epoch=1) == [OK]
        said.release()
        assert await late == [INVALID_TXN_STATE.code]
        assert home(machine).shard is shard
        assert await stable(client) == 3

    walk(steps)


def test_a_node_without_a_coordinator_takes_no_offsets_of_transactions() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await ready(machine, client)
        assert await add(client, Transactional(client), 10) == [COORDINATOR_NOT_AVAILABLE.code]

    walk(steps)


def test_a_node_that_does_not_coordinate_says_so() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        serve_transactions(machine)
        await client.create("orders")
        assert await add(client, Transactional(client), 10) == [NOT_COORDINATOR.code]

    walk(steps)
