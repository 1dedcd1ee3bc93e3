"""Groups that nobody stays in: positions are committed, expire, and are deleted with or without their group."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from penstock.protocol.messages.delete_groups import DeleteGroupsRequest
from penstock.protocol.messages.offset_commit import OffsetCommitRequest
from penstock.protocol.messages.offset_delete import OffsetDeleteRequest
from penstock.testing.sim.administrator import Chore
from penstock.testing.sim.topics import AGAIN, BRIEF, ORDERS

if TYPE_CHECKING:
    from penstock.testing.sim.administrator import Administrator

GROUPS_MAX = 8
RETENTION_MS = 500
WITH_RETENTION = 4
"""The last version in which a commit says for how long it is kept."""


async def commit(admin: Administrator, random: Random) -> bool:
    """Commits a position as a client without a group protocol does; every second one for a short time only."""
    if len(admin.groups) >= GROUPS_MAX:
        return False
    group, brief = f"passing-{admin.next_number()}", random.random() < 0.5
    topic = random.choice((ORDERS, BRIEF, AGAIN))
    ask = OffsetCommitRequest
    partition = ask.OffsetCommitRequestPartition(partition_index=0, committed_offset=random.randrange(100))
    request = ask(
        group_id=group,
        retention_time_ms=RETENTION_MS if brief else -1,
        topics=[ask.OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    version = random.randint(2, WITH_RETENTION if brief else 9)
    admin.groups.append(group)
    outcome = await admin.ask_coordinator(f"commit in {group}", group, request, _first, version)
    if brief and outcome == "NONE":
        admin.expiring[group] = None
    return outcome == "NONE"


async def delete_group(admin: Administrator, random: Random) -> bool:
    if not admin.groups:
        return False
    group = admin.groups.pop(random.randrange(len(admin.groups)))
    admin.expiring.pop(group, None)
    request = DeleteGroupsRequest(groups_names=[group])
    code = lambda reply: reply.results[0].error_code  # noqa: E731  # a name for what is passed on the next line
    return await admin.ask_coordinator(f"delete {group}", group, request, code) == "NONE"


async def delete_offsets(admin: Administrator, random: Random) -> bool:
    if not admin.groups:
        return False
    group = random.choice(admin.groups)
    admin.expiring.pop(group, None)
    ask = OffsetDeleteRequest
    partitions = [ask.OffsetDeleteRequestPartition(partition_index=0)]
    request = ask(
        group_id=group,
        topics=[ask.OffsetDeleteRequestTopic(name=name, partitions=partitions) for name in (ORDERS, BRIEF, AGAIN)],
    )
    code = lambda reply: reply.error_code  # noqa: E731  # as above
    return await admin.ask_coordinator(f"forget positions of {group}", group, request, code) == "NONE"


def _first(reply: Any) -> int:
    return next((partition.error_code for topic in reply.topics for partition in topic.partitions), 0)


CHORES = (
    Chore("positions committed", commit, 0.8),
    Chore("groups deleted", delete_group),
    Chore("positions deleted", delete_offsets),
)
