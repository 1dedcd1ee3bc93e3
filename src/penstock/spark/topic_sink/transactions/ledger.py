"""The topic of decisions: one partition, compacted, where the last record of a query is where it stands.

Beside it lie the last thousand decisions of each query, under keys that are used in turn: they are what an audit reads.
Records come in transactions of the query's driver, so that one that was replaced cannot write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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
from penstock.spark.topic_sink.transactions.records import Decision, Standing

HOME: Final = TopicPartition(DECISIONS_TOPIC, 0)
HISTORY: Final = 1_000
"""Decisions of a query that are kept."""

CONFIGS: Final = {
    # A decision is the only word about what is committed: nothing of it may go because time has passed.
    "cleanup.policy": "compact",
    # Only closed segments are compacted, and whoever begins reads all of it.
    "segment.bytes": str(16 << 20),
    "min.cleanable.dirty.ratio": "0.1",
}


@dataclass(slots=True)
class Known:
    """What this process has read of a ledger so far."""

    topic_id: str = ""
    position: int = 0
    values: dict[str, Mapping[str, Any]] = field(default_factory=dict)


_known: dict[str, Known] = {}


def standing_key(query_id: str) -> str:
    return query_id


def history_key(query_id: str, sequence: int) -> str:
    return f"{query_id}/{sequence % HISTORY}"


class LedgerUnfit(SparkRoomError):
    """The topic would forget decisions, or has them in an order that nobody can tell."""


async def id_of(admin: Admin, *, make: bool) -> str:
    """The id of the topic, which is looked at before it is believed; "" when it is not there and is not to be made."""
    try:
        return await _looked_at(admin)
    except UnknownTopic:
        if not make:
            return ""
    try:
        await admin.create_topic(DECISIONS_TOPIC, 1, configs=CONFIGS)
    except BrokerRefused as refused:
        if refused.error is not TOPIC_ALREADY_EXISTS:
            raise
    return await _looked_at(admin)


async def _looked_at(admin: Admin) -> str:
    info = await admin.describe_topic(DECISIONS_TOPIC, offsets=False, configs=False)
    if len(info.partitions) != 1:
        raise LedgerUnfit(
            f"{DECISIONS_TOPIC} has {len(info.partitions)} partitions, and decisions are in an order that one alone "
            "has: stop the queries that write exactly once, delete it, and begin them with new checkpoints"
        )
    policy = forgetful_policy(await settings_of(admin, DECISIONS_TOPIC))
    if policy is not None:
        raise LedgerUnfit(
            f"{DECISIONS_TOPIC} has cleanup.policy={policy} and would forget decisions: set `penstock topic alter "
            f"{DECISIONS_TOPIC} -c cleanup.policy=compact`"
        )
    return info.id


async def read(
    admin: Admin, reader: SpanReader, cluster: str, *, waits: bool = True
) -> Mapping[str, Mapping[str, Any]]:
    """The last value of every key: of all that is committed, and with `waits` of all that was in the log when asked.

    `reader` shows committed records only. What was read once is remembered by `cluster`."""
    try:
        topic_id = (await admin.describe_topic(DECISIONS_TOPIC, offsets=False, configs=False)).id
    except UnknownTopic:
        return {}
    known = _known.get(cluster)
    if known is None or known.topic_id != topic_id:
        known = _known[cluster] = Known(topic_id)
    end = (await admin.offsets({HOME: "latest"}, read_committed=not waits)).checked()[HOME].offset
    if end > known.position:
        span = Span(DECISIONS_TOPIC, topic_id, 0, known.position, end)
        async for item in reader.read([span]):
            if isinstance(item, Piece):
                _take(known, record_batch(item.sink, DECISIONS_TOPIC, 0))
        known.position = end
    return known.values


def _take(known: Known, rows: Any) -> None:
    for key, value in zip(rows.column("key").to_pylist(), rows.column("value").to_pylist(), strict=True):
        try:
            if value is None:
                known.values.pop(key.decode(), None)
            else:
                known.values[key.decode()] = json.loads(value)
        except (ValueError, AttributeError) as strange:
            raise Missing(
                f"the topic {DECISIONS_TOPIC} has a record that no sink of ours wrote ({strange}): only drivers of "
                "queries may write it"
            ) from strange


def standing_in(values: Mapping[str, Mapping[str, Any]], query_id: str) -> Standing | None:
    found = values.get(standing_key(query_id))
    return None if found is None else Standing.of_json(found)


def history_in(values: Mapping[str, Mapping[str, Any]], query_id: str) -> list[Decision]:
    """The decisions that are kept of a query, oldest first."""
    found = [Decision.of_json(value) for key, value in values.items() if key.startswith(f"{query_id}/")]
    return sorted(found, key=lambda each: each.sequence)


def put(producer: Producer, standing: Standing) -> None:
    """In the transaction that is open."""
    _send(producer, standing_key(standing.query_id), standing.to_json())
    if standing.decision is not None:
        key = history_key(standing.query_id, standing.decision.sequence)
        _send(producer, key, standing.decision.to_json())


def _send(producer: Producer, key: str, value: Mapping[str, Any]) -> None:
    text = json.dumps(value, separators=(",", ":"))
    producer.send(DECISIONS_TOPIC, text.encode(), key=key.encode(), partition=0)
