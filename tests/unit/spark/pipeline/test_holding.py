"""Sinks that stand together and have lost their checkpoint go on only where the topic has what the table has."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock.blocking import Admin
from penstock.spark import dialogue
from penstock.spark.errors import BadOption
from penstock.spark.lake.landing import ensure_table
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.ranges import TableRange
from penstock.spark.lake.store import BatchCommit
from penstock.spark.pipeline.flow import Flow
from penstock.spark.pipeline.releasing import release_topic
from penstock.spark.pipeline.starts import begin_of
from penstock.spark.pipeline.wiring import lake_options, topic_options
from penstock.spark.topic_sink.options import SinkOptions
from penstock.spark.topic_sink.transactions import plan, writing
from penstock.spark.topic_sink.transactions.driving import Driving
from penstock.spark.topic_sink.transactions.incarnation import run_of
from penstock.spark.topic_sink.transactions.machine import TaskWrote
from penstock.spark.topic_sink.transactions.plan import ExactlyOnce, commit
from penstock.testing import EmbeddedBroker, broker
from tests.unit.spark.pipeline.files import flow_of

FILE = """
name = "shop"
bootstrap = "{bootstrap}"
warehouse = "lake"
[sources.orders]
topic = "orders"
format = "json"
schema = "id BIGINT"
[sinks.lake]
from = "orders"
table = "orders"
together = "all"
[sinks.copy]
from = "orders"
topic = "{topic}"
trigger = "10 seconds"
exactly_once = true
together = "all"
"""


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker() as running:
        yield running
    dialogue.for_process().close()


class Query:
    """The shared query, of which tables and decisions are left and the checkpoint is not."""

    def __init__(self, node: EmbeddedBroker, home: Path, topic: str, patch: pytest.MonkeyPatch) -> None:
        self.id = f"query-of-{topic}"
        with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
            admin.create_topic(topic, 1)
        self.flow: Flow = flow_of(FILE.format(bootstrap=node.bootstrap_servers, topic=topic), home / "p.toml")
        self.checkpoint = home / "old"
        (self.checkpoint / "offsets").mkdir(parents=True)
        (self.checkpoint / "metadata").write_text(json.dumps({"id": self.id}))
        sink = self.flow.sinks[1]
        given = {**topic_options(self.flow, sink), "checkpointLocation": str(self.checkpoint)}
        self.options = SinkOptions.of(given)
        patch.setattr(plan, "driver_run", lambda: "old")
        patch.setattr(writing, "driver_run", lambda: "old")
        patch.setattr(writing, "_task", lambda: (0, 0, 100))

    def into_topic(self, batch: int, start: int, end: int) -> None:
        offset = {"orders": {"0": end}, "@penstock": {"ids": {"orders": "I"}, "from": {"orders": {"0": start}}}}
        (self.checkpoint / "offsets" / str(batch)).write_text(f'v1\n{{"batchTimestampMs":1}}\n{json.dumps(offset)}')
        planned = ExactlyOnce.planned(self.options)
        rows = pa.record_batch({"value": pa.array([b"1"], pa.binary())})
        written: Sequence[TaskWrote] = [planned.deliver([(self.flow.sinks[1].target, rows)])]
        commit(self.options, planned.handout, written, batch)

    def into_table(self, batch: int, start: int, end: int) -> None:
        store = open_store(LakeOptions.of(lake_options(self.flow, self.flow.sinks[0])))
        ensure_table(store, pa.schema([("id", pa.int64())]))
        store.refresh()
        store.commit(BatchCommit(self.id, batch, (TableRange("orders", "I", 0, start, end),)))


@pytest.fixture
def query(
    node: EmbeddedBroker, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Query:
    return Query(node, tmp_path, f"copy-{abs(hash(request.node.name)) % 10**8}", monkeypatch)


def test_where_both_stand_alike_the_query_goes_on(query: Query) -> None:
    query.into_topic(0, 0, 10)
    query.into_table(0, 0, 10)
    begin = begin_of(query.flow, query.flow.sinks[0])
    assert begin.start == f"table:{query.flow.warehouse}/orders"


@pytest.mark.parametrize("ahead", ["topic", "table"])
def test_where_one_of_them_has_a_batch_more_nobody_goes_on(query: Query, ahead: str) -> None:
    query.into_topic(0, 0, 10)
    query.into_table(0, 0, 10)
    (query.into_topic if ahead == "topic" else query.into_table)(1, 10, 20)
    topic, table = ("20", "10") if ahead == "topic" else ("10", "20")
    with pytest.raises(
        BadOption, match=rf'up to {{"orders": {{"0": {topic}}}}}, not up to {{"orders": {{"0": {table}'
    ) as told:
        begin_of(query.flow, query.flow.sinks[1])
    start = f'start = \'{{"orders": {{"0": {topic}}}}}\' goes on right after what it holds'
    assert start in str(told.value)


def test_a_decision_that_nobody_carried_out_is_carried_out_first(
    query: Query, node: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(Exception):
        """The driver."""

    async def dies(*_: object) -> bool:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(Driving, "_end", dies)
        with pytest.raises(Died):
            query.into_topic(0, 0, 10)
    query.into_table(0, 0, 10)
    assert begin_of(query.flow, query.flow.sinks[0]).start is not None
    with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
        assert admin.list_transactions(states=["Ongoing"], pattern=f".*{query.id}.*") == []


def test_a_topic_of_which_nothing_is_known_is_not_gone_on_with(query: Query) -> None:
    query.into_table(0, 0, 10)
    with pytest.raises(BadOption, match=r"what it has written nobody knows.*a source of its own, where start says"):
        begin_of(query.flow, query.flow.sinks[0])


def test_a_query_that_ends_leaves_no_transaction_of_its_tasks_open(
    query: Query, node: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its driver is the JVM below the process of the pipeline; here both are this one."""
    monkeypatch.setattr(plan, "driver_run", lambda: run_of(os.getpid()))
    monkeypatch.setattr(writing, "driver_run", lambda: run_of(os.getpid()))
    query.into_topic(0, 0, 10)
    planned = ExactlyOnce.planned(query.options)
    planned.deliver([(query.flow.sinks[1].target, pa.record_batch({"value": pa.array([b"2"], pa.binary())}))])
    place = Path(query.flow.checkpoint(query.flow.sinks[1]))
    place.parent.mkdir(parents=True)
    place.symlink_to(query.checkpoint)
    process = SimpleNamespace(current=lambda: SimpleNamespace(pid=os.getpid))
    java = SimpleNamespace(lang=SimpleNamespace(ProcessHandle=process))
    jvm: Any = SimpleNamespace(_jvm=SimpleNamespace(java=java))
    with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
        pattern = f".*{query.id}.*"
        assert len(admin.list_transactions(states=["Ongoing"], pattern=pattern)) == 1
        release_topic(jvm, query.flow, query.flow.sinks[1])
        assert admin.list_transactions(states=["Ongoing"], pattern=pattern) == []
