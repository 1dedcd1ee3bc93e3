"""From producer to consumer at a fixed rate: one connection sends, one has a fetch waiting, both in one thread.

A batch counts from the moment when it was due to be sent until the reply with it has been read whole, so a stall on
the way is charged to every batch that it held up.
"""

from __future__ import annotations

import select
import struct
import time
from collections import deque

from penstock.bench.lanes import REPLY_TIMEOUT_S, Lane, open_socket
from tests.compat.wire import Cursor, batches, fetch_reply, fetch_request

LEAD_S = 0.05
# Length and correlation id.
REPLY_HEAD_BYTES = 8


class Follower:
    """A connection with one fetch outstanding, at the end of the partition."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.socket = open_socket(bootstrap)
        self._topic = topic
        self._bytes = bytearray()
        self.offset = 0
        self._ask()

    def _ask(self) -> None:
        self.socket.sendall(fetch_request(self._topic, 0, self.offset))

    def receive(self) -> int:
        """Takes what has come; when a reply is whole, asks for more and returns the number of batches in it."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionError("the broker closed the connection")
        self._bytes += data
        if len(self._bytes) < 4:
            return 0
        (size,) = struct.unpack_from(">i", self._bytes)
        if len(self._bytes) < 4 + size:
            return 0
        found = list(batches(fetch_reply(Cursor(bytes(self._bytes), REPLY_HEAD_BYTES)).records))
        self._bytes.clear()
        if found:
            self.offset = found[-1].base_offset + found[-1].last_offset_delta + 1
        self._ask()
        return len(found)

    def close(self) -> None:
        self.socket.close()


def latencies_ms(bootstrap: str, topic: str, batch: bytes, *, rate_per_s: float, seconds: float) -> list[float]:
    """One latency for every batch sent with acks=all to partition 0 of a new topic, in the order of arrival."""
    lane = Lane(bootstrap, topic, 0, batch, -1)
    follower = Follower(bootstrap, topic)
    poller = select.epoll()
    try:
        sender, reader = lane.socket.fileno(), follower.socket.fileno()
        poller.register(sender, select.EPOLLIN)
        poller.register(reader, select.EPOLLIN)
        # The lane's first request is in the log before the clock starts, so the follower has it first.
        early = 1
        total = int(rate_per_s * seconds)
        due: deque[float] = deque()
        measured: list[float] = []
        sent = 0
        started = heard_at = time.perf_counter() + LEAD_S
        while len(measured) < total:
            now = time.perf_counter()
            while sent < total and started + sent / rate_per_s <= now:
                lane.send()
                due.append(started + sent / rate_per_s)
                sent += 1
            heard = poller.poll(0)
            for number, _events in heard:
                if number == sender:
                    lane.receive()
                    continue
                arrived = follower.receive()
                at = time.perf_counter()
                known, early = min(early, arrived), max(0, early - arrived)
                measured += [(at - due.popleft()) * 1000 for _ in range(arrived - known)]
            if heard:
                heard_at = now
            elif now - heard_at > REPLY_TIMEOUT_S:
                raise TimeoutError(f"no batch of {topic} within {REPLY_TIMEOUT_S:.0f} s")
        return measured
    finally:
        poller.close()
        lane.close()
        follower.close()
