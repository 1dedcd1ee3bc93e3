"""Topics tell how many records there are where a commit does not explain its offsets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.blocking import Admin, Producer
from penstock.spark import dialogue
from penstock.spark.errors import Missing
from penstock.spark.feed import Feed
from penstock.spark.lake.ranges import TableRange
from penstock.spark.lake.store import Commit
from penstock.spark.recount import recount_for
from penstock.testing import EmbeddedBroker, broker
from tests.unit.spark.lake.tables import made


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    """Its topic: two records and a marker, three aborted and a marker, one record."""
    with broker() as running:
        settings = {"bootstrap_servers": running.bootstrap_servers}
        with Producer(**settings, transactional_id="recount") as producer:
            with producer.transaction():
                producer.send_batch("clicks", [b"a", b"b"], partition=0)
            producer.begin()
            producer.send_batch("clicks", [b"-", b"-", b"-"], partition=0).result()
            producer.abort()
        with Producer(**settings) as plain:
            plain.send("clicks", b"c", partition=0)
        yield running
    dialogue.for_process().close()


def commit(version: int, start: int, end: int, topic: str = "clicks") -> Commit:
    return Commit(version, 0, "append", ranges=(TableRange(topic, "", 0, start, end),))


def test_markers_and_aborted_records_are_no_records(tmp_path: Path, node: EmbeddedBroker) -> None:
    store = made(tmp_path / "clicks", "delta")
    assert recount_for(store) is None, "nobody says where the topic is"
    count = recount_for(store, node.bootstrap_servers)
    assert count is not None
    assert count([commit(1, 0, 3), commit(2, 3, 7), commit(3, 7, 8), commit(4, 0, 8)]) == {1: 2, 2: 0, 3: 1, 4: 3}


def test_a_table_says_itself_who_feeds_it_and_how_it_reads(tmp_path: Path, node: EmbeddedBroker) -> None:
    store = made(tmp_path / "clicks", "delta")
    feed = Feed(node.bootstrap_servers, ("clicks",), options={"kafka.isolation.level": "read_uncommitted"})
    store.set_properties({"penstock.feed": feed.to_property()})
    store.refresh()
    count = recount_for(store)
    assert count is not None
    assert count([commit(1, 0, 8)]) == {1: 6}


def test_what_is_gone_is_not_told(tmp_path: Path, node: EmbeddedBroker) -> None:
    with Producer(bootstrap_servers=node.bootstrap_servers) as producer:
        producer.send_batch("trimmed", [b"v"] * 6, partition=0).result()
    with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
        admin.trim_topic("trimmed", {0: 3})
    count = recount_for(made(tmp_path / "clicks", "delta"), node.bootstrap_servers)
    assert count is not None
    told = [commit(1, 0, 4, "trimmed"), commit(2, 3, 6, "trimmed"), commit(3, 0, 1, "gone"), commit(4, 1, 2, "gone")]
    assert count(told) == {2: 3}


def test_a_broker_that_is_away_is_named(tmp_path: Path, node: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.spark.recount.PATIENCE_MS", 200)
    count = recount_for(made(tmp_path / "clicks", "delta"), "127.0.0.1:1")
    assert count is not None
    with pytest.raises(Missing, match=r"127\.0\.0\.1:1 was to tell how many records there are in 1 commits"):
        count([commit(1, 0, 3)])
