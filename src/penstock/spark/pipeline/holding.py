"""A shared query that has lost its checkpoint: whether its exactly-once topic stands where its tables do.

Tables say how far they are, and the new query begins there. The topic's decisions are the old query's, which a commit
of a table names: where they end at the same offsets, the new one neither doubles nor loses a record of the topic; where
they do not, no query can go on after both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.spark.errors import BadOption
from penstock.spark.lake.ledger import Ledger
from penstock.spark.lake.ranges import RangeKey
from penstock.spark.pipeline.flow import Flow, Sink
from penstock.spark.pipeline.wiring import topic_options
from penstock.spark.topic_sink.options import SinkOptions

if TYPE_CHECKING:
    from penstock.spark.lake.store import Commit, TableStore

_COMMITS_BACK = 100


def hold(flow: Flow, topic: Sink, table: Sink, store: TableStore) -> None:
    """`BadOption` when the sink `topic` does not stand where the `table` does, or nobody knows."""
    from penstock.spark.topic_sink.transactions.plan import settled

    last = _last_batch(store)
    query_id = "" if last is None else last.query_id.partition("/")[0]
    options = SinkOptions.of({**topic_options(flow, topic), "checkpointLocation": flow.checkpoint(topic)})
    standing = settled(options, query_id) if query_id else None
    if standing is None:
        raise BadOption(_words(topic, table, "and what it has written nobody knows", ""))
    at = dict(store.committed())
    if standing.positions != at:
        decided = () if standing.decision is None else standing.decision.ranges
        names = {each.key: each.topic for each in (*(last.ranges if last else ()), *decided)}
        told = _told(standing.positions, names)
        words = f"which holds what was read up to {told}, not up to {_told(at, names)} as the table does"
        raise BadOption(_words(topic, table, words, told))


def _last_batch(store: TableStore) -> Commit | None:
    """The last commit of a batch, as the table tells it or its own ledger."""
    for commits in (
        store.commits(after=store.version() - _COMMITS_BACK),
        Ledger(store.location, store.storage).entries(),
    ):
        batches = [each for each in commits if each.query_id and each.ranges]
        if batches:
            return batches[-1]
    return None


def _told(positions: Mapping[RangeKey, int], names: Mapping[RangeKey, str]) -> str:
    """As `start` of a source takes it."""
    found: dict[str, dict[str, int]] = {}
    for key, offset in sorted(positions.items()):
        found.setdefault(names.get(key, key.topic), {})[str(key.partition)] = offset
    return json.dumps(found)


def _words(topic: Sink, table: Sink, what: str, start: str) -> str:
    begin = f"start = '{start}' goes on right after what it holds" if start else "start says where it begins"
    return (
        f"sinks {table.name} and {topic.name} stand together and have lost their checkpoint. The table goes on at its "
        f"own offsets, but sink {topic.name} writes exactly once into {topic.target}, {what}. Take `together` from "
        f"both, and the table goes on by itself; give sink {topic.name} a source of its own, where {begin}, or another "
        "topic, which is filled anew. Or bring the checkpoint back"
    )
