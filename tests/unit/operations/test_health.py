"""What makes a cluster unhealthy, from facts alone."""

from __future__ import annotations

import pytest

from penstock.client.admin import (
    BrokerInfo,
    ClusterInfo,
    LogDirInfo,
    PartitionInfo,
    QuorumInfo,
    QuorumReplica,
    TopicInfo,
)
from penstock.operations.health import VOTER_SILENT_MS, Reason, reasons, sentence


def cluster(*fenced: int, controller: int = 1) -> ClusterInfo:
    return ClusterInfo("id", controller, 5, [BrokerInfo(node, "h", 9092, None, node in fenced) for node in (1, 2, 3)])


def topic(*partitions: PartitionInfo) -> TopicInfo:
    return TopicInfo("t", "id", False, list(partitions))


def partition(index: int, leader: int, isr: list[int], replicas: list[int] | None = None) -> PartitionInfo:
    return PartitionInfo(index, leader, 0, replicas or [1, 2, 3], isr, [])


def directory(error: str | None = None) -> LogDirInfo:
    return LogDirInfo("/d", error, 100, 50, [])


def test_a_cluster_that_is_well_has_no_reasons() -> None:
    assert reasons(cluster(), [topic(partition(0, 1, [1, 2, 3]))], {"t": 2}, {1: [directory()]}) == []


def test_everything_that_is_wrong_is_named_once() -> None:
    partitions = [partition(0, -1, []), partition(1, 1, [1]), partition(2, 1, [1, 2]), partition(3, 1, [1], [1, 9])]
    found = reasons(
        cluster(3, controller=-1), [topic(*partitions)], {"t": 2}, {2: [directory("KAFKA_STORAGE_ERROR"), directory()]}
    )
    assert {reason.kind: reason.items for reason in found} == {
        "no_controller": ["quorum"],
        "brokers_down": ["broker 3", "broker 9"],
        "leaderless": ["t-0"],
        "under_min_isr": ["t-0", "t-1", "t-3"],
        "under_replicated": ["t-0", "t-1", "t-2", "t-3"],
        "offline_dirs": ["/d of broker 2"],
    }
    assert all(reason.attempt for reason in found)


@pytest.mark.parametrize(
    ("total", "usable", "said"),
    [
        (100, 10, None),
        (100, 9, "9 % free"),
        (1_000_000, 1, "0.0 % free"),
        (1_000, 5, "0.5 % free"),
        (10 << 40, 60 << 30, None),
        (10 << 40, 49 << 30, "0.5 % free"),
        (-1, -1, None),
    ],
)
def test_a_disk_is_named_before_it_is_full(total: int, usable: int, said: str | None) -> None:
    found = reasons(cluster(), [], {}, {2: [LogDirInfo("/d", None, total, usable, [])]})
    assert [(reason.kind, reason.items) for reason in found] == (
        [("disks_low", [f"/d of broker 2 ({said})"])] if said else []
    )


def quorum(*caught_up_ms: int) -> QuorumInfo:
    voters = [QuorumReplica(node, "id", 9, 0, -1, at_ms) for node, at_ms in enumerate(caught_up_ms, 1)]
    return QuorumInfo(1, 5, 9, voters, [])


def test_a_voter_that_is_silent_for_long_is_named() -> None:
    now_ms = 1_000_000
    found = reasons(cluster(), [], {}, {}, quorum(now_ms, now_ms - VOTER_SILENT_MS, now_ms - VOTER_SILENT_MS - 1))
    assert [(reason.kind, reason.items) for reason in found] == [("voters_behind", ["node 3"])]
    assert [reason.items for reason in reasons(cluster(), [], {}, {}, quorum(now_ms, -1))] == [["node 2"]]


def test_a_voter_that_came_back_with_another_disk_is_told_from_one_that_is_down() -> None:
    now_ms = 1_000_000
    voters = [
        QuorumReplica(1, "first", 9, 0, -1, now_ms),
        QuorumReplica(2, "lost", 4, 5, now_ms - 9_000, now_ms - 9_000),
        QuorumReplica(3, "third", 9, 0, now_ms, now_ms),
    ]
    observers = [
        QuorumReplica(2, "lost before", 2, 7, now_ms - 60_000, now_ms - 60_000),
        QuorumReplica(2, "new", 9, 0, now_ms - 10, now_ms - 10),
        QuorumReplica(4, "a broker", 9, 0, now_ms, now_ms),
    ]
    (found,) = reasons(cluster(), [], {}, {}, QuorumInfo(1, 5, 9, voters, observers))
    assert (found.kind, found.items) == ("voters_replaced", ["node 2 (lost lost, new new)"])
    assert "remove-voter ID --directory-id LOST" in found.attempt


def test_a_broker_that_nobody_reaches_is_down_whatever_the_cluster_thinks() -> None:
    (found,) = reasons(cluster(), [], {}, {}, None, [2])
    assert (found.kind, found.items) == ("brokers_down", ["broker 2"])


def test_a_leader_is_not_behind_itself() -> None:
    assert reasons(cluster(), [], {}, {}, quorum(-1)) == []


def test_nobody_asks_for_more_in_sync_replicas_than_there_are() -> None:
    assert reasons(cluster(), [topic(partition(0, 1, [1], [1]))], {"t": 2}, {}) == []


def test_a_sentence_names_a_few() -> None:
    many = Reason("leaderless", "no leader", [f"t-{number}" for number in range(8)])
    assert sentence(many) == "no leader: t-0, t-1, t-2, t-3, t-4 and 3 more"
