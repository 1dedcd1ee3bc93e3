"""What a paused follower costs transactions that do not touch its partitions: a figure, and no assertion of speed.

`make soak PART=txn` prints it. Four brokers: transactions write to partitions on three of them and have their state
there, beside others that write to partitions which the fourth follows. That one is paused, for longer than a follower
may be late and longer than its session, and goes on; several times, and as long without a pause in between.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median, quantiles

import pytest

from penstock.blocking import Admin, Producer
from penstock.client.errors import ClientError
from penstock.coordinators.home import home_partition
from penstock.model.ids import TRANSACTIONS_TOPIC
from tests.compat.cluster import BOTH, BROKER, PenstockCluster
from tests.faults.counts import SOAKING

PAUSED = 4
ROLES = {1: BOTH, 2: BOTH, 3: BOTH, PAUSED: BROKER}
BESIDE, TOUCHED, PARTITIONS = "beside", "touched", 3
HERE, THERE = [[1, 2, 3], [2, 3, 1], [3, 1, 2]], [[1, 2, PAUSED], [2, 3, PAUSED], [3, 1, PAUSED]]
ROUNDS = 5
RECORD = b"x" * 200


def place(cluster: PenstockCluster, topic: str, replicas: list[list[int]]) -> None:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topic(topic, assignment=dict(enumerate(replicas)))
    cluster.wait_until_whole()


def transact(producer: Producer, topic: str) -> None:
    with producer.transaction():
        for partition in range(PARTITIONS):
            producer.send(topic, RECORD, partition=partition)


def id_beside(cluster: PenstockCluster) -> str:
    """A transactional id whose state the paused node has no replica of."""
    with Producer(cluster.bootstrap, transactional_id="makes the topic"):
        homes = {each.index: each.replicas for each in cluster.partitions(TRANSACTIONS_TOPIC)}
    names = (f"beside-{number}" for number in range(1_000))
    return next(name for name in names if PAUSED not in homes[home_partition(name, len(homes))])


@contextmanager
def others(cluster: PenstockCluster) -> Iterator[None]:
    """Transactions that do touch what the paused node follows; they may wait."""
    over = threading.Event()

    def work() -> None:
        with Producer(cluster.bootstrap, transactional_id="touches", request_timeout_ms=3_000) as producer:
            while not over.is_set():
                with suppress(ClientError):
                    transact(producer, TOUCHED)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def measured(producer: Producer, lasts_s: float) -> list[float]:
    """How long each transaction took from its begin to the answer of its commit, in ms."""
    took: list[float] = []
    until = time.monotonic() + lasts_s
    while time.monotonic() < until:
        began = time.perf_counter()
        transact(producer, BESIDE)
        took.append((time.perf_counter() - began) * 1000)
    return took


def p99(took: list[float]) -> float:
    return quantiles(took, n=100)[98]


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_transactions_beside_a_paused_follower(tmp_path: Path) -> None:
    assert SOAKING
    ratios, well, paused = [], [], []
    with PenstockCluster(tmp_path, roles=ROLES) as cluster:
        place(cluster, BESIDE, HERE)
        place(cluster, TOUCHED, THERE)
        with Producer(cluster.bootstrap, transactional_id=id_beside(cluster)) as producer, others(cluster):
            measured(producer, 2.0)
            # Longer than a follower may be late, and than a session.
            lasts_s = 3 * int(cluster.given["replica.lag.time.max.ms"]) / 1000
            for _ in range(ROUNDS):
                without = measured(producer, lasts_s)
                cluster.nodes[PAUSED].pause()
                try:
                    with_pause = measured(producer, lasts_s)
                    in_sync = {node for each in cluster.partitions(TOUCHED) for node in each.isr}
                    assert PAUSED not in in_sync, "the pause is long enough for its partitions to go on without it"
                finally:
                    cluster.nodes[PAUSED].resume()
                cluster.wait_until_whole()
                well += without
                paused += with_pause
                ratios.append(p99(with_pause) / p99(without))
    print(
        f"\ntransactions beside a paused follower: p99 {p99(paused):.1f} ms ({len(paused)}, p50 {median(paused):.1f}) "
        f"against {p99(well):.1f} ms ({len(well)}, p50 {median(well):.1f}); ratio of p99 in {ROUNDS} rounds: "
        f"median {median(ratios):.2f}, {', '.join(f'{ratio:.2f}' for ratio in ratios)}"
    )
