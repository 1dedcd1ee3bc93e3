"""Drivers and tasks of exactly-once sinks against a broker, without Spark: who is shown, who is fenced, who stops."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import BinaryType, StructField, StructType

from penstock.blocking import Admin, Consumer, Producer
from penstock.client.producer import Producer as AsyncProducer
from penstock.client.producer.transactions.driver import TransactionDriver
from penstock.client.producer.transactions.prepared import PreparedTransaction, ProducerEpoch
from penstock.model.ids import TopicPartition
from penstock.spark import dialogue
from penstock.spark.checkpoints.local import LocalCheckpoint
from penstock.spark.errors import BadOption, CommitRefused
from penstock.spark.lake.ranges import TableRange
from penstock.spark.naming import DECISIONS_TOPIC
from penstock.spark.topic_sink.options import SinkOptions
from penstock.spark.topic_sink.transactions import incarnation, ledger, plan, records, writing
from penstock.spark.topic_sink.transactions.driving import Driving
from penstock.spark.topic_sink.transactions.ledger import LedgerUnfit
from penstock.spark.topic_sink.transactions.machine import (
    Handout,
    LedgerFull,
    LedgerVanished,
    NotInTime,
    Superseded,
    TaskWrote,
    Torn,
    left_ms,
)
from penstock.spark.topic_sink.transactions.plan import ExactlyOnce, abort, commit
from penstock.spark.topic_sink.transactions.records import Decision, Standing
from penstock.spark.topic_sink.writers import TopicStreamWriter
from penstock.testing import EmbeddedBroker, broker
from tests.patience import wait_for, within

PARTITIONS = 2
PREPARED = ("PrepareCommit", "PrepareAbort")


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker() as running:
        yield running
    dialogue.for_process().close()


class Query:
    """One query's checkpoint and sink, whose driver may be another process each time."""

    def __init__(self, node: EmbeddedBroker, home: Path, topic: str, patch: pytest.MonkeyPatch, **kafka: str) -> None:
        self.node, self.home, self.topic, self._patch = node, home, topic, patch
        (home / "offsets").mkdir(parents=True)
        (home / "metadata").write_text(json.dumps({"id": f"query-of-{topic}"}))
        given = {"kafka.bootstrap.servers": node.bootstrap_servers, "topic": topic, "exactly.once": "true"}
        given |= {name.replace("_", "."): value for name, value in kafka.items()}
        self.options = SinkOptions.of({**given, "checkpointLocation": str(home)})
        self.local = True
        self.reads(0, 0, 10)

    def reads(self, batch: int, start: int, end: int) -> None:
        """What Spark writes down before a batch runs."""
        offset = {"in": {"0": end}, "@penstock": {"ids": {"in": "I"}, "from": {"in": {"0": start}}}}
        (self.home / "offsets" / str(batch)).write_text(f'v1\n{{"batchTimestampMs":1}}\n{json.dumps(offset)}')

    def plan(self, driver: str = "one") -> ExactlyOnce:
        self._patch.setattr(plan, "driver_run", lambda: driver)
        return ExactlyOnce.planned(self.options)

    def write(self, planned: ExactlyOnce, task: int, values: Sequence[int], attempt: int = 0) -> TaskWrote:
        self._patch.setattr(writing, "_task", lambda: (task, attempt, 100 + task + 10 * attempt))
        self._patch.setattr(writing, "driver_run", lambda: planned.handout.run if self.local else "an executor")
        rows = pa.record_batch({"value": pa.array([b"%d" % each for each in values], pa.binary())})
        return planned.deliver([(self.topic, rows)] if values else [])

    def commit(self, planned: ExactlyOnce, tasks: Sequence[TaskWrote], batch: int) -> None:
        commit(self.options, planned.handout, tasks, batch)

    def abort(self, planned: ExactlyOnce, tasks: Sequence[TaskWrote], count: int) -> None:
        abort(self.options, planned.handout, tasks, count, 0)

    def abort_untold(self, tasks: int) -> None:
        """As Spark does it, with the writer that plans nothing, when no task has said anything."""
        given = {"kafka.bootstrap.servers": self.node.bootstrap_servers, "topic": self.topic, "exactly.once": "true"}
        schema = StructType([StructField("value", BinaryType())])
        writer = TopicStreamWriter({**given, "checkpointLocation": str(self.home)}, schema, plans=False)
        self._patch.setattr(incarnation, "driver_run", lambda: "one")
        writer.abort([None] * tasks, 0)

    def shown(self) -> list[int]:
        """What readers of committed records see up to the end of the log, for which nothing may be open."""
        with Admin(bootstrap_servers=self.node.bootstrap_servers) as admin:
            wait_for("nothing open", lambda: not self.open(admin, "Ongoing", *PREPARED), timeout_s=20)
        settings = {"bootstrap_servers": self.node.bootstrap_servers, "isolation_level": "read_committed"}
        with Consumer(self.topic, **settings, offset_reset="earliest") as consumer:
            found: list[int] = []
            ends = consumer.end_offsets(*((self.topic, index) for index in range(PARTITIONS)))

            def read() -> bool:
                found.extend(int(record.value) for record in consumer.poll(timeout_ms=50))
                return all(consumer.position(partition) >= end for partition, end in ends.items())

            wait_for("the ends", read, timeout_s=20)
            return sorted(found)

    def open(self, admin: Admin, *states: str) -> list[str]:
        pattern = f"penstock-spark-query-of-{self.topic}-.*"
        return [each.id for each in admin.list_transactions(states=states or ["Ongoing"], pattern=pattern)]


