"""Short retention under steady produce: every replica deletes on its own, and all of them stay in sync."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat.cluster import ClusterNode, PenstockCluster
from tests.compat.processes import wait_for
from tests.faults.cluster import writers
from tests.faults.cluster.load import Load

pytestmark = pytest.mark.timeout(180)

TOPIC = "short-lived"
ROUNDS = 3
PATIENCE_S = 60.0


def first_offset(node: ClusterNode) -> int:
    """Where the oldest segment on a node's disk begins."""
    return min(int(path.stem) for path in (node.data_dir / f"{TOPIC}-0").glob("*.log"))


def test_replicas_that_delete_on_their_own_stay_in_sync(tmp_path: Path) -> None:
    quick = {"log.retention.check.interval.ms": "200", "log.initial.task.delay.ms": "200"}
    with PenstockCluster(tmp_path, 3, properties=quick) as cluster:
        cluster.new_topic(TOPIC, 1, retention_ms="500", segment_ms="250")
        cluster.wait_until_whole()
        with Load(cluster, TOPIC, 1, writing=writers.IDEMPOTENT[:1], reading=[], rate_per_s=100) as load:
            (writer,) = load.writers
            for _ in range(ROUNDS):
                load.wait_for_progress(20)
                acknowledged = writer.acked[0]

                def gone(acknowledged: int = acknowledged) -> bool:
                    return all(first_offset(node) >= acknowledged for node in cluster.brokers)

                wait_for("every replica to delete what was acknowledged", gone, timeout_s=PATIENCE_S)
            cluster.wait_until_whole()
            assert not writer.failures
