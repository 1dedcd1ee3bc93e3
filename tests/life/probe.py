"""Latency as an application sees it: `python -m tests.life.probe BOOTSTRAP TOPIC`.

Single records at a fixed rate by our producer, acks=all. Each counts from when it was due, so a stall is charged to all
that it held up.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time

from bench.soak.lines import Errors, Orders, tell
from penstock import Producer
from penstock.client.errors import ClientError

RATE_PER_S = 20.0
REPORT_S = 1.0
VALUE = bytes(100)


class Probe:
    def __init__(self, topic: str, producer: Producer, errors: Errors) -> None:
        self._topic, self._producer, self._errors = topic, producer, errors
        self.measured_ms: list[float] = []

    async def send(self, due: float) -> None:
        try:
            await self._producer.send(self._topic, VALUE)
        except ClientError as failure:
            self._errors.add(f"a probe: {failure!r}")
        self.measured_ms.append(round((time.monotonic() - due) * 1000, 3))

    def told(self) -> dict[str, object]:
        measured, self.measured_ms = self.measured_ms, []
        return {"latencies_ms": measured}


async def run(bootstrap: str, topic: str, orders: Orders, errors: Errors) -> None:
    async with Producer(bootstrap_servers=bootstrap, linger_ms=0) as producer, asyncio.TaskGroup() as sends:
        probe = Probe(topic, producer, errors)
        due = tell_at = time.monotonic()
        while not orders.ending.is_set():
            sends.create_task(probe.send(due))
            due += 1 / RATE_PER_S
            if due >= tell_at:
                tell(probe.told(), errors)
                tell_at += REPORT_S
            await asyncio.sleep(max(0.0, due - time.monotonic()))


def main() -> None:
    bootstrap, topic = sys.argv[1:]
    # It tells of every broken link.
    logging.getLogger("penstock.client").setLevel(logging.ERROR)
    orders, errors = Orders(), Errors()
    asyncio.run(run(bootstrap, topic, orders, errors))
    tell({"done": True}, errors)


if __name__ == "__main__":
    main()
