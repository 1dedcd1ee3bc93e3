"""The same produces, byte for byte, for any broker, so that the files of two brokers can be laid side by side.

Timestamps, producer ids and sequences are fixed; a broker adds base offsets and leader epochs alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.compat.batches import Record, encode_batch
from tests.compat.wire import CODECS, connect, create_topic, produce

START_MS = 1_700_000_000_000
SMALL_SEGMENTS = {"segment.bytes": "1048576"}

TOPICS: dict[str, dict[str, str]] = {
    "plain": SMALL_SEGMENTS,
    "codecs": SMALL_SEGMENTS,
    "idempotent": SMALL_SEGMENTS,
    "out-of-order-times": {},
    "dense-index": {"index.interval.bytes": "100"},
    "empty": {},
}


def fill(bootstrap: str) -> None:
    """Creates the topics and writes to them. The same every time."""
    for topic, configs in TOPICS.items():
        create_topic(bootstrap, topic, 1, configs)
    with connect(bootstrap) as connection:
        for topic, batch in _batches():
            produce(connection, topic, 0, batch)


def _batches() -> Iterator[tuple[str, bytes]]:
    chance = random.Random(4_3_1)
    for at in range(150):
        records = [Record(chance.randbytes(1_000), key=b"key-%d" % (number % 7)) for number in range(20)]
        yield "plain", encode_batch(records, base_timestamp_ms=START_MS + at * 10)
    for at in range(400):
        records = [_odd_record(chance, number) for number in range(chance.randint(1, 60))]
        yield "codecs", encode_batch(records, codec=CODECS[at % 5], base_timestamp_ms=START_MS + at * 1_000)
    yield from (("idempotent", batch) for batch in _idempotent_batches(chance))
    for _ in range(100):
        # Times that jump about: the time index may only ever take a larger one.
        records = [Record(chance.randbytes(200), timestamp_delta_ms=chance.randint(0, 5_000)) for _ in range(10)]
        yield "out-of-order-times", encode_batch(records, base_timestamp_ms=START_MS + chance.randint(0, 1_000_000))
    for at in range(200):
        yield "dense-index", encode_batch([Record(b"value %d" % at)], base_timestamp_ms=START_MS + at)


def _odd_record(chance: random.Random, number: int) -> Record:
    """Null and empty keys, values and header values; text that compresses and bytes that do not."""
    return Record(
        value=chance.choice([None, b"", b"text " * chance.randint(1, 40), chance.randbytes(chance.randint(1, 400))]),
        key=chance.choice([None, b"", b"key-%d" % number]),
        headers=chance.choice([(), (("name", b"value"),), (("empty", b""), ("null", None))]),
        timestamp_delta_ms=number,
    )


def _idempotent_batches(chance: random.Random) -> Iterator[bytes]:
    """Three producers taking turns; the last has gone through an epoch."""
    sequences = {(7_000, 0): 0, (7_001, 0): 0, (7_002, 3): 0}
    for at in range(240):
        (producer_id, epoch) = sorted(sequences)[at % 3]
        count = chance.randint(1, 30)
        records = [Record(chance.randbytes(300), key=b"%d" % producer_id) for _ in range(count)]
        yield encode_batch(
            records,
            base_timestamp_ms=START_MS + at * 100,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequences[producer_id, epoch],
        )
        sequences[producer_id, epoch] += count
