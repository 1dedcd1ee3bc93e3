"""Latency as somebody beside the load sees it: `python -m bench.soak.probe BOOTSTRAP`.

Single records at a fixed rate over one connection, acks=all. Each counts from when it was due, so a stall is charged to
all that it held up.
"""

from __future__ import annotations

import select
import sys
import time
from collections import deque

from bench.soak.lines import Errors, Orders, tell
from bench.soak.mix import PROBE_TOPIC
from penstock.bench.raw import Lane, make_batch

RATE_PER_S = 100.0
RECORD_BYTES = 100
REPORT_S = 1.0
SILENCE_S = 30.0


def probe(lane: Lane, orders: Orders, errors: Errors) -> None:
    """Reports the latencies of every second until the end is ordered."""
    poller = select.poll()
    poller.register(lane.socket, select.POLLIN)
    due: deque[float] = deque()
    measured: list[float] = []
    began = time.monotonic()
    sent, tell_at = 0, began + REPORT_S
    while not orders.ending.is_set():
        now = time.monotonic()
        while began + sent / RATE_PER_S <= now:
            lane.send()
            due.append(began + sent / RATE_PER_S)
            sent += 1
        if now >= tell_at:
            tell({"latencies_ms": measured}, errors)
            measured, tell_at = [], tell_at + REPORT_S
        if due and now - due[0] > SILENCE_S:
            raise TimeoutError(f"no answer to a produce within {SILENCE_S:.0f} s")
        left_s = began + sent / RATE_PER_S - time.monotonic()
        # A wait of the kernel has a grain of a millisecond; sleeping on has not.
        if poller.poll(max(0.0, left_s * 1000 - 1)):
            replies, at = lane.receive(), time.monotonic()
            measured += [round((at - due.popleft()) * 1000, 3) for _ in range(replies)]
        elif left_s > 0:
            time.sleep(min(left_s, 0.001))
    tell({"latencies_ms": measured, "done": True}, errors)


def main() -> None:
    (bootstrap,) = sys.argv[1:]
    orders, errors = Orders(), Errors()
    batch, _count = make_batch(RECORD_BYTES, RECORD_BYTES, "none")
    lane = Lane(bootstrap, PROBE_TOPIC, 0, batch, -1)
    try:
        probe(lane, orders, errors)
    finally:
        lane.close()


if __name__ == "__main__":
    main()
