"""A judge's own few words of the Kafka protocol, written by hand and independent of what is judged.

Only versions with fixed-width lengths are spoken (Produce 8, Fetch 11, ListOffsets 5, Metadata 1, CreateTopics 4),
which every 4.x broker serves. Requests are whole frames with a correlation id at bytes 8 to 12, so that a load
generator can encode once and patch that field alone.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.patience import within

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS = 0, 1, 2, 3, 18
CREATE_TOPICS, DELETE_TOPICS, INIT_PRODUCER_ID = 19, 20, 22
EARLIEST, LATEST = -2, -1
PRODUCE_VERSION, FETCH_VERSION, METADATA_VERSION = 8, 11, 1
CORRELATION_AT = 8

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class BrokerError(AssertionError):
    """The broker answered with an error code."""


# ---------------------------------------------------------------- writing


def text(value: str | None) -> bytes:
    """A nullable string with a 16-bit length."""
    if value is None:
        return b"\xff\xff"
    raw = value.encode()
    return struct.pack(">h", len(raw)) + raw


def blob(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def request(key: int, version: int, body: bytes, correlation_id: int = 0, client_id: str = "judge") -> bytes:
    """One framed request."""
    head = struct.pack(">hhi", key, version, correlation_id) + text(client_id)
    return struct.pack(">i", len(head) + len(body)) + head + body


def produce_request(
    topic: str,
    partition: int,
    batch: bytes,
    acks: int,
    timeout_ms: int = 30_000,
    transactional_id: str | None = None,
) -> bytes:
    return produce_many_request(topic, [(partition, batch)], acks, timeout_ms, transactional_id)


def produce_many_request(
    topic: str,
    batches: Sequence[tuple[int, bytes]],
    acks: int,
    timeout_ms: int = 30_000,
    transactional_id: str | None = None,
) -> bytes:
    """A Produce with one batch for each of several partitions of a topic."""
    parts = b"".join(struct.pack(">i", partition) + blob(batch) for partition, batch in batches)
    body = text(transactional_id) + struct.pack(">hi", acks, timeout_ms) + struct.pack(">i", 1) + text(topic)
    return request(PRODUCE, PRODUCE_VERSION, body + struct.pack(">i", len(batches)) + parts)


def fetch_request(
    topic: str,
    partition: int,
    offset: int,
    *,
    max_wait_ms: int = 500,
    min_bytes: int = 1,
    max_bytes: int = 52_428_800,
    partition_bytes_max: int = 1_048_576,
) -> bytes:
    """A Fetch of one partition without a session."""
    body = struct.pack(">iiiibii", -1, max_wait_ms, min_bytes, max_bytes, 0, 0, -1)
    body += struct.pack(">i", 1) + text(topic) + struct.pack(">i", 1)
    body += struct.pack(">iiqqi", partition, -1, offset, -1, partition_bytes_max)
    return request(FETCH, FETCH_VERSION, body + struct.pack(">i", 0) + text(""))


# ---------------------------------------------------------------- reading


class Cursor:
    """Reads fixed-width fields one after the other."""

    def __init__(self, data: bytes | memoryview, at: int = 0) -> None:
        self.data = memoryview(data)
        self.at = at

    def take(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return values

    def one(self, form: str) -> int:
        return self.take(form)[0]

    def text(self) -> str | None:
        length = self.one("h")
        return None if length < 0 else bytes(self._slice(length)).decode()

    def blob(self) -> memoryview | None:
        length = self.one("i")
        return None if length < 0 else self._slice(length)

    def _slice(self, length: int) -> memoryview:
        self.at += length
        return self.data[self.at - length : self.at]


class Connection:
    """A blocking connection that keeps requests and replies in step."""

    def __init__(self, host: str, port: int, timeout_s: float = 30) -> None:
        self.socket = socket.create_connection((host, port), timeout=within(timeout_s))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = self.socket.makefile("rb", buffering=1 << 18)

    def send(self, frame: bytes) -> None:
        self.socket.sendall(frame)

    def receive(self) -> memoryview:
        """The next reply without its length and correlation id."""
        head = self._reader.read(4)
        if len(head) < 4:
            raise ConnectionError("the broker closed the connection")
        (size,) = struct.unpack(">i", head)
        frame = self._reader.read(size)
        if len(frame) < size:
            raise ConnectionError("the broker closed the connection inside a reply")
        return memoryview(frame)[4:]

    def call(self, frame: bytes) -> Cursor:
        self.send(frame)
        return Cursor(self.receive())

    def close(self) -> None:
        self._reader.close()
        self.socket.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(bootstrap: str) -> Connection:
    host, _, port = bootstrap.rpartition(":")
    return Connection(host, int(port))


def answers_metadata(host: str, port: int) -> bool:
    """True when a broker there answers Metadata and names at least one broker."""
    try:
        with Connection(host, port, timeout_s=2) as connection:
            reply = connection.call(request(METADATA, METADATA_VERSION, struct.pack(">i", 0)))
            return reply.one("i") > 0
    except OSError:
        return False


def create_topic(
    bootstrap: str, name: str, partitions: int = 1, configs: dict[str, str] | None = None, timeout_ms: int = 60_000
) -> None:
    """Creates a topic with one replica and waits until its leaders are at work."""
    pairs = b"".join(text(key) + text(value) for key, value in (configs or {}).items())
    body = struct.pack(">i", 1) + text(name) + struct.pack(">ihi", partitions, 1, 0)
    body += struct.pack(">i", len(configs or {})) + pairs + struct.pack(">i?", timeout_ms, False)
    with connect(bootstrap) as connection:
        reply = connection.call(request(CREATE_TOPICS, 4, body))
        reply.take("ii")
        reply.text()
        error, message = reply.one("h"), reply.text()
        if error:
            raise BrokerError(f"creating {name}: error {error} {message or ''}")
    while not all_led(bootstrap, [name]):
        pass


def delete_topic(bootstrap: str, name: str, timeout_ms: int = 60_000) -> None:
    body = struct.pack(">i", 1) + text(name) + struct.pack(">i", timeout_ms)
    with connect(bootstrap) as connection:
        reply = connection.call(request(DELETE_TOPICS, 3, body))
        reply.take("ii")
        reply.text()
        error = reply.one("h")
        if error:
            raise BrokerError(f"deleting {name}: error {error}")


@dataclass(frozen=True)
class PartitionState:
    topic: str
    partition: int
    error: int
    leader: int


def partition_states(connection: Connection, topics: Sequence[str] | None = None) -> list[PartitionState]:
    """What Metadata says of the partitions of these topics, or of all. A topic with an error counts as a partition."""
    wanted = struct.pack(">i", -1 if topics is None else len(topics)) + b"".join(text(name) for name in topics or ())
    reply = connection.call(request(METADATA, METADATA_VERSION, wanted))
    for _ in range(reply.one("i")):
        reply.take("i")
        reply.text()
        reply.take("i")
        reply.text()
    reply.take("i")
    states = []
    for _ in range(reply.one("i")):
        topic_error, name = reply.one("h"), reply.text() or ""
        reply.take("b")
        partitions = reply.one("i")
        if topic_error:
            states.append(PartitionState(name, -1, topic_error, -1))
        for _ in range(partitions):
            error, index, leader = reply.take("hii")
            for _ in range(2):
                reply.take("i" * reply.one("i"))
            states.append(PartitionState(name, index, error, leader))
    return states


def all_led(bootstrap: str, topics: Sequence[str] | None = None) -> bool:
    """True when every partition of these topics, or of all, has a leader that acts as one.

    A broker that starts or has just made a topic needs a moment for that.

    ListOffsets is what asks a leader: a fetch is answered by followers too.
    """
    with connect(bootstrap) as connection:
        states = partition_states(connection, topics)
        if any(state.error or state.leader < 0 for state in states):
            return False
        asked = b"".join(text(state.topic) + struct.pack(">iiiq", 1, state.partition, -1, EARLIEST) for state in states)
        reply = connection.call(request(LIST_OFFSETS, 5, struct.pack(">ibi", -1, 0, len(states)) + asked))
        reply.take("i")
        return not any(_partition_errors(reply) for _ in range(reply.one("i")))


def _partition_errors(reply: Cursor) -> bool:
    reply.text()
    errors = [reply.take("ihqqi")[1] for _ in range(reply.one("i"))]
    return any(errors)


@dataclass(frozen=True)
class Produced:
    error: int
    base_offset: int
    log_append_time_ms: int


def produce_reply(reply: Cursor) -> Produced:
    """What a Produce of one partition was answered."""
    reply.take("i")
    reply.text()
    reply.take("ii")
    error, base_offset, log_append_time_ms = reply.take("hqq")
    return Produced(error, base_offset, log_append_time_ms)


def produce(
    connection: Connection,
    topic: str,
    partition: int,
    batch: bytes,
    acks: int = -1,
    transactional_id: str | None = None,
) -> Produced:
    frame = produce_request(topic, partition, batch, acks, transactional_id=transactional_id)
    produced = produce_reply(connection.call(frame))
    if produced.error:
        raise BrokerError(f"producing to {topic}-{partition}: error {produced.error}")
    return produced


@dataclass(frozen=True)
class Fetched:
    high_watermark: int
    last_stable_offset: int
    log_start: int
    records: memoryview


def fetch_reply(reply: Cursor) -> Fetched:
    """What a Fetch of one partition was answered."""
    _throttle_ms, error, _session, topics = reply.take("ihii")
    if error or not topics:
        raise BrokerError(f"fetch: error {error}, {topics} topics")
    reply.text()
    reply.take("ii")
    error, high_watermark, last_stable_offset, log_start = reply.take("hqqq")
    if error:
        raise BrokerError(f"fetch: partition error {error}")
    reply.take("qq" * max(reply.one("i"), 0))
    reply.take("i")
    return Fetched(high_watermark, last_stable_offset, log_start, reply.blob() or memoryview(b""))


# ---------------------------------------------------------------- stored batches


@dataclass(frozen=True)
class StoredBatch:
    """The header of a record batch as it lies in the log."""

    base_offset: int
    leader_epoch: int
    magic: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def codec(self) -> str:
        return CODECS[self.attributes & 7]

    @property
    def log_append_time(self) -> bool:
        return bool(self.attributes & 8)


def batches(records: bytes | memoryview) -> Iterator[StoredBatch]:
    """The headers of whole batches; a cut batch at the end is left out, as a fetch may end inside one."""
    at = 0
    while at + 61 <= len(records):
        base_offset, length, epoch, magic = struct.unpack_from(">qiib", records, at)
        if at + 12 + length > len(records):
            return
        attributes, delta, base_ms, max_ms, pid, pid_epoch, sequence, count = struct.unpack_from(
            ">hiqqqhii", records, at + 21
        )
        yield StoredBatch(
            base_offset, epoch, magic, attributes, delta, base_ms, max_ms, pid, pid_epoch, sequence, count
        )
        at += 12 + length


def stored_batches(bootstrap: str, topic: str, partition: int = 0, offset: int = 0) -> list[StoredBatch]:
    """Every batch from an offset to the high watermark, as the broker stores it."""
    found: list[StoredBatch] = []
    with connect(bootstrap) as connection:
        while True:
            frame = fetch_request(topic, partition, offset, max_wait_ms=0, min_bytes=0)
            fetched = fetch_reply(connection.call(frame))
            found += batches(fetched.records)
            if found:
                offset = found[-1].base_offset + found[-1].last_offset_delta + 1
            if offset >= fetched.high_watermark or not len(fetched.records):
                return found
