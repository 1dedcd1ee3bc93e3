"""Clients that go on while a disk hangs: a producer for each partition at a steady pace, and a group that reads it all.

The producers are confluent-kafka's with its default timeouts, idempotent, acks=all. Each partition has one of its own,
so that what a broker makes one partition wait for holds no other up in the client or on its connection.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer

from tests.compat.processes import wait_for

QUIET = {"log_level": 0}
VALUE_BYTES = 100


class Place(NamedTuple):
    topic: str
    partition: int


class Wait(NamedTuple):
    """One acknowledged record, by the monotonic clock."""

    place: Place
    sent_s: float
    acked_s: float


class Writers:
    """From `with` until its end every place gets a record each `interval_s`, whether or not the last was answered."""

    def __init__(self, bootstrap: str, places: Sequence[Place], interval_s: float) -> None:
        self.waits: list[Wait] = []
        self.acked: set[str] = set()
        self.failed = 0
        self.sent = 0
        self._interval_s = interval_s
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all", **QUIET}
        self._producers = {place: Producer(settings) for place in places}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writers")

    def __enter__(self) -> Writers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    @property
    def unanswered(self) -> int:
        return self.sent - len(self.waits) - self.failed

    def finish(self, timeout_s: float) -> None:
        """No more records; returns when the last is answered."""
        self._stopping.set()
        self._thread.join()
        for producer in self._producers.values():
            producer.flush(timeout_s)

    def longest_wait_s(self, places: Collection[Place], since_s: float, until_s: float) -> float:
        """Of the records to these places that were under way or sent between two instants."""
        under_way = (
            each for each in self.waits if each.place in places and each.acked_s >= since_s and each.sent_s < until_s
        )
        return max((each.acked_s - each.sent_s for each in under_way), default=0.0)

    def _run(self) -> None:
        due_s = time.monotonic()
        number = 0
        while not self._stopping.is_set():
            for place, producer in self._producers.items():
                self._send(place, producer, number)
            number += 1
            due_s += self._interval_s
            # Acknowledgements are noted when they are asked for, so it asks often.
            while (left_s := due_s - time.monotonic()) > 0:
                for producer in self._producers.values():
                    producer.poll(0)
                time.sleep(min(left_s, 0.005))

    def _send(self, place: Place, producer: Producer, number: int) -> None:
        value, sent_s = f"{place.topic}-{place.partition}:{number}", time.monotonic()

        def answered(error: Any, _message: Any) -> None:
            if error is not None:
                self.failed += 1
                return
            self.waits.append(Wait(place, sent_s, time.monotonic()))
            self.acked.add(value)

        self.sent += 1
        padded = value.ljust(VALUE_BYTES).encode()
        producer.produce(place.topic, padded, partition=place.partition, on_delivery=answered)


class Reader:
    """One member of a group that reads topics from their beginning, from `with` until its end."""

    def __init__(self, bootstrap: str, topics: Sequence[str]) -> None:
        self.read: Counter[str] = Counter()
        self.assignments = 0
        self._topics = list(topics)
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "steady", "auto.offset.reset": "earliest", **QUIET}
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reader")

    def __enter__(self) -> Reader:
        self._consumer.subscribe(self._topics, on_assign=self._assigned)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._consumer.close()

    def wait_for(self, values: Collection[str], timeout_s: float) -> None:
        wait_for("the group to read everything", lambda: self.read.keys() >= set(values), timeout_s=timeout_s)

    def _assigned(self, _consumer: Any, _partitions: Any) -> None:
        self.assignments += 1

    def _run(self) -> None:
        while not self._stopping.is_set():
            for record in self._consumer.consume(1_000, timeout=0.1):
                if record.error() is None:
                    self.read[_text(record.value())] += 1


@dataclass(frozen=True)
class Verdict:
    """What became of the records that were acknowledged."""

    acknowledged: int
    lost: int
    doubled: int
    read_twice: int


def judge(acked: Collection[str], stored: Iterable[bytes | None], read: Mapping[str, int]) -> Verdict:
    """`stored` are the values that the logs hold in the end."""
    held = Counter(map(_text, stored))
    return Verdict(
        acknowledged=len(acked),
        lost=sum(value not in held or value not in read for value in acked),
        doubled=sum(count - 1 for count in held.values()),
        read_twice=sum(count - 1 for count in read.values()),
    )


def _text(value: bytes | None) -> str:
    return (value or b"").decode().rstrip()
