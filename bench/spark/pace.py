"""A producer that keeps a rate: `python -m bench.spark.pace BOOTSTRAP TOPIC RECORDS_PER_S SECONDS`.

Each record's timestamp is the instant at which it was given to the producer; values are text of 100 bytes.
"""

from __future__ import annotations

import sys
import time

from confluent_kafka import Producer

from penstock.bench.raw import payload

STEP_S = 0.01


def main() -> None:
    bootstrap, topic, rate, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
    settings = {
        "bootstrap.servers": bootstrap,
        "linger.ms": 5,
        "acks": "all",
        "queue.buffering.max.messages": 1_000_000,
    }
    producer = Producer(settings)
    values = [payload(100, seed) for seed in range(1_000)]
    began, sent, total = time.perf_counter(), 0, int(rate * seconds)
    while sent < total:
        due = min(total, int((time.perf_counter() - began) * rate) + 1)
        for number in range(sent, due):
            producer.produce(topic, values[number % len(values)])
        sent = due
        producer.poll(0)
        time.sleep(STEP_S)
    assert producer.flush(60) == 0
    print(sent)


if __name__ == "__main__":
    main()
