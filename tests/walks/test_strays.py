"""A topic that is deleted while a node is away: its directories there are kept for a while, and then they go."""

from __future__ import annotations

import pytest

from penstock import Admin
from penstock.client.admin import ConfigResource
from penstock.server.partitions.upkeep.strays import RETENTION
from tests.patience import until
from tests.walks.test_three_nodes import Load
from tests.walks.three_nodes import Cluster, walk

TOPIC = "orders"
AWAY = 3


def directories(cluster: Cluster) -> list[str]:
    """Of the topic, by what their names end in, on the disk of the node that was away."""
    disk = cluster.disks[AWAY]
    found = [name for name in disk.listdir(f"/data/node-{AWAY}") if name.startswith(f"{TOPIC}-")]
    return sorted(name.rpartition("-")[2] for name in found)


def test_a_topic_that_is_deleted_while_a_node_is_away_goes_there_too(caplog: pytest.LogCaptureFixture) -> None:
    async def steps(cluster: Cluster) -> None:
        async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            await admin.create_topic(TOPIC, partitions=1, replication=3)
            # All are in sync from the beginning, with or without a directory.
            await until(lambda: cluster.in_sync(TOPIC, 3) and directories(cluster) == ["0"])
            cluster.crash(AWAY)
            await admin.delete_topic(TOPIC)
            await cluster.start(AWAY)
            await admin.create_topic(TOPIC, partitions=1, replication=3)
            await until(lambda: cluster.in_sync(TOPIC, 3))
            load = Load(cluster, TOPIC)
            await load.moves_on()
            await until(lambda: directories(cluster) == ["0", "stray"])
            await admin.alter_configs({ConfigResource("broker", ""): {RETENTION: "0"}})
            await until(lambda: directories(cluster) == ["0"], "what was set aside is there for ever")
            await load.moves_on()
            await load.end()
            assert cluster.in_sync(TOPIC, 3)

    walk(steps, log_retention_check_interval_ms="50")
    warned = [each.getMessage() for each in caplog.records if "is not in the metadata" in each.getMessage()]
    assert len(warned) == 1
    assert warned[0].endswith(f"to keep it, move it to another place, or set {RETENTION} to -1")
