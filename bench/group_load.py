"""What groups cost a broker: heartbeats as fast as they go over one connection, and groups that nobody is in."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.brokers import Running
from tests.compat.processes import wait_for
from tests.compat.wire import Connection, Cursor, blob, connect, request, text

OFFSET_COMMIT, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, SYNC_GROUP, CONSUMER_HEARTBEAT = 8, 10, 11, 12, 14, 68
SESSION_MS = 30_000
DEPTH = 8
"""Requests in flight, so that the broker never waits for us."""


@dataclass(frozen=True)
class Cost:
    """What one request cost the broker, and how many it answered in a second."""

    cpu_us: float
    requests_per_s: float


def find_coordinator(connection: Connection, group: str) -> None:
    """Returns when the group has a coordinator; the first question makes the topic of offsets."""

    def found() -> bool:
        return connection.call(request(FIND_COORDINATOR, 0, text(group))).one("h") == 0

    wait_for(f"the coordinator of {group}", found, timeout_s=60, pause_s=0.05)


def classic_heartbeat(connection: Connection, group: str) -> bytes:
    """Joins a classic group alone and returns the heartbeat of its member."""
    protocols = struct.pack(">i", 1) + text("range") + blob(b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
    body = text(group) + struct.pack(">i", SESSION_MS) + text("") + text("consumer") + protocols
    joined = connection.call(request(JOIN_GROUP, 0, body))
    _fine(joined, "JoinGroup")
    generation = joined.one("i")
    joined.text()
    joined.text()
    member = joined.text() or ""
    body = text(group) + struct.pack(">i", generation) + text(member)
    synced = connection.call(request(SYNC_GROUP, 0, body + struct.pack(">i", 1) + text(member) + blob(b"")))
    _fine(synced, "SyncGroup")
    return request(HEARTBEAT, 0, body)


def consumer_heartbeat(connection: Connection, group: str, topic: str) -> bytes:
    """Joins a group of the consumer protocol alone and returns the heartbeat of a member with nothing to say."""
    names = b"\x02" + _compact(topic)
    joined = connection.call(_flexible(_heartbeat_body(group, "", 0, SESSION_MS, names, b"\x01")))
    member, epoch = _consumer_reply(joined)
    steady = _flexible(_heartbeat_body(group, member, epoch, -1, b"\x00", b"\x00"))
    _consumer_reply(connection.call(steady))
    return steady


def _heartbeat_body(group: str, member: str, epoch: int, timeout_ms: int, names: bytes, owned: bytes) -> bytes:
    nothing = b"\x00"
    head = _compact(group) + _compact(member) + struct.pack(">i", epoch) + nothing + nothing
    return head + struct.pack(">i", timeout_ms) + names + nothing + owned + nothing


def _flexible(body: bytes) -> bytes:
    return request(CONSUMER_HEARTBEAT, 0, b"\x00" + body)  # the head of a flexible request ends with its tags


def _compact(value: str) -> bytes:
    data = value.encode()
    assert len(data) < 127
    return bytes([len(data) + 1]) + data


def _consumer_reply(reply: Cursor) -> tuple[str, int]:
    reply.take("b")  # the tags of the head
    reply.take("i")
    _fine(reply, "ConsumerGroupHeartbeat")
    _compact_text(reply)
    return _compact_text(reply), reply.one("i")


def _compact_text(reply: Cursor) -> str:
    size = reply.one("B")
    return bytes(reply.take("B" * (size - 1))).decode() if size else ""


def _fine(reply: Cursor, what: str) -> None:
    error = reply.one("h")
    if error:
        raise AssertionError(f"{what} was refused with error {error}")


def heartbeat_cost(broker: Running, group: str, join: Callable[[Connection, str], bytes], count: int) -> Cost:
    """Sends the same heartbeat `count` times, a few in flight, over the connection on which its member joined."""
    with connect(broker.bootstrap) as connection:
        find_coordinator(connection, group)
        frame = join(connection, group)
        before, started = broker.usage().cpu_s, time.perf_counter()
        connection.send(frame * DEPTH)
        first = bytes(connection.receive())
        for _ in range(count - DEPTH):
            connection.send(frame)
            if bytes(connection.receive()) != first:
                raise AssertionError("a heartbeat got another answer than the one before")
        for _ in range(DEPTH - 1):
            connection.receive()
        seconds = time.perf_counter() - started
        return Cost((broker.usage().cpu_s - before) / count * 1e6, count / seconds)


def commit_for_groups(broker: Running, topic: str, groups: int) -> None:
    """Makes groups that hold an offset and have no members."""
    with connect(broker.bootstrap) as connection:
        find_coordinator(connection, "lonely-0")
        for start in range(0, groups, 100):
            numbers = range(start, min(start + 100, groups))
            for number in numbers:
                connection.send(_commit(f"lonely-{number}", topic))
            for _ in numbers:
                reply = Cursor(connection.receive())
                reply.take("i")
                reply.text()
                reply.take("ii")
                _fine(reply, "OffsetCommit")


def _commit(group: str, topic: str) -> bytes:
    head = text(group) + struct.pack(">i", -1) + text("") + struct.pack(">q", -1)
    place = struct.pack(">iiq", 1, 0, 42) + text("")
    return request(OFFSET_COMMIT, 2, head + struct.pack(">i", 1) + text(topic) + place)
