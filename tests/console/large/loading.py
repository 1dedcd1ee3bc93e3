"""Sends records at a rate, as a process of its own: `python -m tests.console.large.loading BOOTSTRAP TOPIC RATE`.

It ends with its input, and prints how many a second it sent.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Final

from penstock.client.producer import Producer

STEP_S: Final = 0.02
VALUE: Final = b'{"amount": 12.5, "country": "it", "text": "' + b"x" * 60 + b'"}'


async def load(bootstrap: str, topic: str, rate: int) -> float:
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    values, sent, began = [VALUE] * round(rate * STEP_S), 0, time.monotonic()
    async with Producer(bootstrap_servers=bootstrap, acks="all", linger_ms=5, batch_size=256 << 10) as producer:
        while not ended.done():
            producer.send_batch(topic, values)
            sent += len(values)
            await asyncio.sleep(max(began + sent / rate - time.monotonic(), 0))
    return sent / (time.monotonic() - began)


if __name__ == "__main__":
    print(round(asyncio.run(load(sys.argv[1], sys.argv[2], int(sys.argv[3])))), flush=True)
