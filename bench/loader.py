"""Raw load: requests encoded once, pipelined over a few connections, only correlation ids patched.

The client side must cost as little as it can, for it shares the machine with the broker. A produce reply of a given
request has a fixed size, so replies are counted by bytes and only their error codes are looked at.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from tests.compat.batches import Record, encode_batch
from tests.compat.wire import CORRELATION_AT, batches, connect, fetch_reply, fetch_request, produce_request

WORDS = b"stream turbine gate pipe pressure valve water level sensor reading ".split()


def payload(record_bytes: int, seed: int) -> bytes:
    """Text with the redundancy of log lines, of exactly this size."""
    words = (
        WORDS[(seed * 7 + index * index) % len(WORDS)] + b"=%d " % (seed * 31 + index) for index in range(record_bytes)
    )
    out = bytearray()
    for word in words:
        out += word
        if len(out) >= record_bytes:
            break
    return bytes(out[:record_bytes])


def make_batch(record_bytes: int, batch_bytes: int, codec: str) -> tuple[bytes, int]:
    """A batch of about `batch_bytes` before compression, and its number of records."""
    count = max(1, batch_bytes // record_bytes)
    records = [Record(payload(record_bytes, seed)) for seed in range(count)]
    return encode_batch(records, codec=codec, base_timestamp_ms=int(time.time() * 1000)), count


@dataclass(frozen=True)
class Load:
    """What was moved, in how long."""

    seconds: float
    requests: int
    records: int
    wire_bytes: int

    @property
    def requests_per_s(self) -> float:
        return self.requests / self.seconds

    @property
    def records_per_s(self) -> float:
        return self.records / self.seconds

    @property
    def megabytes_per_s(self) -> float:
        return self.wire_bytes / 1e6 / self.seconds


class Lane:
    """One connection with a fixed request; replies are counted, not parsed."""

    def __init__(self, bootstrap: str, topic: str, partition: int, batch: bytes, acks: int) -> None:
        self.frame = bytearray(produce_request(topic, partition, batch, acks))
        self.socket = connect(bootstrap).socket
        self._name_bytes = len(topic.encode())
        self._tail = b""
        self._correlation = 0
        self.reply_bytes = self._first_reply()

    def _first_reply(self) -> int:
        self.send()
        size = int.from_bytes(_read_exactly(self.socket, 4), "big")
        self._check(struct.pack(">i", size) + _read_exactly(self.socket, size))
        return size + 4

    def send(self) -> None:
        self._correlation = (self._correlation + 1) & 0x7FFFFFFF
        struct.pack_into(">i", self.frame, CORRELATION_AT, self._correlation)
        self.socket.sendall(self.frame)

    def receive(self) -> int:
        """Reads what is there and returns the number of replies that it completed."""
        data = self._tail + self.socket.recv(1 << 16)
        if len(data) == len(self._tail):
            raise ConnectionError("the broker closed the connection")
        whole, left = divmod(len(data), self.reply_bytes)
        for index in range(whole):
            self._check(data, index * self.reply_bytes)
        self._tail = data[len(data) - left :] if left else b""
        return whole

    def _check(self, data: bytes, at: int = 0) -> None:
        # Length, correlation id, one topic, its name, one partition, its index, then the error code.
        (error,) = struct.unpack_from(">h", data, at + 4 + 4 + 4 + 2 + self._name_bytes + 4 + 4)
        if error:
            raise AssertionError(f"a produce was refused with error {error}")

    def close(self) -> None:
        self.socket.close()


def _read_exactly(source: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        chunk = source.recv(count - len(data))
        if not chunk:
            raise ConnectionError("the broker closed the connection")
        data += chunk
    return bytes(data)


def produce_load(
    bootstrap: str | Sequence[str],
    topic: str,
    batch: bytes,
    records: int,
    *,
    acks: int,
    seconds: float,
    bytes_max: int,
    lanes: int = 4,
    depth: int = 5,
) -> Load:
    """As many produces as the broker takes: `lanes` connections, one partition each, `depth` requests in flight.

    Of a cluster `bootstrap` names the leader of each of these partitions.
    """
    open_lanes = {lane.socket.fileno(): lane for lane in _lanes(bootstrap, topic, batch, acks, lanes)}
    poller = select.epoll()
    try:
        for number, lane in open_lanes.items():
            poller.register(number, select.EPOLLIN)
            for _ in range(depth):
                lane.send()
        started = time.perf_counter()
        # Replies end the measurement, not sends: what is still in flight then has not been done.
        done, budget = 0, bytes_max // len(batch)
        while time.perf_counter() - started < seconds and done < budget:
            for number, _events in poller.poll():
                lane = open_lanes[number]
                completed = lane.receive()
                done += completed
                for _ in range(completed):
                    lane.send()
        elapsed = time.perf_counter() - started
        return Load(elapsed, done, done * records, done * len(batch))
    finally:
        poller.close()
        for lane in open_lanes.values():
            lane.close()


def _lanes(bootstrap: str | Sequence[str], topic: str, batch: bytes, acks: int, count: int) -> list[Lane]:
    leaders = [bootstrap] * count if isinstance(bootstrap, str) else bootstrap
    return [Lane(leaders[partition], topic, partition, batch, acks) for partition in range(count)]


def fetch_load(bootstrap: str, topic: str, *, seconds: float, bytes_max: int, partition: int = 0) -> Load:
    """Reads a partition over and over, one request at a time as a consumer does, walking batch headers alone."""
    requests = records = received = offset = 0
    with connect(bootstrap) as connection:
        started = time.perf_counter()
        while time.perf_counter() - started < seconds and received < bytes_max:
            fetched = fetch_reply(connection.call(fetch_request(topic, partition, offset)))
            requests += 1
            received += len(fetched.records)
            last = None
            for last in batches(fetched.records):
                records += last.record_count
            offset = last.base_offset + last.last_offset_delta + 1 if last else 0
            if offset >= fetched.high_watermark:
                offset = 0
        return Load(time.perf_counter() - started, requests, records, received)


def latencies_ms(
    bootstrap: str | Sequence[str],
    topic: str,
    batch: bytes,
    *,
    acks: int,
    rate_per_s: float,
    seconds: float,
    lanes: int = 4,
) -> list[float]:
    """Produce latencies at a fixed rate. A request counts from when it was due, so that a stall is not left out."""
    open_lanes = _lanes(bootstrap, topic, batch, acks, lanes)
    due: dict[int, deque[float]] = {lane.socket.fileno(): deque() for lane in open_lanes}
    by_number = {lane.socket.fileno(): lane for lane in open_lanes}
    poller = select.epoll()
    for number in by_number:
        poller.register(number, select.EPOLLIN)
    measured: list[float] = []
    total = int(rate_per_s * seconds)
    try:
        started = time.perf_counter() + 0.01
        sent = 0
        while len(measured) < total:
            now = time.perf_counter()
            while sent < total and started + sent / rate_per_s <= now:
                lane = open_lanes[sent % lanes]
                lane.send()
                due[lane.socket.fileno()].append(started + sent / rate_per_s)
                sent += 1
            # The kernel's wait has a grain of a millisecond, so the last one is spent polling.
            left_s = started + sent / rate_per_s - now if sent < total else 1.0
            for number, _events in poller.poll(0 if left_s < 0.002 else left_s - 0.001):
                replies = by_number[number].receive()
                at = time.perf_counter()
                measured += [(at - due[number].popleft()) * 1000 for _ in range(replies)]
    finally:
        poller.close()
        for lane in open_lanes:
            lane.close()
    return measured


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of all lies, by the nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
