"""Topics come, go, come again under the same name, and grow."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from penstock.protocol.messages.create_partitions import CreatePartitionsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.testing.sim.administrator import Chore
from penstock.testing.sim.topics import AGAIN, ORDERS
from penstock.testing.sim.trouble import controller_image

if TYPE_CHECKING:
    from penstock.testing.sim.administrator import Administrator

PARTITIONS_MAX = 6
MADE_MAX = 3
"""So many topics that nobody uses are there at once: every partition costs the run some of its speed."""

GONE = ("NONE", "UNKNOWN_TOPIC_OR_PARTITION")
"""It may have been done when nobody could say so."""


async def deleted(admin: Administrator, name: str) -> bool:
    """Asks once for a topic to go; whether it is gone now."""
    topic = DeleteTopicsRequest.DeleteTopicState(name=name)
    request = DeleteTopicsRequest(topics=[topic], timeout_ms=admin.timeout_ms)
    return await admin.ask(f"delete {name}", request, lambda reply: reply.responses[0].error_code) in GONE


async def create(admin: Administrator, random: Random) -> bool:
    if len(admin.made) >= MADE_MAX:
        return False
    name = f"made-{admin.next_number()}"
    admin.made.append(name)
    return await admin.make_topic(name, random.randint(1, 3), {})


async def delete(admin: Administrator, random: Random) -> bool:
    if not admin.made:
        return False
    return await deleted(admin, admin.made.pop(random.randrange(len(admin.made))))


async def deleted_by_id(admin: Administrator, name: str) -> bool:
    """The same, by the id that a topic has now: whoever hears of it late does not delete the next one of that name."""
    image = controller_image(admin.world)
    topic_image = None if image is None else image.topic(name)
    if topic_image is None:
        return image is not None
    topic = DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=topic_image.id)
    request = DeleteTopicsRequest(topics=[topic], timeout_ms=admin.timeout_ms)
    words = f"delete {name} by its id"
    return await admin.ask(words, request, lambda reply: reply.responses[0].error_code) == "NONE"


async def make_again(admin: Administrator, random: Random) -> bool:
    """Deletes the topic that others write and read, and makes it anew; however often that has to be tried."""
    while not await deleted_by_id(admin, AGAIN):
        await admin.rest()
    while not await admin.make_topic(AGAIN, random.randint(1, 3), admin.topics[AGAIN]):
        await admin.rest()
    return True


async def grow(admin: Administrator, _random: Random) -> bool:
    if admin.partitions >= PARTITIONS_MAX:
        return False
    topic = CreatePartitionsRequest.CreatePartitionsTopic(name=ORDERS, count=admin.partitions + 1)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=admin.timeout_ms)
    outcome = await admin.ask(f"grow {ORDERS}", request, lambda reply: reply.results[0].error_code)
    if outcome in ("NONE", "INVALID_PARTITIONS"):  # it may have been done when nobody could say so
        admin.partitions += 1
        return True
    return False


CHORES = (
    Chore("topics created", create),
    Chore("topics deleted", delete),
    Chore("topics made again", make_again, 0.5),
    Chore("partitions added", grow),
)
