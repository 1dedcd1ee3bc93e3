"""The writers of one client library in a process: `python -m bench.soak.writing CLIENT BOOTSTRAP`.

Each keeps to its share of the rate that was ordered, in turns over the partitions, and reports every second what was
asked of it and what was acknowledged.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from bench.soak.lines import Errors, Orders, tell
from bench.soak.mix import CONFLUENT, PARTITIONS, PENSTOCK, TOPICS, WRITERS, Writer, records_per_s
from bench.soak.numbered import fillers, values
from bench.soak.pace import Pace

TICK_S = 0.01
REPORT_S = 1.0
CHUNK = 5_000
"""The most records of one turn."""
FLUSH_S = 60.0


class Desk:
    """What one writer has written, and what it writes next."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.acknowledged = 0
        self._pace = Pace(time.monotonic())
        self._fillers = fillers(TOPICS[writer.topic])
        self._next = [0] * PARTITIONS
        self._turn = 0

    def due(self, bytes_per_s: float) -> tuple[int, list[bytes]]:
        """A partition, and the records that are to be written to it now."""
        rate = records_per_s(self.writer, bytes_per_s)
        count = self._pace.take(rate, time.monotonic(), CHUNK)
        if not count:
            return 0, []
        self._turn = (self._turn + 1) % PARTITIONS
        first = self._next[self._turn]
        self._next[self._turn] += count
        return self._turn, values(self.writer.number, first, count, self._fillers)

    def report(self) -> dict[str, float]:
        return {"asked": self._pace.asked, "written": sum(self._next), "acknowledged": self.acknowledged}


def reports(desks: list[Desk]) -> dict[str, Any]:
    return {"writers": {str(desk.writer.number): desk.report() for desk in desks}}


# --- Penstock ---


async def write_with_penstock(bootstrap: str, desks: list[Desk], orders: Orders, errors: Errors) -> None:
    async with asyncio.TaskGroup() as group:
        for desk in desks:
            group.create_task(_penstock_writer(bootstrap, desk, orders, errors))
        while not all(desk.acknowledged == desk.report()["written"] for desk in desks) or not orders.ending.is_set():
            tell(reports(desks), errors)
            await asyncio.sleep(REPORT_S)
    tell({**reports(desks), "done": True}, errors)


async def _penstock_writer(bootstrap: str, desk: Desk, orders: Orders, errors: Errors) -> None:
    from penstock import Producer

    topic = desk.writer.topic
    under_way: deque[tuple[int, Any]] = deque()

    def reap() -> None:
        while under_way and under_way[0][1].done():
            count, delivery = under_way.popleft()
            desk.acknowledged += count
            if (failure := delivery.exception()) is not None:
                errors.add(f"writer {desk.writer.number}: {failure}")

    async with Producer(bootstrap_servers=bootstrap, acks="all", compression=desk.writer.codec) as producer:
        while not orders.ending.is_set():
            partition, records = desk.due(orders.bytes_per_s)
            if records:
                under_way.append((len(records), producer.send_batch(topic, records, partition=partition)))
            await producer.wait_for_room()
            reap()
            await asyncio.sleep(TICK_S)
        await producer.flush(FLUSH_S * 1000)
        reap()


# --- confluent-kafka ---


def write_with_confluent(bootstrap: str, desks: list[Desk], orders: Orders, errors: Errors) -> None:
    threads = [
        threading.Thread(target=_confluent_writer, args=(bootstrap, desk, orders, errors), daemon=True)
        for desk in desks
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        tell(reports(desks), errors)
        time.sleep(REPORT_S)
    tell({**reports(desks), "done": True}, errors)


def _confluent_writer(bootstrap: str, desk: Desk, orders: Orders, errors: Errors) -> None:
    from confluent_kafka import Producer

    name = f"writer {desk.writer.number}"

    def delivered(failure: Any, _message: Any) -> None:
        if failure is not None:
            errors.add(f"{name}: {failure}")

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "compression.type": desk.writer.codec,
            "linger.ms": 5,
            # Half a second of the largest load: a writer that cannot keep up shall be seen to.
            "queue.buffering.max.messages": 200_000,
            "delivery.report.only.error": True,
            "error_cb": lambda failure: errors.add(f"{name}: {failure}"),
        }
    )
    written = 0
    while not orders.ending.is_set():
        partition, records = desk.due(orders.bytes_per_s)
        for record in records:
            _produce(producer, desk.writer.topic, record, partition, delivered)
        written += len(records)
        producer.poll(0)
        desk.acknowledged = written - len(producer)
        time.sleep(TICK_S)
    left = producer.flush(FLUSH_S)
    if left:
        errors.add(f"{name}: {left} records were not acknowledged within {FLUSH_S:.0f} s")
    desk.acknowledged = written - left


def _produce(producer: Any, topic: str, record: bytes, partition: int, delivered: Callable[..., None]) -> None:
    while True:
        try:
            producer.produce(topic, record, partition=partition, on_delivery=delivered)
            return
        except BufferError:
            producer.poll(0.01)


def main() -> None:
    client, bootstrap = sys.argv[1:]
    orders, errors = Orders(), Errors()
    desks = [Desk(writer) for writer in WRITERS if writer.client == client]
    if client == PENSTOCK:
        import uvloop

        uvloop.run(write_with_penstock(bootstrap, desks, orders, errors))
    elif client == CONFLUENT:
        write_with_confluent(bootstrap, desks, orders, errors)
    else:
        raise SystemExit(f"there is no client {client!r}")


if __name__ == "__main__":
    main()