@pytest.fixture
def query(
    node: EmbeddedBroker, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Query:
    topic = f"out-{abs(hash(request.node.name)) % 10**8}"
    with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
        admin.create_topic(topic, partitions=PARTITIONS)
    return Query(node, tmp_path, topic, monkeypatch)


def test_a_batch_is_shown_when_it_is_decided_and_not_before(query: Query) -> None:
    planned = query.plan()
    tasks = [query.write(planned, 0, [1, 2]), query.write(planned, 1, [3]), query.write(planned, 2, [])]
    with Admin(bootstrap_servers=query.node.bootstrap_servers) as admin:
        assert len(query.open(admin)) == 2, "a task without rows begins nothing"
    query.commit(planned, tasks, 0)
    assert query.shown() == [1, 2, 3]
    query.reads(1, 10, 20)
    planned = query.plan()
    assert len(planned.handout.pool) == 3, "the pool has grown to the tasks that there were"
    query.commit(planned, [query.write(planned, 0, [4])], 1)
    assert query.shown() == [1, 2, 3, 4]


def test_a_batch_that_is_played_again_is_known_by_what_it_has_read(query: Query) -> None:
    planned = query.plan()
    query.commit(planned, [query.write(planned, 0, [1, 2])], 0)
    again = query.plan("two")
    query.commit(again, [query.write(again, 0, [1]), query.write(again, 1, [2])], 0)
    assert query.shown() == [1, 2]
    query.reads(0, 0, 5)
    lost_checkpoint = query.plan("three")
    wrote = query.write(lost_checkpoint, 0, [1])
    with pytest.raises(CommitRefused, match="does not begin where this query has written to"):
        query.commit(lost_checkpoint, [wrote], 0)
    query.abort(lost_checkpoint, [wrote], 1)
    assert query.shown() == [1, 2]


def test_attempts_that_lost_are_not_shown_and_hold_nobody_up(query: Query) -> None:
    planned = query.plan()
    query.write(planned, 0, [1])
    second = query.write(planned, 0, [1], attempt=1)
    third = query.write(planned, 0, [1], attempt=2)
    query.commit(planned, [second], 0)
    assert third.prepared.transactional_id != second.prepared.transactional_id
    assert query.shown() == [1]


def test_on_a_cluster_that_begins_stages_again_every_attempt_has_an_id_of_its_own(query: Query) -> None:
    query.local = False
    planned = query.plan()
    first = query.write(planned, 0, [1])
    assert first.prepared not in [planned.handout.slot(number) for number in range(2)]
    query.commit(planned, [first, query.write(planned, 1, [2])], 0)
    assert query.shown() == [1, 2]


def test_a_driver_that_was_replaced_decides_nothing(query: Query) -> None:
    zombie = query.plan("zombie")
    wrote = query.write(zombie, 0, [1, 2])
    successor = query.plan("successor")
    query.commit(successor, [query.write(successor, 0, [1, 2])], 0)
    query.reads(1, 10, 20)
    successor = query.plan("successor")
    query.commit(successor, [query.write(successor, 0, [3])], 1)
    with pytest.raises(Superseded):
        query.commit(zombie, [wrote], 0)
    query.abort(zombie, [wrote], 1)
    with pytest.raises(Superseded, match="another driver of this query has taken over"):
        query.plan("zombie")
    assert query.shown() == [1, 2, 3]


def test_a_task_that_wakes_batches_later_writes_nothing(query: Query) -> None:
    sleeping = query.plan()
    winner = query.write(sleeping, 0, [1], attempt=1)
    query.commit(sleeping, [winner], 0)
    query.reads(1, 10, 20)
    planned = query.plan()
    query.commit(planned, [query.write(planned, 0, [2])], 1)
    with pytest.raises(Exception, match="INVALID_PRODUCER_EPOCH"):
        query.write(sleeping, 0, [1])
    assert query.shown() == [1, 2]


def test_what_a_dead_driver_left_undecided_is_aborted_by_the_next_plan(query: Query) -> None:
    dead = query.plan("dead")
    query.write(dead, 0, [1])
    query.write(dead, 1, [2], attempt=1)
    successor = query.plan("successor")
    assert query.shown() == []
    query.commit(successor, [query.write(successor, 0, [1, 2])], 0)
    assert query.shown() == [1, 2]


def test_tasks_that_failed_hold_nobody_up(query: Query) -> None:
    planned = query.plan()
    wrote = query.write(planned, 1, [2])
    query.write(planned, 0, [1])
    query.abort(planned, [wrote], 2)
    assert query.shown() == []


def test_a_batch_of_which_no_task_came_back_holds_nobody_up(query: Query) -> None:
    planned = query.plan()
    query.write(planned, 0, [1])
    query.write(planned, 1, [2], attempt=1)
    query.abort_untold(2)
    assert query.shown() == []


def test_a_sink_that_ends_leaves_nothing_open_and_touches_no_other_driver(query: Query) -> None:
    query.write(query.plan("first"), 0, [1])
    planned = query.plan("second")
    wrote = query.write(planned, 0, [2])
    plan.release(query.options, "first")
    query.commit(planned, [wrote], 0)
    query.write(planned, 1, [3])
    plan.release(query.options, "second")
    assert query.shown() == [2]


@pytest.mark.parametrize("deciding", [False, True], ids=["writing", "deciding"])
def test_readers_go_on_within_ten_seconds_of_the_return_of_a_driver_that_was_killed(
    query: Query, deciding: bool
) -> None:
    dead = query.plan("dead")
    wrote = query.write(dead, 0, [1])
    if deciding:
        die_in_the_decision(query, dead, [wrote])
    returned = time.monotonic()
    query.plan("successor")
    with Admin(bootstrap_servers=query.node.bootstrap_servers) as admin:
        places = [TopicPartition(query.topic, index) for index in range(PARTITIONS)]
        ends = {place: each.offset for place, each in admin.offsets(dict.fromkeys(places, "latest")).checked().items()}

        def free() -> bool:
            stable = admin.offsets(dict.fromkeys(places, "latest"), read_committed=True).checked()
            return all(stable[place].offset >= end for place, end in ends.items())

        wait_for("the last stable offset", free, timeout_s=10)
    assert time.monotonic() - returned < within(10)
    assert query.shown() == []


def die_in_the_decision(query: Query, planned: ExactlyOnce, tasks: Sequence[TaskWrote]) -> None:
    """Its record is in the ledger, and whether it counts nobody will ever say."""
    closed = AsyncProducer.close

    async def dies(self: TransactionDriver) -> None:
        raise Died

    async def vanishes(self: AsyncProducer, timeout_ms: float | None = None) -> None:
        """A process that is killed aborts nothing."""
        with pytest.MonkeyPatch.context() as quiet:
            quiet.setattr(TransactionDriver, "abort", lambda *_: asyncio.sleep(0))
            await self.flush()
            await closed(self, 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionDriver, "commit", dies)
        patch.setattr(AsyncProducer, "close", vanishes)
        with pytest.raises(Died):
            query.commit(planned, tasks, 0)
    with Admin(bootstrap_servers=query.node.bootstrap_servers) as admin:
        assert any(each.endswith("-driver") for each in query.open(admin)), "its transaction is open"


def test_a_topic_that_was_made_anew_stops_the_query(query: Query) -> None:
    planned = query.plan()
    query.commit(planned, [query.write(planned, 0, [1])], 0)
    with Admin(bootstrap_servers=query.node.bootstrap_servers) as admin:
        admin.delete_topic(query.topic)
        admin.create_topic(query.topic, partitions=2)
    query.reads(1, 10, 20)
    planned = query.plan()
    wrote = query.write(planned, 0, [2])
    with pytest.raises(CommitRefused, match="deleted and made anew"):
        query.commit(planned, [wrote], 1)
    query.abort(planned, [wrote], 1)
    assert query.shown() == []


def delete_ledger(query: Query) -> None:
    with Admin(bootstrap_servers=query.node.bootstrap_servers) as admin:
        admin.delete_topic(DECISIONS_TOPIC)


def make_ledger_anew(query: Query) -> None:
    delete_ledger(query)
    with Admin(bootstrap_servers=query.node.bootstrap_servers) as admin:
        admin.create_topic(DECISIONS_TOPIC, 1, configs={"cleanup.policy": "compact"})


def take_standing_away(query: Query) -> None:
    with Producer(bootstrap_servers=query.node.bootstrap_servers) as vandal:
        vandal.send(DECISIONS_TOPIC, None, key=f"query-of-{query.topic}", partition=0).result()


@pytest.mark.parametrize("vanish", [delete_ledger, make_ledger_anew, take_standing_away])
def test_a_ledger_that_vanished_is_never_a_fresh_start(query: Query, vanish: Callable[[Query], None]) -> None:
    """The batch is decided and ended, and its driver has died before Spark wrote that down: it is played again."""
    dead = query.plan("dead")
    query.commit(dead, [query.write(dead, 0, [1, 2])], 0)
    vanish(query)
    for driver in ("dead", "successor"):
        with pytest.raises(LedgerVanished, match=r"new checkpoint.*startingOffsets.*penstock-decisions\.json"):
            query.plan(driver)
    with Admin(bootstrap_servers=query.node.bootstrap_servers) as admin:
        assert (DECISIONS_TOPIC in {each.name for each in admin.topics(internal=True)}) == (
            vanish is not delete_ledger
        ), "no other one is made"
    assert query.shown() == [1, 2]


@pytest.mark.parametrize(
    ("partitions", "policy", "told"),
    [
        (1, "delete", "cleanup.policy=delete"),
        (1, "compact,delete", "cleanup.policy=compact,delete"),
        (3, "compact", "3"),
    ],
)
def test_a_ledger_that_would_forget_is_not_written_to(query: Query, partitions: int, policy: str, told: str) -> None:
    with Admin(bootstrap_servers=query.node.bootstrap_servers) as admin:
        if DECISIONS_TOPIC in {each.name for each in admin.topics(internal=True)}:
            admin.delete_topic(DECISIONS_TOPIC)
        admin.create_topic(DECISIONS_TOPIC, partitions, configs={"cleanup.policy": policy})
        try:
            with pytest.raises(LedgerUnfit, match=rf"__penstock_decisions has {told}"):
                query.plan()
        finally:
            admin.delete_topic(DECISIONS_TOPIC)


def test_a_ledger_that_vanishes_under_a_batch_stops_it(query: Query) -> None:
    planned = query.plan()
    wrote = query.write(planned, 0, [1, 2])
    delete_ledger(query)
    with pytest.raises(LedgerVanished):
        query.commit(planned, [wrote], 0)


def test_whoever_knows_what_it_means_goes_on_without_the_mark(query: Query) -> None:
    planned = query.plan()
    query.commit(planned, [query.write(planned, 0, [1, 2])], 0)
    delete_ledger(query)
    (query.home / "penstock-decisions.json").unlink()
    query.reads(1, 10, 20)
    planned = query.plan()
    query.commit(planned, [query.write(planned, 0, [3])], 1)
    assert query.shown() == [1, 2, 3]


def test_a_query_that_wrote_at_least_once_may_go_over_to_exactly_once(query: Query) -> None:
    """Batches were committed, and nothing is known of them."""
    query.reads(1, 10, 20)
    planned = query.plan()
    query.commit(planned, [query.write(planned, 0, [3])], 1)
    assert query.shown() == [3]


def test_the_mark_is_what_a_mirror_takes_along(query: Query) -> None:
    query.plan()
    assert "penstock-decisions.json" in LocalCheckpoint(query.home).files()


class Died(Exception):
    """The driver."""


def die_after_the_decision(query: Query, planned: ExactlyOnce, tasks: Sequence[TaskWrote], batch: int = 0) -> None:
    async def dies(*_: object) -> bool:
        raise Died

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Driving, "_end", dies)
        with pytest.raises(Died):
            query.commit(planned, tasks, batch)


