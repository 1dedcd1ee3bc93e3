"""`/readyz`: a node that knows the cluster only as it was is not ready, and says why."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from penstock.server.node import Node
from tests.patience import until, within
from tests.walks.three_nodes import Cluster, walk


async def readyz(node: Node) -> tuple[int, list[str]]:
    """The status and the reasons that a probe gets."""
    reader, writer = await asyncio.open_connection("127.0.0.1", node.admin_port)
    writer.write(b"GET /readyz HTTP/1.1\r\nHost: here\r\n\r\n")
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    reasons: list[str] = json.loads(body)["reasons"]
    return int(head.split()[1]), reasons


async def probed(node: Node, wanted: Callable[[int, list[str]], bool]) -> None:
    answer: Any = None
    try:
        async with asyncio.timeout(within(30)):
            while True:
                answer = await readyz(node)
                if wanted(*answer):
                    return
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"the last answer was {answer}") from None


def test_a_node_without_a_majority_is_not_ready_and_is_again_when_there_is_one() -> None:
    async def steps(cluster: Cluster) -> None:
        left, *others = cluster.nodes
        survivor = cluster.nodes[left]
        assert await readyz(survivor) == (200, [])
        for node_id in others:
            cluster.crash(node_id)

        def tells(status: int, reasons: list[str]) -> bool:
            words = "finds no leader of the metadata quorum: does a majority of its voters (1, 2, 3) run?"
            return status == 503 and any("metadata stands still" in why and words in why for why in reasons)

        await probed(survivor, tells)
        await asyncio.gather(*(cluster.make(node_id).start() for node_id in others))
        await probed(survivor, lambda status, reasons: (status, reasons) == (200, []))

    walk(steps, **{"penstock.admin.listener": "127.0.0.1:0", "metadata.max.idle.interval.ms": "100"})


def test_a_follower_whose_leader_writes_nothing_more_is_not_ready() -> None:
    """As one would see it of a leader that serves fetches and has stopped to commit."""

    async def steps(cluster: Cluster) -> None:
        await until(lambda: cluster.controller > 0, "nobody leads")
        leader = cluster.nodes[cluster.controller]
        follower = next(node for node_id, node in cluster.nodes.items() if node_id != cluster.controller)
        controller = leader.control.controller
        assert controller is not None
        controller.resign()  # the quorum goes on, and nobody decides anything

        def tells(status: int, reasons: list[str]) -> bool:
            return status == 503 and any("but nothing new of its log comes here" in why for why in reasons)

        await probed(follower, tells)

    walk(steps, **{"penstock.admin.listener": "127.0.0.1:0", "metadata.max.idle.interval.ms": "100"})
