"""Connections that say nothing, and connections that wait in a long fetch for records that do not come."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from bench.scale.found import Findings, cpu_us
from bench.scale.plan import Plan
from bench.scale.subject import Subject, subject, take_steady
from tests.compat import wire

PART = "connections"
IDLE, WAITING = "idle after ApiVersions and Metadata", "waiting in a fetch"
QUIET = "quiet"
WAIT_MS = 600_000

ONE_MORE = cpu_us("one more connection, with its ApiVersions and Metadata", 100.0)

API_VERSIONS = wire.request(wire.API_VERSIONS, 0, b"")
METADATA = wire.request(wire.METADATA, wire.METADATA_VERSION, struct.pack(">i", 1) + wire.text(QUIET))
FETCH = wire.fetch_request(QUIET, 0, 0, max_wait_ms=WAIT_MS)


def measure(plan: Plan, found: Findings, say: Callable[[str], None]) -> None:
    for line, last_words in ((IDLE, b""), (WAITING, FETCH)):
        with subject({"connections.max.idle.ms": str(WAIT_MS)}) as node:
            node.begin()
            node.create({QUIET: 1})
            standing: list[socket.socket] = []
            try:
                for size in plan.connections:
                    say(f"{size} connections, {line}")
                    more = size - len(standing)
                    before = node.cpu_s()
                    standing += [_connect(node, last_words) for _ in range(more)]
                    found.add(PART, line, ONE_MORE, size, (node.cpu_s() - before) / more * 1e6)
                    node.settle()
                    take_steady(found, node, PART, line, size, plan.idle_s, plan.latency_s, plan.rate_per_s)
            finally:
                for each in standing:
                    each.close()


def _connect(node: Subject, last_words: bytes) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", node.node.port), timeout=30)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for question in (API_VERSIONS, METADATA):
        made.sendall(question)
        (size,) = struct.unpack(">i", _exactly(made, 4))
        _exactly(made, size)
    if last_words:
        made.sendall(last_words)
    return made


def _exactly(source: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        chunk = source.recv(count - len(data))
        if not chunk:
            raise ConnectionError("the node closed the connection")
        data += chunk
    return bytes(data)
