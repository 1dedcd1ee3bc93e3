"""A broker that does nothing: it acknowledges produces without looking at them and fetches from a canned reply.

What a client reaches against it is the bound of client, loopback and this language's network loop together.
Speaks ApiVersions 0, Metadata 1-8, Produce 3-8, InitProducerId 0-1, Fetch 11, ListOffsets 5 and what a consumer of a
group needs (`null_groups`); every topic exists and has `--partitions` partitions. A fetch is answered with about a
megabyte for every partition that it names. A topic called `…-r100-b16000` has records of 100 bytes in batches of
16,000; any other has those of `--record-bytes` and `--batch-bytes`.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import signal
import struct
from typing import cast

import uvloop

from bench.null_groups import GROUP_APIS, GroupAnswers
from tests.compat.batches import Record, encode_batch
from tests.compat.wire import (
    API_VERSIONS,
    FETCH,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    METADATA,
    PRODUCE,
    Cursor,
    text,
)

SERVED = {
    PRODUCE: (3, 8),
    FETCH: (11, 11),
    LIST_OFFSETS: (5, 5),
    METADATA: (1, 8),
    API_VERSIONS: (0, 0),
    INIT_PRODUCER_ID: (0, 1),
    **GROUP_APIS,
}
UNSUPPORTED_VERSION = 35
FETCHED_BYTES = 1 << 20
HIGH_WATERMARK = 1 << 40
SHAPED_TOPIC = re.compile(r"-r(?P<record_bytes>\d+)-b(?P<batch_bytes>\d+)$")


class Canned:
    """About a megabyte of batches of one shape. Only their base offsets differ from one fetch to the next."""

    def __init__(self, record_bytes: int, batch_bytes: int) -> None:
        self._records = max(1, batch_bytes // record_bytes)
        batch = encode_batch([Record(b"x" * record_bytes)] * self._records, base_timestamp_ms=1_700_000_000_000)
        self._after_offset = batch[8:]
        self._batches = max(1, FETCHED_BYTES // len(batch))
        self.size = self._batches * len(batch)

    def at(self, offset: int) -> list[bytes]:
        """A consumer drops records below the offset that it asked for, so the first batch begins there."""
        out: list[bytes] = []
        for base in range(offset, offset + self._batches * self._records, self._records):
            out += [base.to_bytes(8, "big"), self._after_offset]
        return out


class Answers:
    """The replies, as functions of a request."""

    def __init__(self, host: str, port: int, partitions: int, canned: Canned) -> None:
        self._broker = struct.pack(">ii", 1, 1) + text(host) + struct.pack(">i", port) + text(None)
        self._partitions = partitions
        self._groups = GroupAnswers(host, port)
        self._canned: dict[str, Canned] = {}
        self._usual = canned

    def reply(self, frame: memoryview) -> list[bytes] | None:
        """The parts of the body for a request frame without its length, or None where none is wanted."""
        key, version, _correlation = struct.unpack_from(">hhi", frame)
        cursor = Cursor(frame, 8)
        cursor.text()
        if key == FETCH:
            return self._fetch(cursor)
        body = self._whole(key, version, cursor)
        return None if body is None else [body]

    def _whole(self, key: int, version: int, cursor: Cursor) -> bytes | None:
        if key == PRODUCE:
            return self._produce(cursor, version)
        if key in GROUP_APIS:
            return self._groups.reply(key, cursor)
        if key == METADATA:
            return self._metadata(cursor, version)
        if key == INIT_PRODUCER_ID:
            return struct.pack(">ihqh", 0, 0, 1, 0)
        if key == LIST_OFFSETS:
            return self._list_offsets(cursor)
        if key == API_VERSIONS:
            return self._api_versions(version)
        raise ValueError(f"the null broker does not serve key {key}")

    def _api_versions(self, version: int) -> bytes:
        # An unknown version is answered in the oldest form, and the client asks again.
        ranges = b"".join(struct.pack(">hhh", key, low, high) for key, (low, high) in SERVED.items())
        return struct.pack(">hi", UNSUPPORTED_VERSION if version else 0, len(SERVED)) + ranges

    def _metadata(self, cursor: Cursor, version: int) -> bytes:
        count = cursor.one("i")
        topics = [cursor.text() for _ in range(max(count, 0))]
        head = (struct.pack(">i", 0) if version >= 3 else b"") + self._broker
        head += (text("null-broker-cluster-id") if version >= 2 else b"") + struct.pack(">ii", 1, len(topics))
        epoch = struct.pack(">i", 0) if version >= 7 else b""
        offline = struct.pack(">i", 0) if version >= 5 else b""
        partitions = b"".join(
            struct.pack(">hii", 0, index, 1) + epoch + struct.pack(">iiii", 1, 1, 1, 1) + offline
            for index in range(self._partitions)
        )
        operations = struct.pack(">i", -2147483648) if version >= 8 else b""
        tail = struct.pack(">bi", 0, self._partitions) + partitions + operations
        body = b"".join(struct.pack(">h", 0) + text(name) + tail for name in topics)
        return head + body + operations

    def _produce(self, cursor: Cursor, version: int) -> bytes | None:
        cursor.text()
        acks, _timeout_ms, topics = cursor.take("hii")
        log_start = struct.pack(">q", 0) if version >= 5 else b""
        errors = struct.pack(">ih", 0, -1) if version >= 8 else b""
        out = [struct.pack(">i", topics)]
        for _ in range(topics):
            name, count = cursor.text(), cursor.one("i")
            out += [text(name), struct.pack(">i", count)]
            for _ in range(count):
                out += [struct.pack(">ihqq", cursor.one("i"), 0, 0, -1), log_start, errors]
                cursor.blob()
        return b"".join(out) + struct.pack(">i", 0) if acks else None

    def _fetch(self, cursor: Cursor) -> list[bytes]:
        cursor.take("iiiibii")
        topics = cursor.one("i")
        # Session 0: the client goes on without one and names all that it wants in every request.
        out = [struct.pack(">ihii", 0, 0, 0, topics)]
        for _ in range(topics):
            name, count = cursor.text(), cursor.one("i")
            canned = self._canned_of(name or "")
            out.append(text(name) + struct.pack(">i", count))
            for _ in range(count):
                index, _epoch, offset, _start, _bytes_max = cursor.take("iiqqi")
                ends = (HIGH_WATERMARK, HIGH_WATERMARK, 0, 0, -1)
                out.append(struct.pack(">ihqqqiii", index, 0, *ends, canned.size))
                out += canned.at(offset)
        return out

    def _canned_of(self, topic: str) -> Canned:
        if topic not in self._canned:
            shape = SHAPED_TOPIC.search(topic)
            self._canned[topic] = (
                Canned(int(shape["record_bytes"]), int(shape["batch_bytes"])) if shape else self._usual
            )
        return self._canned[topic]

    def _list_offsets(self, cursor: Cursor) -> bytes:
        cursor.take("ib")
        out = [struct.pack(">i", 0)]
        topics = cursor.one("i")
        out.append(struct.pack(">i", topics))
        for _ in range(topics):
            name, count = cursor.text(), cursor.one("i")
            out += [text(name), struct.pack(">i", count)]
            for _ in range(count):
                index, _epoch, _timestamp = cursor.take("iiq")
                out.append(struct.pack(">ihqqi", index, 0, -1, 0, 0))
        return b"".join(out)


class Connection(asyncio.BufferedProtocol):
    """Cuts frames out of the stream and answers each at once."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._buffer = bytearray(1 << 20)
        self._filled = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._filled == len(self._buffer):
            # A frame larger than the buffer: no view of the old one is alive between callbacks, so it may grow.
            self._buffer.extend(bytes(len(self._buffer)))
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        at = 0
        out: list[bytes] = []
        with memoryview(self._buffer) as view:
            while self._filled - at >= 4:
                (size,) = struct.unpack_from(">i", view, at)
                if self._filled - at - 4 < size:
                    break
                self._answer(view[at + 4 : at + 4 + size], out)
                at += 4 + size
            rest = bytes(view[at : self._filled])
            view[: len(rest)] = rest
        self._filled -= at
        if out:
            self._transport.writelines(out)

    def _answer(self, frame: memoryview, out: list[bytes]) -> None:
        body = self._answers.reply(frame)
        if body is not None:
            out += [struct.pack(">i", 4 + sum(map(len, body))), bytes(frame[4:8]), *body]


async def serve(host: str, port: int, partitions: int, canned: Canned) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    answers = Answers(host, port, partitions, canned)
    server = await loop.create_server(lambda: Connection(answers), host, port)
    await stopped.wait()
    server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--record-bytes", type=int, default=1_000)
    parser.add_argument("--batch-bytes", type=int, default=16_000)
    given = parser.parse_args()
    canned = Canned(given.record_bytes, given.batch_bytes)
    uvloop.run(serve("127.0.0.1", given.port, given.partitions, canned))


if __name__ == "__main__":
    main()
