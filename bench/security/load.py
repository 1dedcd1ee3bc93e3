"""The load of the suite: librdkafka for bytes and latencies, plain sockets for connections; alike for all brokers."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.compat import wire

RECORD_BYTES = 1_000
GIGABYTE = 1e9
API_VERSIONS = wire.request(wire.API_VERSIONS, 0, b"")
WAIT_S = 120

CpuSeconds = Callable[[], float]


@dataclass(frozen=True)
class Bytes:
    """CPU seconds of the broker for a gigabyte."""

    cpu_s_per_gb: float
    mb_per_s: float


def produce(settings: Mapping[str, Any], topic: str, megabytes: int, cpu_s: CpuSeconds) -> Bytes:
    record, count = os.urandom(RECORD_BYTES), megabytes * 1_000_000 // RECORD_BYTES
    producer = Producer(
        {
            **settings,
            "acks": 1,
            "linger.ms": 5,
            "batch.size": 262_144,
            "queue.buffering.max.messages": 50_000,
            "queue.buffering.max.kbytes": 65_536,
        }
    )
    producer.list_topics(topic, timeout=WAIT_S)
    began, used = time.perf_counter(), cpu_s()
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, record, partition=0)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(WAIT_S) == 0, "everything was taken"
    return _of(count * RECORD_BYTES, time.perf_counter() - began, cpu_s() - used)


def consume(settings: Mapping[str, Any], topic: str, megabytes: int, cpu_s: CpuSeconds) -> Bytes:
    count = megabytes * 1_000_000 // RECORD_BYTES
    consumer = Consumer({**settings, "group.id": "bench", "enable.auto.commit": False, "fetch.min.bytes": 1})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        consumer.consume(1, timeout=WAIT_S)
        began, used, read, ends = time.perf_counter(), cpu_s(), 1, time.perf_counter() + WAIT_S
        while read < count:
            assert time.perf_counter() < ends, f"only {read} of {count} records came"
            read += len(consumer.consume(min(10_000, count - read), timeout=1.0))
        return _of(count * RECORD_BYTES, time.perf_counter() - began, cpu_s() - used)
    finally:
        consumer.close()


def _of(size: int, seconds: float, cpu_s: float) -> Bytes:
    return Bytes(cpu_s / size * GIGABYTE, size / seconds / 1e6)


def latencies_ms(settings: Mapping[str, Any], topic: str, count: int, pause_s: float = 0.005) -> list[float]:
    """Of single records, each sent when the one before it is acknowledged and a moment has passed."""
    producer = Producer({**settings, "acks": 1, "linger.ms": 0})
    producer.list_topics(topic, timeout=WAIT_S)
    found = []
    for number in range(count + 50):
        began = time.perf_counter()
        producer.produce(topic, b"x" * 100, partition=0)
        assert producer.flush(WAIT_S) == 0
        if number >= 50:  # the first ones warm both sides up
            found.append((time.perf_counter() - began) * 1_000)
        time.sleep(pause_s)
    return sorted(found)


@dataclass(frozen=True)
class Connections:
    """What a connection costs: to make, and to have."""

    per_s: float
    cpu_ms_each: float
    rss_kb_each: float


def connect(
    port: int, context: ssl.SSLContext | None, count: int, cpu_s: CpuSeconds, rss_bytes: Callable[[], int]
) -> Connections:
    """So many one after the other, each with its first request answered; all stand until the last does."""
    standing = [_connected(port, context) for _ in range(20)]
    try:
        began, used, memory = time.perf_counter(), cpu_s(), rss_bytes()
        standing += [_connected(port, context) for _ in range(count)]
        seconds = time.perf_counter() - began
        return Connections(count / seconds, (cpu_s() - used) / count * 1_000, (rss_bytes() - memory) / count / 1_000)
    finally:
        for each in standing:
            each.close()


def _connected(port: int, context: ssl.SSLContext | None) -> socket.socket:
    made: socket.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if context is not None:
        made = context.wrap_socket(made, server_hostname="localhost")
    made.sendall(API_VERSIONS)
    (size,) = struct.unpack(">i", _exactly(made, 4))
    _exactly(made, size)
    return made


def _exactly(source: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        chunk = source.recv(count - len(data))
        assert chunk, "the broker closed the connection"
        data += chunk
    return bytes(data)
