"""A group in a process: `python -m bench.soak.reading GROUP BOOTSTRAP`.

All members are in it, so one course of each partition judges what the group was given, whoever it was. Besides those
that stay, one member joins for a while and leaves again, so partitions move all the time.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import defaultdict
from typing import Any

import numpy as np

from bench.soak.lines import Errors, Orders, tell
from bench.soak.mix import GROUPS, PENSTOCK, TOPICS, Group
from bench.soak.numbered import Course, numbers_in, numbers_of

REPORT_S = 1.0
COMMIT_S = 1.0
VISIT_S, AWAY_S = 20.0, 40.0
"""How long the member that comes and goes stays, and stays away."""
POLL_S = 0.2
ARROW_RECORDS, MESSAGES = 50_000, 2_000


class Judge:
    """What the group was given, against what it must be given."""

    def __init__(self, group: Group, errors: Errors) -> None:
        self.group, self._errors = group, errors
        self._courses: dict[tuple[str, int], Course] = defaultdict(Course)
        self._lock = threading.Lock()
        self.records = self.visits = self.breaks = 0

    def take(self, topic: str, partition: int, offsets: Any, numbers: Any) -> None:
        with self._lock:
            self.records += len(offsets)
            wrong = self._courses[topic, partition].take(offsets, numbers)
        self.breaks += len(wrong)
        for words in wrong:
            self._errors.add(f"group {self.group.name}, {topic}-{partition}: {words}")

    def report(self) -> dict[str, Any]:
        ends: dict[str, int] = dict.fromkeys(self.group.topics, 0)
        with self._lock:
            for (topic, _partition), course in self._courses.items():
                ends[topic] += course.next_offset
            again = sum(course.again for course in self._courses.values())
        return {
            "read": self.records,
            "ends": ends,
            "again": again,
            "visits": self.visits,
            "breaks": self.breaks,
        }

    def finished(self, orders: Orders) -> bool:
        """Whether all is read that there will be."""
        if not orders.ending.is_set():
            return False
        ends = self.report()["ends"]
        return all(ends[topic] >= orders.totals.get(topic, 0) for topic in ends)


# --- Penstock ---


async def read_with_penstock(bootstrap: str, judge: Judge, orders: Orders, errors: Errors) -> None:
    async def reports() -> None:
        while not judge.finished(orders):
            tell(judge.report(), errors)
            await asyncio.sleep(REPORT_S)

    async def visitor() -> None:
        while True:
            await asyncio.sleep(AWAY_S)
            judge.visits += 1
            await _penstock_member(bootstrap, judge, VISIT_S)

    async with asyncio.TaskGroup() as group:
        members = [
            group.create_task(_penstock_member(bootstrap, judge, float("inf"))) for _ in range(judge.group.members)
        ]
        members.append(group.create_task(visitor()))
        await reports()
        for member in members:
            member.cancel()
    tell({**judge.report(), "done": True}, errors)


async def _penstock_member(bootstrap: str, judge: Judge, stay_s: float) -> None:
    from penstock import Consumer

    group = judge.group
    until = time.monotonic() + stay_s
    async with Consumer(
        *group.topics,
        bootstrap_servers=bootstrap,
        group_id=group.name,
        group_protocol=group.protocol,
        offset_reset="earliest",
        auto_commit_interval_ms=int(COMMIT_S * 1000),
    ) as consumer:
        while time.monotonic() < until:
            for batch in await consumer.poll_arrow(ARROW_RECORDS, POLL_S * 1000):
                _take_arrow(judge, batch)


def _take_arrow(judge: Judge, batch: Any) -> None:
    topic = batch["topic"].dictionary[0].as_py()
    column = batch["value"]
    _validity, _ends, data = column.buffers()
    numbers = numbers_in(memoryview(data)[: len(column) * TOPICS[topic]], TOPICS[topic])
    judge.take(topic, batch["partition"][0].as_py(), batch["offset"].to_numpy(), numbers)


# --- confluent-kafka ---


def read_with_confluent(bootstrap: str, judge: Judge, orders: Orders, errors: Errors) -> None:
    ended = threading.Event()

    def member() -> None:
        _confluent_member(bootstrap, judge, float("inf"), ended, errors)

    def visitor() -> None:
        while not ended.wait(AWAY_S):
            judge.visits += 1
            _confluent_member(bootstrap, judge, VISIT_S, ended, errors)

    threads = [threading.Thread(target=member) for _ in range(judge.group.members)]
    threads.append(threading.Thread(target=visitor))
    for thread in threads:
        thread.start()
    while not judge.finished(orders):
        tell(judge.report(), errors)
        time.sleep(REPORT_S)
    ended.set()
    for thread in threads:
        thread.join()
    tell({**judge.report(), "done": True}, errors)


def _confluent_member(bootstrap: str, judge: Judge, stay_s: float, ended: threading.Event, errors: Errors) -> None:
    from confluent_kafka import Consumer

    group = judge.group
    name = f"group {group.name}"

    def committed(failure: Any, _partitions: Any) -> None:
        if failure is not None:
            errors.add(f"{name}: a commit: {failure}")

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group.name,
            "group.protocol": group.protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            # Its defaults keep a gigabyte of records for a reader that is slow.
            "queued.max.messages.kbytes": 32_768,
            "on_commit": committed,
            "error_cb": lambda failure: errors.add(f"{name}: {failure}"),
        }
    )
    consumer.subscribe(list(group.topics))
    until, commit_at, uncommitted = time.monotonic() + stay_s, time.monotonic() + COMMIT_S, False
    try:
        while time.monotonic() < until and not ended.is_set():
            messages = consumer.consume(MESSAGES, POLL_S)
            uncommitted = _take_messages(judge, messages, errors) or uncommitted
            if uncommitted and time.monotonic() >= commit_at:
                consumer.commit(asynchronous=True)
                commit_at, uncommitted = time.monotonic() + COMMIT_S, False
    finally:
        consumer.close()


def _take_messages(judge: Judge, messages: list[Any], errors: Errors) -> bool:
    by_partition: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for message in messages:
        if message.error() is not None:
            errors.add(f"group {judge.group.name}: {message.error()}")
        else:
            by_partition[message.topic(), message.partition()].append(message)
    for (topic, partition), own in by_partition.items():
        offsets = np.array([message.offset() for message in own], np.int64)
        judge.take(topic, partition, offsets, numbers_of([message.value() for message in own]))
    return bool(by_partition)


def main() -> None:
    name, bootstrap = sys.argv[1:]
    group = next(group for group in GROUPS if group.name == name)
    orders, errors = Orders(), Errors()
    judge = Judge(group, errors)
    if group.client == PENSTOCK:
        import uvloop

        uvloop.run(read_with_penstock(bootstrap, judge, orders, errors))
    else:
        read_with_confluent(bootstrap, judge, orders, errors)


if __name__ == "__main__":
    main()
