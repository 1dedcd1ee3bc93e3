"""Every replica runs its own retention: their logs begin where each of them thinks, and all of them go on."""

from __future__ import annotations

import asyncio

import pytest

from penstock import Admin
from penstock.server.partitions.hosted import Hosted
from tests.patience import until
from tests.walks.test_three_nodes import Load
from tests.walks.three_nodes import Cluster, walk

TOPIC = "short-lived"
BY_TIME = {"retention.ms": "300", "segment.ms": "100"}
BY_SIZE = {"retention.bytes": "40000", "internal.segment.bytes": "10000"}


def replicas(cluster: Cluster) -> dict[int, Hosted]:
    return {node_id: node.broker.partitions.named(TOPIC, 0) for node_id, node in cluster.nodes.items()}


def fetches(cluster: Cluster) -> int:
    """How often anybody asked a leader for more, of any topic."""
    found = [fetcher for node in cluster.nodes.values() for fetcher in node.broker.followers._fetchers.values()]
    return sum(fetcher.fetches for fetcher in found)


@pytest.mark.parametrize("kept", [BY_TIME, BY_SIZE], ids=["by time", "by size"])
def test_followers_that_delete_on_their_own_stay_in_sync(kept: dict[str, str]) -> None:
    async def steps(cluster: Cluster) -> None:
        async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            await admin.create_topic(TOPIC, partitions=1, replication=3, configs=kept)
        await until(lambda: cluster.in_sync(TOPIC, 3))
        load = Load(cluster, TOPIC)
        for _ in range(3):
            await load.moves_on()
            ends = [hosted.require_log().committed for hosted in replicas(cluster).values()]
            await until(
                lambda ends=ends: all(
                    hosted.require_log().log_start >= max(ends) > 0 for hosted in replicas(cluster).values()
                ),
                "a replica has not deleted what was there",
            )
            assert cluster.in_sync(TOPIC, 3)
        await load.end()
        (leader,) = (hosted for hosted in replicas(cluster).values() if hosted.state.leading)
        await until(
            lambda: all(
                state.log_start == replicas(cluster)[node].require_log().log_start
                for node, state in leader.state.followers.items()
            ),
            "the leader does not hear where its followers' logs begin",
        )
        asked, loop = fetches(cluster), asyncio.get_running_loop()
        began = loop.time()
        await until(lambda: fetches(cluster) > asked + 8)
        # Two links are asked over, each twice a second when nothing happens.
        assert loop.time() - began > 0.5, "followers of an idle topic ask without end"

    walk(steps, log_retention_check_interval_ms="50")