def out_of_time(query: Query, *tasks: TaskWrote) -> None:
    """What a coordinator does when the time of a transaction is over, now."""
    with Admin(bootstrap_servers=query.node.bootstrap_servers) as admin:
        admin.fence_producers([each.prepared.transactional_id for each in tasks]).checked()


def test_what_was_decided_is_ended_by_the_next_driver(query: Query) -> None:
    planned = query.plan("dead")
    die_after_the_decision(query, planned, [query.write(planned, 0, [1]), query.write(planned, 1, [2])])
    again = query.plan("successor")
    assert query.shown() == [1, 2]
    query.commit(again, [query.write(again, 0, [1, 2])], 0)
    assert query.shown() == [1, 2]


def test_a_decision_whose_transactions_are_all_aborted_is_dropped_and_the_batch_written_again(query: Query) -> None:
    planned = query.plan("away")
    tasks = [query.write(planned, 0, [1]), query.write(planned, 1, [2])]
    die_after_the_decision(query, planned, tasks)
    out_of_time(query, *tasks)
    again = query.plan("successor")
    assert query.shown() == []
    query.commit(again, [query.write(again, 0, [1, 2])], 0)
    assert query.shown() == [1, 2]


def test_a_decision_of_which_a_part_is_aborted_stops_the_query_and_says_what_to_do(query: Query) -> None:
    planned = query.plan("away")
    tasks = [query.write(planned, 0, [1]), query.write(planned, 1, [2])]
    die_after_the_decision(query, planned, tasks)
    out_of_time(query, tasks[1])
    for driver in ("first", "second"):
        with pytest.raises(Torn, match=r"there in part.*away for longer.*-1 \(.*in-0 \[0, 10\).*new checkpoint"):
            query.plan(driver)
    assert query.shown() == [1]


