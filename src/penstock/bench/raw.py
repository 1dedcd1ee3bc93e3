"""Raw load: requests encoded once, pipelined over a few connections, only correlation ids patched.

The client side must cost as little as it can, for it often shares the machine with the broker.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.bench.lanes import REPLY_TIMEOUT_S, Lane, Reader
from penstock.client.errors import TimedOutWaiting
from penstock.kernels import Record, scan_batches
from penstock.protocol.batch import CODECS, build_batch

__all__ = ["Lane", "Load", "fetch_load", "latencies_ms", "make_batch", "payload", "percentile", "produce_load"]

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
    now_ms = int(time.time() * 1000)
    records = [Record(seed, now_ms, None, payload(record_bytes, seed)) for seed in range(count)]
    return build_batch(records, codec=CODECS[codec]), count


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
    partitions_a_request: int = 1,
) -> Load:
    """As many produces as the broker takes: `lanes` connections, `depth` requests in flight on each.

    A lane has `partitions_a_request` partitions of its own, and each of its requests a batch for every one of them.
    Of a cluster `bootstrap` names the leader of each lane's partitions.
    """
    opened = _lanes(bootstrap, topic, batch, acks, lanes, partitions_a_request)
    open_lanes = {lane.socket.fileno(): lane for lane in opened}
    request_bytes = len(batch) * partitions_a_request
    poller = select.epoll()
    try:
        for number, lane in open_lanes.items():
            poller.register(number, select.EPOLLIN)
            for _ in range(depth):
                lane.send()
        started = time.perf_counter()
        # Replies end the measurement, not sends: what is still in flight then has not been done.
        done, budget = 0, bytes_max // request_bytes
        while time.perf_counter() - started < seconds and done < budget:
            for number, _events in _heard(poller, REPLY_TIMEOUT_S, topic):
                lane = open_lanes[number]
                completed = lane.receive()
                done += completed
                for _ in range(completed):
                    lane.send()
        elapsed = time.perf_counter() - started
        return Load(elapsed, done, done * records * partitions_a_request, done * request_bytes)
    finally:
        poller.close()
        _close(opened)


def _heard(poller: select.epoll, timeout_s: float, topic: str) -> list[tuple[int, int]]:
    heard = poller.poll(timeout_s)
    if not heard:
        raise TimedOutWaiting(f"no answer to a produce within {timeout_s:.0f} s", where=topic)
    return heard


def _lanes(
    bootstrap: str | Sequence[str], topic: str, batch: bytes, acks: int, count: int, partitions_a_request: int = 1
) -> list[Lane]:
    leaders = [bootstrap] * count if isinstance(bootstrap, str) else bootstrap
    opened: list[Lane] = []
    try:
        for index in range(count):
            first = index * partitions_a_request
            opened.append(Lane(leaders[index], topic, first, batch, acks, partitions_a_request=partitions_a_request))
    except BaseException:
        _close(opened)
        raise
    return opened


def _close(lanes: Sequence[Lane]) -> None:
    for lane in lanes:
        lane.close()


def fetch_load(bootstrap: str, topic: str, *, seconds: float, bytes_max: int, partition: int = 0) -> Load:
    """Reads a partition over and over, one request at a time as a consumer does, walking batch headers alone."""
    requests = records = received = offset = 0
    with Reader(bootstrap, topic, partition) as reader:
        started = time.perf_counter()
        while time.perf_counter() - started < seconds and received < bytes_max:
            fetched = reader.fetch(offset)
            requests += 1
            received += len(fetched.records)
            headers = [header for _position, header in scan_batches(fetched.records)]
            records += sum(header.record_count for header in headers)
            offset = headers[-1].last_offset + 1 if headers else 0
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
        started = heard_at = time.perf_counter() + 0.01
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
            heard = poller.poll(0 if left_s < 0.002 else left_s - 0.001)
            for number, _events in heard:
                replies = by_number[number].receive()
                at = time.perf_counter()
                measured += [(at - due[number].popleft()) * 1000 for _ in range(replies)]
            if heard or sent == len(measured):
                heard_at = now
            elif now - heard_at > REPLY_TIMEOUT_S:
                raise TimedOutWaiting(f"no answer to a produce within {REPLY_TIMEOUT_S:.0f} s", where=topic)
    finally:
        poller.close()
        _close(open_lanes)
    return measured


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of all lies, by the nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
