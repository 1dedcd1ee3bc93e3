"""What the suite `spark` makes of the rounds from topic to topic, and of changes by key."""

from __future__ import annotations

import json

import pytest

from bench.brokers import PENSTOCK_NODE
from bench.spark.changes import change
from bench.spark.topic_to_topic import (
    AT_LEAST_ONCE,
    COST,
    IN_TRANSACTIONS,
    RIVAL,
    ROWS,
    ROWS_A_CORE,
    WAYS,
    note_round,
)
from penstock.bench.series import Results


def of_one_round() -> Results:
    results = Results(ours=PENSTOCK_NODE, rival=RIVAL)
    plain, transactional, connector = WAYS
    took = {
        plain: {"seconds": 10.0, "cpu_s": 8.0},
        transactional: {"seconds": 11.0, "cpu_s": 10.0},
        connector: {"seconds": 22.0, "cpu_s": 40.0},
    }
    note_round(results, 4_400, took)
    return results


def test_the_connectors_at_least_once_stands_beside_both_of_ours() -> None:
    series = of_one_round().series
    assert series[ROWS, AT_LEAST_ONCE].samples == {PENSTOCK_NODE: [440.0], RIVAL: [200.0]}
    assert series[ROWS, IN_TRANSACTIONS].samples == {PENSTOCK_NODE: [400.0], RIVAL: [200.0]}
    assert series[ROWS_A_CORE, AT_LEAST_ONCE].ratio() == pytest.approx(5.0)
    assert series[ROWS_A_CORE, IN_TRANSACTIONS].ratio() == pytest.approx(4.0)


def test_what_transactions_cost_is_told_of_time_and_of_processors() -> None:
    series = of_one_round().series
    assert series[COST, "of the time"].samples[PENSTOCK_NODE] == [pytest.approx(10.0)]
    assert series[COST, "of the CPU time"].samples[PENSTOCK_NODE] == [pytest.approx(25.0)]


def test_each_way_writes_a_topic_of_its_own() -> None:
    assert len({way.topic for way in WAYS}) == len(WAYS)
    assert not any(" " in way.topic for way in WAYS)


def test_a_change_of_another_version_is_another_row_of_the_same_key() -> None:
    one, other = (json.loads(change(7, version)) for version in (3, 1_003))
    assert one["id"] == other["id"] == 7
    assert one["name"] != other["name"]
