"""The ends of very many partitions, for whoever knows who leads them: one request a leader, and little made of it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from penstock.client.admin.offsets import list_offsets
from penstock.client.admin.session import Session
from penstock.client.errors import ClientError
from penstock.model.ids import TopicPartition
from penstock.protocol.messages.list_offsets import ListOffsetsRequest

_LEADERS_AT_ONCE = 20
"""Replies of all leaders of a large cluster at once would be read in one go, and hold up everything else."""


async def ends_of_led(
    session: Session, led: Mapping[int, Collection[TopicPartition]], when: int
) -> dict[TopicPartition, int]:
    """Offsets by partition. Those whose leader is another by now are asked for anew, with new metadata; who cannot
    be asked at all is left out."""
    found: dict[TopicPartition, int] = {}
    nodes = sorted(led)
    for at in range(0, len(nodes), _LEADERS_AT_ONCE):
        asked = nodes[at : at + _LEADERS_AT_ONCE]
        for told in await asyncio.gather(*(_ends_of(session, node, led[node], when) for node in asked)):
            found.update(told)
    missing = [item for items in led.values() for item in items if item not in found]
    if missing:
        again = await list_offsets(session, dict.fromkeys(missing, when))
        found.update((item, info.offset) for item, info in again.done.items())
    return found


async def _ends_of(
    session: Session, node: int, items: Collection[TopicPartition], when: int
) -> list[tuple[TopicPartition, int]]:
    made = ListOffsetsRequest
    of_topic: dict[str, list[ListOffsetsRequest.ListOffsetsPartition]] = {}
    for topic, partition in items:
        of_topic.setdefault(topic, []).append(made.ListOffsetsPartition(partition_index=partition, timestamp=when))
    request = made(
        replica_id=-1,
        isolation_level=0,
        topics=[made.ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in of_topic.items()],
        timeout_ms=session.request_timeout_ms,
    )
    try:
        reply = await session.broker(node, request)
    except ClientError:
        return []
    return [
        (TopicPartition(topic.name, each.partition_index), each.offset)
        for topic in reply.topics
        for each in topic.partitions
        if not each.error_code
    ]
