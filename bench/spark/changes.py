"""Changes of keyed rows in a topic, sent by the judge's wire: a key stays in its partition."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable

from bench.spark.topics import PARTITIONS
from tests.compat import wire
from tests.compat.batches import Record, encode_batch

CHANGE_SCHEMA = "id bigint, name string, city string, amount double, at timestamp"
RECORDS_A_BATCH = 2_000


def change(number: int, version: int) -> bytes:
    """A row of about 110 bytes."""
    row = {
        "id": number,
        "name": f"customer {number} of {version}",
        "city": f"city {number % 977}",
        "amount": number * 1.25,
        "at": f"2026-01-{1 + number % 28:02d}T{version % 24:02d}:00:00Z",
    }
    return json.dumps(row, separators=(",", ":")).encode()


def send_changes(bootstrap: str, topic: str, numbers: Iterable[int], version: int) -> None:
    """One change of each row."""
    held: dict[int, list[Record]] = defaultdict(list)
    with wire.connect(bootstrap) as connection:

        def flush(partition: int) -> None:
            batch = encode_batch(held.pop(partition), base_timestamp_ms=int(time.time() * 1000))
            wire.produce(connection, topic, partition, batch)

        for number in numbers:
            partition = number % PARTITIONS
            held[partition].append(Record(change(number, version)))
            if len(held[partition]) == RECORDS_A_BATCH:
                flush(partition)
        for partition in list(held):
            flush(partition)
