"""Whether the order of offsets still is the order of changes. Pure.

It is as long as a key stays in its partition: as long as the topic is the one that it was, with as many partitions. A
table that follows the offsets keeps both as a property from its first batch on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from penstock.spark.errors import SparkRoomError

PARTITIONS_PROPERTY: Final = "penstock.keyed.partitions"
"""JSON: topic id → its number of partitions."""


class OrderLost(SparkRoomError):
    """Offsets no longer say which change is the later."""


def watched(partitions: Mapping[str, int]) -> str:
    return json.dumps(dict(sorted(partitions.items())))


def check_same(there: str | None, now: Mapping[str, int], *, table: str, begun: bool) -> None:
    """`OrderLost` when a table that has changes (`begun`) is to get some of other partitions."""
    if there is None or not begun:
        return
    before: dict[str, int] = json.loads(there)
    remedy = (
        "Give sequence_by a column that orders changes, and write to another table from the earliest records on; or "
        "remove the table and its checkpoint (penstock pipeline reset) and read all of the topic again"
    )
    for topic_id, partitions in sorted(now.items()):
        if topic_id not in before:
            raise OrderLost(
                f"the topic that {table} follows was deleted and created anew (its id was {', '.join(before)}, now it "
                f"is {topic_id}): its offsets begin again, so every change would look older than what the table has. "
                f"{remedy}"
            )
        if partitions != before[topic_id]:
            raise OrderLost(
                f"the topic that {table} follows has {partitions} partitions and had {before[topic_id]}: keys have "
                f"moved to others, and offsets of different partitions have no order. {remedy}"
            )
