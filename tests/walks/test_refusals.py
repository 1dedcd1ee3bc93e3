"""A refusal reaches the client in every version: as its error or, where a reply has no place for it, as a hang-up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from penstock.model.errors import (
    NOT_COORDINATOR,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    UNKNOWN_SERVER_ERROR,
    ErrorCode,
    Refused,
)
from penstock.model.ids import OFFSETS_TOPIC, Uuid
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.registry import Api
from penstock.server.doors import Context
from penstock.transport.dial import Link
from penstock.transport.net import AsyncioNet
from tests.patience import until, within
from tests.unit.server.served import on_loop, serving
from tests.walks.every_api import Target, codes, request_of, served
from tests.walks.three_nodes import Cluster, walk

ANSWER_MS = 10_000
OF_LEADERS = ("Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch", "DeleteRecords")
OF_COORDINATORS = (
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "LeaveGroup",
    "ConsumerGroupHeartbeat",
    "OffsetCommit",
    "OffsetFetch",
    "OffsetDelete",
    "DescribeGroups",
    "ConsumerGroupDescribe",
    "DeleteGroups",
)


def versions(api: Api) -> range:
    return range(api.min, api.max + 1)


async def made(link: Link, name: str) -> Target:
    wanted = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    reply = await link.request(CreateTopicsRequest(topics=[wanted], timeout_ms=within(ANSWER_MS)), 7, within(ANSWER_MS))
    (result,) = reply.topics
    assert result.error_code == 0
    return Target(name, Uuid(result.topic_id), "new")


def leader_of(cluster: Cluster, topic: str) -> int:
    """Who leads the only partition of a topic in the eyes of all; 0 while they disagree."""
    images = [node.control.metadata.image.topic(topic) for node in cluster.nodes.values()]
    leaders = {0 if image is None else int(image.partitions[0].leader) for image in images}
    return leaders.pop() if len(leaders) == 1 else 0


def test_a_broker_that_does_not_lead_says_so_in_every_version() -> None:
    async def steps(cluster: Cluster) -> None:
        dial = AsyncioNet(asyncio.get_running_loop()).dial
        links = {node_id: await dial("127.0.0.1", port, within(ANSWER_MS)) for node_id, port in cluster.ports.items()}

        async def ask(names: Iterable[str], target: Target, leader: int, expected: ErrorCode) -> None:
            for api in (api for api in served() if api.name in names):
                for version in versions(api):
                    for node_id in cluster.nodes.keys() - {leader}:
                        reply = await links[node_id].request(
                            request_of(api, version, target), version, within(ANSWER_MS)
                        )
                        assert codes(reply) - {0} == {expected.code}, f"{api.name} v{version} at {node_id}"

        # A topic with one replica: from version 11 on followers answer fetches too.
        target = await made(links[1], "somewhere")
        await until(lambda: leader_of(cluster, "somewhere") > 0)
        await ask(OF_LEADERS, target, leader_of(cluster, "somewhere"), NOT_LEADER_OR_FOLLOWER)
        await links[1].request(FindCoordinatorRequest(key="group"), 2, within(ANSWER_MS))
        await until(lambda: leader_of(cluster, OFFSETS_TOPIC) > 0)
        await ask(OF_COORDINATORS, target, leader_of(cluster, OFFSETS_TOPIC), NOT_COORDINATOR)
        for link in links.values():
            link.close()

    walk(steps, offsets_topic_num_partitions="1")


EVERY = [pytest.param(api, version, id=f"{api.name}-{version}") for api in served() for version in versions(api)]


@pytest.mark.parametrize(
    ("failure", "told"),
    [(ZeroDivisionError("boom"), UNKNOWN_SERVER_ERROR), (Refused(REQUEST_TIMED_OUT), REQUEST_TIMED_OUT)],
    ids=["broken", "refused"],
)
@pytest.mark.parametrize(("api", "version"), EVERY)
@on_loop
async def test_what_goes_wrong_inside_is_never_told_as_a_success(
    api: Api, version: int, failure: Exception, told: ErrorCode
) -> None:
    def fails(_ctx: Context, _request: Any) -> Any:
        raise failure

    async with serving({api.name: fails}) as world:
        client = await world.client()
        request = request_of(api, version, Target("topic", Uuid(bytes(range(16))), "new"))
        await client.ask(request, version)
        try:
            _, reply = await client.reply(request, version)
        except asyncio.IncompleteReadError:
            return  # hung up: every client takes that for a failure
        assert codes(reply) == {told.code}
