"""What a gigabyte costs a broker when it comes in transactions, beside the same bytes without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bench.txn.producers import Shape
from bench.txn.stage import Stage, Subject

GROUP_CPU, GROUP_RATE = "a transactional GB: broker CPU", "a transactional GB: throughput"
PRODUCERS = 8
_BATCH = Shape(record_bytes=1_000, records=16)
SHAPES = {
    "transactions of 1 MB": replace(_BATCH, batches=64),
    "transactions of 100 KB": replace(_BATCH, batches=6),
    "no transactions": replace(_BATCH, batches=64, transactional=False),
}


def measure(stage: Stage, subjects: Sequence[Subject]) -> None:
    for number in range(stage.settings.rounds):
        stage.say(f"a GB in batches of 16 KB, round {number + 1} of {stage.settings.rounds}")
        for name, shape in SHAPES.items():
            for subject in subjects:
                with stage.topic(subject, PRODUCERS) as place:
                    done, spent = stage.sample(subject, place, shape, PRODUCERS)
                if done.batch_bytes:
                    stage.cost(GROUP_CPU, name, "CPU-s/GB", subject.name, spent / done.batch_bytes * 1e9)
                    stage.rate(GROUP_RATE, name, "MB/s", subject.name, done.batch_bytes / done.seconds / 1e6)
