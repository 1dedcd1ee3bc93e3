"""Topics that are hard to read: on top of the contents of the exchange, long records and odd ones at known times."""

from __future__ import annotations

import random

from confluent_kafka import Producer

from tests.compat.batches import Record, encode_batch
from tests.compat.contents import write_contents
from tests.compat.wire import CODECS, connect, create_topic, produce
from tests.patience import within

START_MS = 1_790_000_000_000
STEP_MS = 1_000
TIMED_PARTITIONS = 2
TIMED_BATCHES = 60
LONG_BYTES = (5_000_000, 1_000_000, 10, 3_000_000)


def write_topics(bootstrap: str) -> None:
    """`timed`: batches a second apart from START_MS on, by turns in two partitions. `long`: records up to 5 MB."""
    write_contents(bootstrap)
    create_topic(bootstrap, "timed", TIMED_PARTITIONS, {"retention.ms": "-1"})
    create_topic(bootstrap, "long", 1, {"max.message.bytes": "6000000"})
    chance = random.Random(4_2_0)
    with connect(bootstrap) as connection:
        for at in range(TIMED_BATCHES):
            records = [_odd(chance, number) for number in range(chance.randint(1, 20))]
            batch = encode_batch(records, codec=CODECS[at % 5], base_timestamp_ms=START_MS + at * STEP_MS)
            produce(connection, "timed", at % TIMED_PARTITIONS, batch)
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 6_000_000, "linger.ms": 0})
    for number, size in enumerate(LONG_BYTES):
        producer.produce("long", chance.randbytes(size), key=b"%d" % number)
        assert producer.flush(within(60)) == 0


def _odd(chance: random.Random, number: int) -> Record:
    """Null and empty keys, values and header values; text that compresses and bytes that do not."""
    return Record(
        value=chance.choice([None, b"", b"text " * chance.randint(1, 40), chance.randbytes(chance.randint(1, 400))]),
        key=chance.choice([None, b"", b"key-%d" % number]),
        headers=chance.choice([(), (("name", b"value"),), (("empty", b""), ("null", None), ("name", b"again"))]),
        timestamp_delta_ms=number,
    )
