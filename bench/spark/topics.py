"""Topics for Spark to read: batches encoded once, records all different, sent again and again by the judge's wire."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from penstock.bench.raw import payload
from tests.compat import wire
from tests.compat.batches import Record, encode_batch

PARTITIONS = 4
BATCH_BYTES = 256_000
DIFFERENT_BYTES = 16_000_000
"""So much is different before records repeat: more than any dictionary of a Parquet file holds."""

JSON_SCHEMA = (
    "id bigint, at string, customer string, item string, quantity int, price double, paid boolean, note string"
)
ITEMS = ("espresso", "flat white", "cappuccino", "filter", "cold brew", "chai", "cocoa", "tea")


@dataclass(frozen=True)
class Filled:
    """What a topic holds."""

    topic: str
    records: int
    value_bytes: int


def text_value(record_bytes: int) -> Callable[[int], bytes]:
    """Text with the redundancy of log lines, of exactly this size."""
    return lambda number: b"%08d " % number + payload(record_bytes - 9, number % 1_000)


def json_value(number: int) -> bytes:
    """An order of about 200 bytes."""
    chance = random.Random(number)
    order = {
        "id": number,
        "at": f"2026-01-{1 + number % 28:02d}T{number % 24:02d}:{number % 60:02d}:07.{number % 1000:03d}Z",
        "customer": f"customer-{chance.randrange(1_000_000)}",
        "item": ITEMS[number % len(ITEMS)],
        "quantity": 1 + number % 5,
        "price": round(chance.uniform(1, 9), 2),
        "paid": number % 3 == 0,
        "note": payload(60, number % 1_000).decode(),
    }
    return json.dumps(order, separators=(",", ":")).encode()


def fill(bootstrap: str, topic: str, value: Callable[[int], bytes], total_bytes: int) -> Filled:
    """A topic with about so many bytes of values, in four partitions."""
    wire.create_topic(bootstrap, topic, PARTITIONS)
    batches = [_batch(value, first) for first in _firsts(value, min(total_bytes, DIFFERENT_BYTES))]
    records = value_bytes = sent = 0
    with wire.connect(bootstrap) as connection:
        while value_bytes < total_bytes:
            batch, count, size = batches[sent % len(batches)]
            wire.produce(connection, topic, sent % PARTITIONS, batch)
            records, value_bytes, sent = records + count, value_bytes + size, sent + 1
    return Filled(topic, records, value_bytes)


def _firsts(value: Callable[[int], bytes], total_bytes: int) -> range:
    each = len(value(1_234_567))
    count = max(1, BATCH_BYTES // each)
    return range(0, max(count, total_bytes // each), count)


def _batch(value: Callable[[int], bytes], first: int) -> tuple[bytes, int, int]:
    values = [value(first + number) for number in range(max(1, BATCH_BYTES // len(value(1_234_567))))]
    batch = encode_batch([Record(each) for each in values], base_timestamp_ms=int(time.time() * 1000))
    return batch, len(values), sum(len(each) for each in values)
