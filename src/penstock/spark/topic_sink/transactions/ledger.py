"""The topic of decisions: one partition, compacted, where the last record of a query is where it stands.

Beside it lie the last decisions of each query, as many as `Standing.history` says, under keys that are used in turn:
they are what an audit reads. Who writes remembers of all queries its own alone. Records come in transactions of the
query's driver, so that one that was replaced cannot write.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.client.admin import Admin
from penstock.client.arrow import record_batch
from penstock.client.compaction import forgetful_policy, settings_of
from penstock.client.errors import BrokerRefused, UnknownTopic
from penstock.client.producer import Producer
from penstock.client.spans import Piece, Span, SpanReader
from penstock.model.errors import TOPIC_ALREADY_EXISTS
from penstock.model.ids import TopicPartition
from penstock.spark.errors import Missing, SparkRoomError
from penstock.spark.naming import DECISIONS_TOPIC
from penstock.spark.topic_sink.transactions.effects import LedgerTopic
from penstock.spark.topic_sink.transactions.records import HISTORY, Decision, Standing, packed

HOME: Final = TopicPartition(DECISIONS_TOPIC, 0)
RECORD_BYTES_MOST: Final = 8 << 20
"""What a record may have, before it is packed; a topic that takes less has less."""
QUERIES_KNOWN: Final = 64
"""Queries of one process whose last record is remembered."""

CONFIGS: Final = {
    # A decision is the only word about what is committed: nothing of it may go because time has passed.
    "cleanup.policy": "compact",
    # Only closed segments are compacted, and whoever begins reads all of it.
    "segment.bytes": str(16 << 20),
    "min.cleanable.dirty.ratio": "0.1",
    # A decision tells of every task and every partition that it wrote to.
    "max.message.bytes": str(2 * RECORD_BYTES_MOST),
}
_ROOM: Final = "max.message.bytes"


@dataclass(slots=True)
class Known:
    """What this process has read of a ledger so far, for one query."""

    topic_id: str = ""
    position: int = 0
    standing: bytes | None = None


_known: OrderedDict[tuple[str, str], Known] = OrderedDict()
"""By cluster and query."""


def standing_key(query_id: str) -> str:
    return query_id


def history_key(query_id: str, sequence: int, history: int) -> str:
    return f"{query_id}/{sequence % history}"


class LedgerUnfit(SparkRoomError):
    """The topic would forget decisions, or has them in an order that nobody can tell."""


async def topic_of(admin: Admin, *, make: bool) -> LedgerTopic:
    """The topic, which is looked at before it is believed; without an id when it is not there and not to be made."""
    try:
        return await _looked_at(admin)
    except UnknownTopic:
        if not make:
            return LedgerTopic("", 0)
    try:
        await admin.create_topic(DECISIONS_TOPIC, 1, configs=CONFIGS)
    except BrokerRefused as refused:
        if refused.error is not TOPIC_ALREADY_EXISTS:
            raise
    return await _looked_at(admin)


async def _looked_at(admin: Admin) -> LedgerTopic:
    info = await admin.describe_topic(DECISIONS_TOPIC, offsets=False, configs=False)
    if len(info.partitions) != 1:
        raise LedgerUnfit(
            f"{DECISIONS_TOPIC} has {len(info.partitions)} partitions, and decisions are in an order that one alone "
            "has: stop the queries that write exactly once, delete it, and begin them with new checkpoints"
        )
    settings = await settings_of(admin, DECISIONS_TOPIC)
    policy = forgetful_policy(settings)
    if policy is not None:
        raise LedgerUnfit(
            f"{DECISIONS_TOPIC} has cleanup.policy={policy} and would forget decisions: set `penstock topic alter "
            f"{DECISIONS_TOPIC} -c cleanup.policy=compact`"
        )
    room = settings.get(_ROOM)
    most = RECORD_BYTES_MOST if room is None or room.value is None else int(room.value)
    return LedgerTopic(info.id, min(most, RECORD_BYTES_MOST))


async def read(admin: Admin, reader: SpanReader, cluster: str, query_id: str, *, waits: bool = True) -> Standing | None:
    """Where a query stands, by all that is committed, and with `waits` by all that was in the log when asked.

    `reader` shows committed records only. What was read once is remembered by `cluster` and query."""
    topic_id, end = await _end(admin, waits=waits)
    known = _known.get((cluster, query_id))
    if known is None or known.topic_id != topic_id:
        known = _known[cluster, query_id] = Known(topic_id)
    _known.move_to_end((cluster, query_id))
    while len(_known) > QUERIES_KNOWN:
        _known.popitem(last=False)
    if end > known.position:
        async for key, value in _records(reader, topic_id, known.position, end):
            if key == standing_key(query_id).encode():
                known.standing = value
        known.position = end
    return None if known.standing is None else Standing.of_json(_parsed(known.standing))


async def read_with_history(admin: Admin, reader: SpanReader, query_id: str) -> tuple[Standing | None, list[Decision]]:
    """Where a query stands, and the decisions that are kept of it, oldest first. Nothing is remembered."""
    topic_id, end = await _end(admin, waits=True)
    mine, before = standing_key(query_id).encode(), f"{query_id}/".encode()
    records = _records(reader, topic_id, 0, end)
    values = {key: value async for key, value in records if key == mine or key.startswith(before)}
    standing = values.pop(mine, None)
    kept = [Decision.of_json(_parsed(value)) for value in values.values() if value is not None]
    return (
        None if standing is None else Standing.of_json(_parsed(standing)),
        sorted(kept, key=lambda each: each.sequence),
    )


async def _end(admin: Admin, *, waits: bool) -> tuple[str, int]:
    """The id of the topic and how far there is to read; nothing where it is not there."""
    try:
        topic_id = (await admin.describe_topic(DECISIONS_TOPIC, offsets=False, configs=False)).id
    except UnknownTopic:
        return "", 0
    end = (await admin.offsets({HOME: "latest"}, read_committed=not waits)).checked()[HOME].offset
    return topic_id, end


async def _records(
    reader: SpanReader, topic_id: str, start: int, end: int
) -> AsyncIterator[tuple[bytes, bytes | None]]:
    if end <= start:
        return
    async for item in reader.read([Span(DECISIONS_TOPIC, topic_id, 0, start, end)]):
        if isinstance(item, Piece):
            rows = record_batch(item.sink, DECISIONS_TOPIC, 0)
            keys, values = rows.column("key"), rows.column("value")
            for at in range(rows.num_rows):
                key = keys[at].as_py()
                if key is None:
                    raise Missing(_strange("it has no key"))
                yield key, values[at].as_py()


def _parsed(value: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(value)
    except ValueError as strange:
        raise Missing(_strange(str(strange))) from strange
    if not isinstance(found, dict):
        raise Missing(_strange("it is no object"))
    return found


def _strange(why: str) -> str:
    return (
        f"the topic {DECISIONS_TOPIC} has a record that no sink of ours wrote ({why}): only drivers of queries may "
        "write it"
    )


def put(producer: Producer, standing: Standing) -> None:
    """In the transaction that is open."""
    _send(producer, standing_key(standing.query_id), standing.to_json())
    if standing.decision is not None:
        key = history_key(standing.query_id, standing.decision.sequence, standing.history)
        _send(producer, key, standing.decision.to_json())


def put_away(producer: Producer, standing: Standing) -> None:
    """In the transaction that is open: nobody goes on with this query, and nothing of it is kept."""
    for each in range(min(standing.sequence + 1, HISTORY)):
        producer.send(DECISIONS_TOPIC, None, key=f"{standing.query_id}/{each}".encode(), partition=0)
    producer.send(DECISIONS_TOPIC, None, key=standing_key(standing.query_id).encode(), partition=0)


def _send(producer: Producer, key: str, value: Mapping[str, Any]) -> None:
    producer.send(DECISIONS_TOPIC, packed(value), key=key.encode(), partition=0)