def test_a_batch_whose_time_is_nearly_over_is_not_decided(query: Query) -> None:
    planned = query.plan()
    wrote = query.write(planned, 0, [1])
    out_of_time(query, wrote)
    with pytest.raises(NotInTime, match=r"kafka\.transaction\.timeout\.ms higher"):
        query.commit(planned, [wrote], 0)
    query.abort(planned, [wrote], 1)
    assert query.shown() == []


def test_a_transaction_is_as_old_as_its_task_says_and_not_as_the_coordinators_clock(query: Query) -> None:
    planned = query.plan()
    wrote = query.write(planned, 0, [1])
    ago_ms = 880_000
    late = replace(wrote, begun_ms=wrote.begun_ms - ago_ms, took_ms=ago_ms)
    earlier = replace(planned, handout=replace(planned.handout, planned_ms=planned.handout.planned_ms - ago_ms))
    with pytest.raises(NotInTime, match=r"has \d+ s left of the 900 s"):
        query.commit(earlier, [late], 0)
    query.commit(planned, [wrote], 0)
    assert query.shown() == [1]


@pytest.mark.parametrize(("skew_ms", "left"), [(0, 700), (-3_600_000, 500), (3_600_000, 800)])
def test_the_clock_of_another_host_counts_as_far_as_it_can_be_right(skew_ms: int, left: int) -> None:
    """Planned 500 s ago, begun 300 s ago, and written within 200 s: of 1000 s there are 700 left."""
    handout = Handout("q", "r", ProducerEpoch(1, 1), (), 2, 1_000_000, 1, planned_ms=0)
    prepared = PreparedTransaction("t", 1, 1, 2)
    task = TaskWrote(prepared, (), begun_ms=200_000 + skew_ms, took_ms=200_000)
    assert left_ms(handout, task, now_ms=500_000) == left * 1_000


