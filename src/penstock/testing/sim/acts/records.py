"""Records are deleted by order."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from penstock.protocol.messages.delete_records import DeleteRecordsRequest
from penstock.testing.sim.administrator import Chore
from penstock.testing.sim.topics import AGAIN, BRIEF

if TYPE_CHECKING:
    from penstock.testing.sim.administrator import Administrator

ALL = -1


async def delete_records(admin: Administrator, random: Random) -> bool:
    """Moves the start of a partition up: to a place that is committed, or to all that is."""
    topic, number = random.choice((BRIEF, BRIEF, AGAIN)), random.randrange(admin.plan.partitions)
    leader = await admin.leader_of(topic, number)
    if leader is None:
        return False
    known = admin.truth.newest(topic, number)
    offset = ALL if known is None or random.random() < 0.3 else random.randint(known.start, max(known.start, known.end))
    # Whether it was heard or not, from now on it may be obeyed.
    over = admin.truth.allow_deletion(topic, number, offset)
    ask = DeleteRecordsRequest
    partition = ask.DeleteRecordsPartition(partition_index=number, offset=offset)
    request = ask(topics=[ask.DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=admin.timeout_ms)
    words = f"delete records of {topic}-{number} before {offset}"
    outcome = await admin.ask(words, request, lambda reply: reply.topics[0].partitions[0].error_code, leader)
    if outcome != "NONE":
        return False
    over()
    return True


CHORES = (Chore("records deleted", delete_records),)
