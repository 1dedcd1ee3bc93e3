"""DescribeTransactions and ListTransactions."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.coordinators.transactions.describe import Wanted
from penstock.model.errors import INVALID_REGULAR_EXPRESSION, Refused
from penstock.protocol.messages.list_transactions import ListTransactionsRequest
from tests.unit.coordinators.transactions.scene import TIMEOUT_MS, Scene

PID = 1_000


@pytest.mark.parametrize(
    "status", ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]
)
def test_a_transaction_is_described_by_kafkas_names(status: str) -> None:
    scene = Scene()
    scene.at(status, 5)
    described = scene.shard.describe("copy")
    assert (described.error_code, described.transactional_id, described.transaction_state) == (0, "copy", status)
    assert (described.producer_id, described.producer_epoch, described.transaction_timeout_ms) == (PID, 5, TIMEOUT_MS)
    busy = status in ("Ongoing", "PrepareCommit", "PrepareAbort")
    assert [(topic.topic, topic.partitions) for topic in described.topics] == ([("out", [0])] if busy else [])
    assert described.transaction_start_time_ms == (-1 if status == "Empty" else scene.wall)


def test_topics_and_partitions_are_in_order() -> None:
    scene = Scene()
    scene.at("Empty", 5)
    scene.add(PID, 5, ("z", 1), ("a", 4), ("z", 0))
    topics = scene.shard.describe("copy").topics
    assert [(topic.topic, topic.partitions) for topic in topics] == [("a", [4]), ("z", [0, 1])]


def test_what_nobody_knows_is_not_found() -> None:
    described = Scene().shard.describe("nobody")
    assert (described.error_code, described.transactional_id) == (105, "nobody")
    assert Scene().shard.describe("").error_code == 42


@pytest.fixture
def several() -> Scene:
    """Three ids: empty, ongoing since a minute, ongoing since now."""
    scene = Scene(transaction_abort_timed_out_transaction_cleanup_interval_ms=1_000_000)
    for name in ("empty", "long-going", "going"):
        scene.init(name=name)
    scene.add(PID + 1, 0, name="long-going")
    scene.wait(60_000)
    scene.add(PID + 2, 0, name="going")
    return scene


@pytest.mark.parametrize(
    ("filters", "found", "unknown"),
    [
        ({}, ["empty", "long-going", "going"], ()),
        ({"state_filters": ["Ongoing"]}, ["long-going", "going"], ()),
        ({"state_filters": ["Empty", "Ongoing"]}, ["empty", "long-going", "going"], ()),
        ({"state_filters": ["CompleteCommit"]}, [], ()),
        ({"state_filters": ["Dead", "PrepareEpochFence"]}, [], ()),
        ({"state_filters": ["ongoing", "Odd"]}, [], ("ongoing", "Odd")),
        ({"state_filters": ["Odd", "Empty"]}, ["empty"], ("Odd",)),
        ({"producer_id_filters": [PID, PID + 2]}, ["empty", "going"], ()),
        ({"producer_id_filters": [7]}, [], ()),
        ({"producer_id_filters": [PID + 1], "state_filters": ["Empty"]}, [], ()),
        ({"duration_filter": -1}, ["empty", "long-going", "going"], ()),
        ({"duration_filter": 0}, ["empty", "long-going"], ()),
        ({"duration_filter": 59_999}, ["empty", "long-going"], ()),
        ({"duration_filter": 60_000}, ["empty"], ()),
        ({"transactional_id_pattern": ".*going"}, ["long-going", "going"], ()),
        ({"transactional_id_pattern": "going"}, ["going"], ()),
        ({"transactional_id_pattern": ""}, ["empty", "long-going", "going"], ()),
    ],
)
def test_what_is_listed(several: Scene, filters: dict[str, Any], found: list[str], unknown: tuple[str, ...]) -> None:
    wanted = Wanted.by(ListTransactionsRequest(**filters))
    listed = several.shard.listed(wanted, several.now)
    assert [row.transactional_id for row in listed] == found
    assert wanted.unknown_states == unknown


def test_a_row_names_producer_and_state(several: Scene) -> None:
    row = several.shard.listed(Wanted.by(ListTransactionsRequest()), several.now)[1]
    assert (row.transactional_id, row.producer_id, row.transaction_state) == ("long-going", PID + 1, "Ongoing")


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        Wanted.by(ListTransactionsRequest(transactional_id_pattern="("))
    assert refused.value.error is INVALID_REGULAR_EXPRESSION