def test_a_time_that_brokers_do_not_allow_is_told(query: Query) -> None:
    query.options = replace(query.options, transaction_timeout_ms=900_001)
    with pytest.raises(BadOption, match=r"kafka\.transaction\.timeout\.ms=900001 is more than the brokers allow"):
        query.plan()


def test_one_jvm_is_one_driver() -> None:
    assert incarnation.driver_run() == incarnation.driver_run()
    assert len(incarnation.driver_run()) == 12


def three_batches(query: Query) -> ExactlyOnce:
    for batch in range(3):
        query.reads(batch, 10 * batch, 10 * batch + 10)
        planned = query.plan()
        query.commit(planned, [query.write(planned, 0, [batch, batch]), query.write(planned, 1, [batch])], batch)
    return planned


def test_an_audit_proves_ranges_and_rows(query: Query) -> None:
    three_batches(query)
    with Producer(bootstrap_servers=query.node.bootstrap_servers) as other:
        other.send(query.topic, b"0").result()  # what others write is not ours to explain
    found = plan.audited(query.options)
    assert found.clean, str(found)
    assert (found.decisions, found.oldest, found.offsets, found.rows, found.untold) == (3, 1, 30, 9, 0)
    assert "3 decisions, from number 1 on" in str(found)


def test_an_audit_finds_a_task_that_commits(query: Query) -> None:
    planned = three_batches(query)
    query.reads(3, 30, 40)
    planned = query.plan()
    zombie = query.write(planned, 0, [7])
    with Admin(bootstrap_servers=query.node.bootstrap_servers) as admin:
        admin.end_transaction(zombie.prepared, commit=True)
    (finding,) = plan.audited(query.options).findings
    assert "1 rows at" in finding
    assert "no decision lists them" in finding


