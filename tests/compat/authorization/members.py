"""Members that subscribe by a pattern are given topics that they may know of, by both brokers alike.

Kafka looks for the topics beside its heartbeats, so both are asked until the member has `public`, which is everybody's.
"""

from __future__ import annotations

import asyncio
from typing import Any

from penstock.model.ids import Uuid
from penstock.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from penstock.protocol.messages.delete_groups import DeleteGroupsRequest
from tests.compat.authorization.pair import Pair, Side
from tests.compat.authorization.state import LONG_MS, State
from tests.patience import within

GROUP = "void"
GIVEN_WITHIN_S = 30.0


async def compare_patterns(pair: Pair, state: State, user: str) -> int:
    """Has a user join a group by a pattern that fits every topic, and leave it. How many topics it was given."""
    public = state.world.topic_ids["public"]
    theirs_of = pair.pairs.translated
    ours = await _given(pair.ours, user, public)
    theirs = await _given(pair.theirs, user, theirs_of(_topic(public)).topic_id)
    expected = {theirs_of(_topic(each)).topic_id for each in ours}
    assert theirs == expected, f"{user} has other topics here ({ours}) than there ({theirs})"
    for side in pair.sides:
        await side.admin(DeleteGroupsRequest(groups_names=[GROUP]), 2)
    return len(ours)


def _topic(topic_id: Uuid) -> ConsumerGroupHeartbeatRequest.TopicPartitions:
    return ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=[0])


async def _given(side: Side, user: str, public: Uuid) -> set[Uuid]:
    member: dict[str, Any] = {"group_id": GROUP, "member_id": f"member {user}"}
    wanted = {"rebalance_timeout_ms": LONG_MS, "subscribed_topic_names": [], "subscribed_topic_regex": "[a-z].*"}
    epoch, given, owned = 0, set[Uuid](), None
    async with asyncio.timeout(within(GIVEN_WITHIN_S)):
        while public not in given:
            told = wanted | {"topic_partitions": []} if epoch == 0 else {"topic_partitions": owned}
            reply = await side.ask(user, ConsumerGroupHeartbeatRequest(**member, member_epoch=epoch, **told), 1)
            assert reply.error_code == 0, (user, reply)
            epoch = reply.member_epoch
            owned = None
            if reply.assignment is not None:
                given = {each.topic_id for each in reply.assignment.topic_partitions}
                owned = [_topic(each) for each in given]
            await asyncio.sleep(0.01)
    await side.ask(user, ConsumerGroupHeartbeatRequest(**member, member_epoch=-1), 1)
    return given
