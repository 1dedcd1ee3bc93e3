"""kafka-producer-perf-test and kafka-consumer-perf-test against every broker, the null broker as the bound.

The tools' own client shares the machine with the broker and sets most of the figure; what a broker is measured by here
is how near it comes to one that does nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from bench import memory, perf_tool
from bench.brokers import NULL, Running
from bench.headline.stage import LANES, Stage
from penstock.bench import raw

PRODUCER = "kafka-producer-perf-test"
CONSUMER = "kafka-consumer-perf-test"
BATCHES = {"16 KB": 16_384, "128 KB": 131_072}
RECORDS = {"100 B": 100, "1 KB": 1_000}
# For the heap of the tool and for what is written.
MEMORY_BYTES = 800_000_000


@dataclass(frozen=True)
class Sent:
    record: str
    acks: str
    batch: str

    @property
    def name(self) -> str:
        return f"{self.record}, acks={self.acks}, batch.size {self.batch}"


@dataclass(frozen=True)
class Read:
    record: str
    batch: str

    @property
    def name(self) -> str:
        return f"{self.record}, batches of {self.batch}"


SENT = tuple(Sent(*each) for each in itertools.product(RECORDS, ("1", "all"), BATCHES))
READ = tuple(Read(*each) for each in itertools.product(RECORDS, BATCHES))
SHAPES: tuple[Sent | Read, ...] = (*SENT, *READ)


def measure(stage: Stage, started: Sequence[Running]) -> None:
    """Producer tool and consumer tool in turn, broker after broker, as many rounds as there is time for."""
    topics = {shape: f"{stage.topic_name()}-r{RECORDS[shape.record]}-b{BATCHES[shape.batch]}" for shape in READ}
    stage.progress.step(0, 1, "topics to read from")
    for broker, read in itertools.product(started, READ):
        _fill(stage, broker, topics[read], read)
    shapes = SHAPES[:: stage.settings.tool_every]
    steps = stage.settings.tool_rounds * len(shapes)
    for number in range(stage.settings.tool_rounds):
        for index, shape in enumerate(shapes, start=number * len(shapes)):
            text = f"round {number + 1} of {stage.settings.tool_rounds}: {shape.name}"
            stage.progress.step(index, steps, text)
            for broker in started:
                if isinstance(shape, Sent):
                    _send(stage, broker, shape)
                else:
                    _read(stage, broker, topics[shape], shape, f"group-{number}")
    for broker, read in itertools.product(started, READ):
        broker.drop_topic(topics[read])


def _send(stage: Stage, broker: Running, shape: Sent) -> None:
    records = min(stage.settings.tool_records_max, stage.settings.tool_bytes * 2 // RECORDS[shape.record])
    with stage.topic(broker) as topic:
        memory.refresh(MEMORY_BYTES, broker.node.home)
        rate = perf_tool.records_per_s(
            broker.bootstrap, topic, record_bytes=RECORDS[shape.record], records=records, acks=shape.acks,
            codec="none", warmup_records=records // 4, batch_bytes=BATCHES[shape.batch],
        )  # fmt: skip
    stage.rate(PRODUCER, shape.name, "records/s", broker.name, rate)


def _read(stage: Stage, broker: Running, topic: str, shape: Read, group: str) -> None:
    memory.refresh(MEMORY_BYTES, broker.node.home)
    rate = perf_tool.consumed_per_s(broker.bootstrap, topic, group=group, records=_filled_records(stage, shape))
    stage.rate(CONSUMER, shape.name, "records/s", broker.name, rate)


def _filled_records(stage: Stage, shape: Read) -> int:
    """What is read; a little more is written, because batches do not end where a count does."""
    return stage.settings.consumed_bytes // RECORDS[shape.record] // 10 * 9


def _fill(stage: Stage, broker: Running, topic: str, shape: Read) -> None:
    broker.new_topic(topic, LANES)
    if broker.name == NULL:
        return
    batch, records = raw.make_batch(RECORDS[shape.record], BATCHES[shape.batch], "none")
    wanted = stage.settings.consumed_bytes // RECORDS[shape.record] // records * len(batch)
    raw.produce_load(broker.bootstrap, topic, batch, records, acks=-1, seconds=60, bytes_max=wanted, lanes=LANES)