def test_an_audit_finds_a_decision_that_is_lost(query: Query) -> None:
    three_batches(query)
    with Producer(bootstrap_servers=query.node.bootstrap_servers) as vandal:
        vandal.send(DECISIONS_TOPIC, None, key=f"query-of-{query.topic}/2", partition=0).result()
    findings = plan.audited(query.options).findings
    assert "decision 2 is not in the ledger" in findings[0]
    assert "decision 3 begins at 20 of in-0, and decision 1 ended at 10: it skips 10 offsets" in findings[1]
    assert all("no decision lists them" in each for each in findings[2:])
    assert findings[2:]


def keys_in_ledger(query: Query) -> set[str]:
    """Of this query, those whose last record says something."""
    found: dict[str, bytes | None] = {}
    settings = {"bootstrap_servers": query.node.bootstrap_servers, "isolation_level": "read_committed"}
    with Consumer(**settings, offset_reset="earliest") as consumer:
        home = (DECISIONS_TOPIC, 0)
        consumer.assign([home])
        (end,) = consumer.end_offsets(home).values()

        def read() -> bool:
            found.update({record.key.decode(): record.value for record in consumer.poll(timeout_ms=50)})
            return consumer.position(home) >= end

        wait_for("the end of the ledger", read, timeout_s=20)
    mine = f"query-of-{query.topic}"
    return {key for key, value in found.items() if value is not None and key.partition("/")[0] == mine}


def test_a_process_remembers_of_a_ledger_only_where_its_own_queries_stand(query: Query) -> None:
    with Producer(bootstrap_servers=query.node.bootstrap_servers) as other:
        other.send(DECISIONS_TOPIC, b"x" * 100_000, key=b"somebody else's", partition=0).result()
    three_batches(query)
    known = {whose: each for (_, whose), each in ledger._known.items()}
    (standing,) = [known[f"query-of-{query.topic}"].standing]
    assert standing is not None
    assert len(standing) < 2_000
    assert "somebody else's" not in known


