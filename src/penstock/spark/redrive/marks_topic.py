"""The topic `__penstock_redrive`: one partition, compacted, read to its end before anything is believed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from penstock.client.admin import Admin
from penstock.client.compaction import forgetful_policy, settings_of
from penstock.client.consumer import Consumer
from penstock.client.errors import BrokerRefused, UnknownTopic
from penstock.model.errors import TOPIC_ALREADY_EXISTS
from penstock.model.ids import TopicPartition
from penstock.spark.errors import SparkRoomError
from penstock.spark.naming import REDRIVE_TOPIC
from penstock.spark.redrive.marks import Marks

HOME: Final = TopicPartition(REDRIVE_TOPIC, 0)
READ_WITHIN_S: Final = 120.0
"""Transactions of a redrive that was killed are over when the next one has begun; of another one they take no longer
than their time."""
CONFIGS: Final = {
    # A mark is the only word that a letter was sent: none of it may go because time has passed.
    "cleanup.policy": "compact",
    # Only closed segments are compacted, and whoever begins reads all of it.
    "segment.bytes": str(16 << 20),
    "min.cleanable.dirty.ratio": "0.1",
}


class MarksUnfit(SparkRoomError):
    """The topic would forget which letters were sent, or cannot be read."""


async def ensure(admin: Admin, *, make: bool) -> bool:
    """Whether the topic is there, after it was made if it is to be; what is there is looked at first."""
    try:
        await _look(admin)
        return True
    except UnknownTopic:
        if not make:
            return False
    try:
        await admin.create_topic(REDRIVE_TOPIC, 1, configs=CONFIGS)
    except BrokerRefused as refused:
        if refused.error is not TOPIC_ALREADY_EXISTS:
            raise
    await _look(admin)
    return True


async def _look(admin: Admin) -> None:
    info = await admin.describe_topic(REDRIVE_TOPIC, offsets=False, configs=False)
    policy = forgetful_policy(await settings_of(admin, REDRIVE_TOPIC))
    if len(info.partitions) != 1 or policy is not None:
        raise MarksUnfit(
            f"{REDRIVE_TOPIC} has {len(info.partitions)} partitions and cleanup.policy={policy or 'compact'}: marks "
            "that letters were sent need one partition and cleanup.policy=compact, or letters would be sent twice"
        )


async def read(admin: Admin, settings: Mapping[str, Any], place: str, *, waits: bool) -> Marks:
    """The marks of the letters at `place`: all that are committed, and with `waits` all that were in the log when
    asked. `settings` are a consumer's."""
    found = Marks(place)
    end = (await admin.offsets({HOME: "latest"}, read_committed=not waits)).checked()[HOME].offset
    mine = {**settings, "isolation_level": "read_committed", "offset_reset": "earliest", "create_topics": False}
    try:
        async with asyncio.timeout(READ_WITHIN_S), Consumer(**mine) as consumer:
            consumer.assign([HOME])
            while await consumer.position(HOME) < end:
                for record in await consumer.poll(timeout_ms=200):
                    found.take_in(record.key, record.value)
    except TimeoutError as late:
        raise MarksUnfit(
            f"{REDRIVE_TOPIC} could not be read to its end in {READ_WITHIN_S:.0f} s, because a transaction is open "
            "in it: `penstock txn list` names it; then try again"
        ) from late
    return found
