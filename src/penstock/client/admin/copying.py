"""Why a replica does not catch up: what it would copy next may be damaged in its leader's log.

A broker does not read what it serves, so nobody but a reader can tell. The replica says where its log ends (ListOffsets
with the replica id of a debugger, which any replica answers), and the leader is asked for the batch that comes next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.client.errors import ClientError
from penstock.kernels import BadBytes, check_batch
from penstock.protocol.messages.fetch import FetchRequest
from penstock.protocol.messages.list_offsets import ListOffsetsRequest

if TYPE_CHECKING:
    from penstock.client.admin.session import Session
    from penstock.model.ids import TopicPartition

_DEBUGGER: Final = -2
_LATEST: Final = -1
_BY_NAME: Final = 12
"""The last version of Fetch that says topics by their names."""


@dataclass(frozen=True, slots=True)
class Behind:
    """A replica that is not in sync, and whom it copies from."""

    partition: TopicPartition
    leader: int
    replica: int


@dataclass(frozen=True, slots=True)
class Damage:
    """A batch in a leader's log that no replica can copy and no client read: the one at `offset`."""

    behind: Behind
    offset: int
    why: str


async def find_damage(session: Session, behind: Iterable[Behind]) -> list[Damage]:
    """The replicas of these that stand before a damaged batch. Those that cannot be asked are left out."""
    found = await asyncio.gather(*(_look(session, each) for each in behind))
    return [each for each in found if each is not None]


async def _look(session: Session, behind: Behind) -> Damage | None:
    try:
        end = await _end_of(session, behind)
        data = await _batch_at(session, behind, end) if end is not None else b""
    except ClientError:
        return None
    if not data or end is None:
        return None
    try:
        check_batch(data)
    except BadBytes as broken:
        return Damage(behind, end, str(broken))
    return None


async def _end_of(session: Session, behind: Behind) -> int | None:
    """Where the replica's own log ends."""
    topic, partition = behind.partition
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=partition, timestamp=_LATEST)
    request = ListOffsetsRequest(
        replica_id=_DEBUGGER, topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[wanted])]
    )
    for told in (await session.broker(behind.replica, request)).topics:
        for each in told.partitions:
            return None if each.error_code else each.offset
    return None


async def _batch_at(session: Session, behind: Behind, offset: int) -> bytes:
    topic, partition = behind.partition
    wanted = FetchRequest.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=1, topics=[FetchRequest.FetchTopic(topic=topic, partitions=[wanted])]
    )
    for told in (await session.broker(behind.leader, request, newest=_BY_NAME)).responses:
        for each in told.partitions:
            return b"" if each.error_code else bytes(each.records or b"")
    return b""