def test_what_is_forgotten_leaves_nothing_in_the_ledger(query: Query) -> None:
    three_batches(query)
    mine = f"query-of-{query.topic}"
    assert keys_in_ledger(query) == {mine, *(f"{mine}/{sequence}" for sequence in (1, 2, 3))}
    query.reads(3, 30, 40)
    planned = query.plan("dead")
    die_after_the_decision(query, planned, [query.write(planned, 0, [3])], batch=3)
    plan.forgotten(query.options)
    assert keys_in_ledger(query) == set()
    assert query.shown() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3], "what was decided is there"


def test_a_decision_that_the_ledger_does_not_take_is_told_before_it_is_written(query: Query) -> None:
    delete_ledger_if_there(query)
    with Admin(bootstrap_servers=query.node.bootstrap_servers) as admin:
        configs = {"cleanup.policy": "compact", "max.message.bytes": "1500"}
        admin.create_topic(DECISIONS_TOPIC, 1, configs=configs)
        try:
            planned = query.plan()
            tasks = [query.write(planned, task, [task]) for task in range(30)]
            with pytest.raises(
                LedgerFull, match=r"about 30 tasks .* records of 1,500: .*coalesce.*max\.message\.bytes"
            ):
                query.commit(planned, tasks, 0)
            query.abort(planned, tasks, len(tasks))
            assert query.shown() == []
            planned = query.plan()
            query.commit(planned, [query.write(planned, task, [task]) for task in range(5)], 0)
            with pytest.raises(LedgerFull):
                plan_for(query, 30)
        finally:
            admin.delete_topic(DECISIONS_TOPIC)


def delete_ledger_if_there(query: Query) -> None:
    with Admin(bootstrap_servers=query.node.bootstrap_servers) as admin:
        if DECISIONS_TOPIC in {each.name for each in admin.topics(internal=True)}:
            admin.delete_topic(DECISIONS_TOPIC)


def plan_for(query: Query, tasks: int) -> None:
    """The plan of a batch that will have so many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "SLOTS_AT_FIRST", tasks)
        query.plan()


@given(st.lists(st.integers(1, 600), min_size=1, max_size=80))
def test_the_decisions_that_are_kept_are_there_and_are_no_more_than_their_bytes(sizes: list[int]) -> None:
    """Keys are used in turn, of fewer and fewer as decisions grow."""
    standing, kept = Standing("q", "r", 1), dict[str, tuple[int, int]]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "HISTORY_BYTES", 20_000)
        for sequence, size in enumerate(sizes, 1):
            ranges = tuple(TableRange("in", "I", each, 0, 1) for each in range(size))
            decision = Decision(sequence, sequence, ranges, ())
            standing = standing.decided(decision).ended()
            key = ledger.history_key("q", sequence, standing.history)
            kept[key] = sequence, len(records.packed(decision.to_json()))
            oldest = max(1, sequence - standing.history + 1)
            assert {each for each, _ in kept.values()} >= set(range(oldest, sequence + 1))
            assert sum(size for _, size in kept.values()) <= len(records._HISTORIES) * 20_000 + kept[key][1]


def test_clusters_that_have_the_classic_protocol_alone_are_served_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There an epoch stays when a transaction ends, and its batches are counted on."""
    with broker() as old, Admin(bootstrap_servers=old.bootstrap_servers) as admin:
        admin.update_features({"transaction.version": 1}, downgrade="safe")
        admin.create_topic("classic", partitions=2)
        query = Query(old, tmp_path, "classic", monkeypatch)
        three_batches(query)
        query.reads(3, 30, 40)
        dead = query.plan("dead")
        assert dead.handout.transaction_version == 1
        tasks = [query.write(dead, 0, [3]), query.write(dead, 1, [3], attempt=1)]
        die_after_the_decision(query, dead, tasks, batch=3)
        successor = query.plan("successor")
        query.commit(successor, [query.write(successor, 0, [3, 3])], 3)
        assert query.shown() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3]
        assert plan.audited(query.options).clean
