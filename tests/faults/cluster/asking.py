"""Everything that clients and followers can ask of one node about a partition, compared with another replica's files.

A file that nobody opens cannot be judged. So the node leads the partition and every batch is read from it (whole, in
small pieces, and by those who read committed records only), every time is searched, a producer that was known before
repeats what it sent, and another replica copies everything anew.
"""

from __future__ import annotations

import logging
import struct
import time
from bisect import bisect_left
from collections import deque
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from penstock.blocking import Admin
from penstock.model.ids import TopicPartition
from penstock.protocol.batch import read_records
from tests.compat.batches import Record, encode_batch
from tests.compat.cluster import ClusterNode, Partition
from tests.compat.processes import wait_for
from tests.compat.wire import (
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    BrokerError,
    Connection,
    Cursor,
    connect,
    fetch_reply,
    fetch_request,
    produce_reply,
    produce_request,
    request,
    text,
)
from tests.faults.cluster.history import History, Outcome, Send, value_of
from tests.faults.cluster.replicas import stored
from tests.faults.cluster.watched import WatchedCluster

log = logging.getLogger(__name__)

# Less than two batches, so that the node has to find where each of them ends.
PIECE_BYTES = 150
# How many batches at an end of a segment are asked for one by one, and how many times are searched.
NEAR, TIMES_MAX = 40, 80
_MAX_TIMESTAMP_AT = 35
_RETRIABLE = frozenset({5, 6, 9, 78})
"""Errors of a node that is about to lead: it is asked again."""


class Batch(NamedTuple):
    base: int
    end: int
    data: bytes

    @property
    def max_timestamp(self) -> int:
        found: int = struct.unpack_from(">q", self.data, _MAX_TIMESTAMP_AT)[0]
        return found

    def times(self) -> list[tuple[int, int]]:
        """(timestamp, offset) of each record."""
        return [(record.timestamp, record.offset) for record in read_records(self.data)]


def committed_of(other: Path, topic: str, partition: int, end: int) -> list[Batch]:
    """What another replica has in its files, up to `end`."""
    found = [Batch(*batch) for batch in stored(other / f"{topic}-{partition}", growing=True)]
    return [batch for batch in found if batch.end <= end]


class Damaged(AssertionError):
    """The node gave an error that tells a reader that something is broken; nothing wrong passed as right."""


class BadChecksum(Damaged):
    """The node gave bytes that say themselves that they are not what was written."""


class Asking:
    """Asks `node` about one partition of one topic."""

    def __init__(self, cluster: WatchedCluster, node: ClusterNode, topic: str, partition: int) -> None:
        self.cluster, self.node, self.topic, self.partition = cluster, node, topic, partition

    def lead(self) -> None:
        """The node is the preferred leader and becomes the leader."""
        place = TopicPartition(self.topic, self.partition)

        def led() -> bool:
            with Admin(bootstrap_servers=self.cluster.bootstrap) as admin:
                admin.elect_leaders([place])
            return self.cluster.leader_of(self.topic, self.partition) == self.node.node_id

        wait_for(f"node {self.node.node_id} to lead {self.topic}-{self.partition}", led, timeout_s=60, pause_s=0.2)

    # -- reading

    def read(self, truth: list[Batch], segments: list[int]) -> None:
        """Every batch, in large pieces; those near both ends of segments in small ones too, and from anywhere."""
        with connect(self.node.address) as link:
            self._read_on(link, truth, 1 << 20)
            for first, end in zip(segments, [*segments[1:], truth[-1].end], strict=True):
                inside = [batch for batch in truth if first <= batch.base and batch.end <= end]
                for some in (inside[:NEAR], inside[-NEAR:]):
                    self._read_on(link, some, PIECE_BYTES)
                    self._read_on(link, some, 1 << 20, committed=True)
                for batch in inside[:: max(1, len(inside) // NEAR)]:
                    self._read_on(link, [batch], PIECE_BYTES)

    def _read_on(self, link: Connection, batches: list[Batch], piece_bytes: int, *, committed: bool = False) -> None:
        """Goes through consecutive batches; each answer begins with the next and has no other."""
        at = 0
        while at < len(batches):
            found = self._fetch(link, batches[at].base, piece_bytes, committed=committed)
            for batch in _whole(found):
                if at == len(batches):
                    break
                if batch != batches[at].data:
                    raise self._differs(batches[at], batch)
                at += 1

    def _fetch(self, link: Connection, offset: int, piece_bytes: int, *, committed: bool) -> memoryview:
        frame = fetch_request(self.topic, self.partition, offset, max_wait_ms=0, partition_bytes_max=piece_bytes)
        if committed:
            frame = _reading_committed(frame)
        reply = link.call(frame)
        if committed:
            void = _aborted(reply)
            assert not void, f"nobody has aborted a transaction, and a fetch of offset {offset} tells of {void}"
        try:
            found = fetch_reply(reply).records
        except BrokerError as refusal:
            raise Damaged(f"a fetch of offset {offset}: {refusal}") from refusal
        if not len(_whole(found)):
            raise Damaged(f"a fetch of offset {offset} brings no whole batch: {bytes(found)[:61].hex()}")
        return found

    def _differs(self, expected: Batch, found: bytes) -> AssertionError:
        words = f"at offset {expected.base} is {found[:70].hex()} and not {expected.data[:70].hex()}"
        return AssertionError(words) if _sound(found) else BadChecksum(words)

    # -- times

    def search(self, truth: list[Batch], segments: list[int]) -> None:
        """Times around those of batches near both ends of segments, and the newest."""
        records = [record for batch in truth for record in batch.times()]
        newest = [*accumulate((timestamp for timestamp, _ in records), max)]
        ends = [segments[0], *segments[-2:], truth[-1].end]
        near = [batch for batch in truth if any(abs(batch.base - end) <= TIMES_MAX // 2 for end in ends)]
        times = sorted({batch.max_timestamp + step for batch in near for step in (-1, 0, 1)})
        with connect(self.node.address) as link:
            for wanted in times[:: max(1, len(times) // TIMES_MAX)]:
                slot = bisect_left(newest, wanted)
                if slot < len(records):
                    found = self._list(link, wanted)
                    assert found == records[slot], (
                        f"the first record at {wanted} or later is {records[slot]}, not {found}"
                    )
        # None is told while the newest is not committed yet.
        told = wait_for("the newest record to be told", self._list_newest, timeout_s=30, pause_s=0.1)
        assert told[0] >= newest[-1], f"the newest record is told as {told}, there is {newest[-1]}"

    def _list(self, link: Connection, timestamp: int) -> tuple[int, int]:
        body = struct.pack(">ibi", -1, 0, 1) + text(self.topic)
        reply = link.call(request(LIST_OFFSETS, 5, body + struct.pack(">iiiq", 1, self.partition, -1, timestamp)))
        reply.take("ii")
        reply.text()
        _, _, error, found, offset, _ = reply.take("iihqqi")
        if error:
            raise Damaged(f"a search for time {timestamp}: error {error}")
        return found, offset

    def _list_newest(self) -> tuple[int, int] | None:
        place = TopicPartition(self.topic, self.partition)
        with Admin(bootstrap_servers=self.node.address) as admin:
            found = admin.offsets({place: "max_timestamp"}).checked()[place]
        return (found.timestamp, found.offset) if found.offset >= 0 else None

    # -- another replica

    def be_copied(self, by: ClusterNode, nodes: list[ClusterNode]) -> None:
        """A replica leaves and comes back: everything it has then came from the leader."""
        place = TopicPartition(self.topic, self.partition)
        replicas = [node.node_id for node in nodes]
        without = [each for each in replicas if each != by.node_id]
        directory = by.data_dir / f"{self.topic}-{self.partition}"
        self._place(place, without)
        wait_for(f"{directory} to go", lambda: not directory.exists(), timeout_s=30)
        self._place(place, replicas)
        self.cluster.wait_until_whole()

    def _place(self, place: TopicPartition, replicas: list[int]) -> None:
        with Admin(bootstrap_servers=self.cluster.bootstrap) as admin:
            admin.alter_partition_reassignments({place: replicas}).checked()
        last: list[Partition] = []

        def moved() -> bool:
            last[:] = [each for each in self.cluster.partitions(self.topic) if each.index == place.partition]
            return any(set(each.replicas) == set(replicas) == set(each.isr) for each in last)

        try:
            wait_for(f"{place} to be at {replicas}", moved, timeout_s=60, pause_s=0.05)
        except AssertionError as failure:
            raise Damaged(f"{failure}: {last}") from failure


class Repeater:
    """An idempotent producer of one partition that sends its newest batches again: they were appended once."""

    KEPT = 5

    def __init__(self, topic: str, partition: int, history: History) -> None:
        self.topic, self.partition, self.history = topic, partition, history
        self.name = "repeater"
        self._producer: tuple[int, int] | None = None
        self._number = 0
        self._sent: deque[tuple[bytes, int]] = deque(maxlen=self.KEPT)

    @property
    def end(self) -> int:
        """Behind its newest batch."""
        return self._sent[-1][1] + 1

    def send(self, address: str, count: int = KEPT) -> None:
        """Sends new values; each is acknowledged."""
        with connect(address) as link:
            if self._producer is None:
                self._producer = _new_producer(link)
            for _ in range(count):
                batch = self._batch(self._number)
                offset = self._produce(link, batch)
                self.history.sends.append(Send(self.name, self.partition, self._number, Outcome.ACKED, offset))
                self._sent.append((batch, offset))
                self._number += 1

    def repeat(self, address: str) -> None:
        """What was sent last is sent again, and is where it was."""
        with connect(address) as link:
            for batch, offset in self._sent:
                found = self._produce(link, batch)
                assert found == offset, f"a batch that was appended at {offset} is appended again, at {found}"

    def _batch(self, number: int) -> bytes:
        assert self._producer is not None
        producer_id, epoch = self._producer
        return encode_batch(
            [Record(value_of(self.name, number).encode())], base_timestamp_ms=int(time.time() * 1000),
            producer_id=producer_id, producer_epoch=epoch, base_sequence=number,
        )  # fmt: skip

    def _produce(self, link: Connection, batch: bytes) -> int:
        found = -1

        def taken() -> bool:
            nonlocal found
            reply = produce_reply(link.call(produce_request(self.topic, self.partition, batch, acks=-1)))
            assert reply.error == 0 or reply.error in _RETRIABLE, f"producing again: error {reply.error}"
            found = reply.base_offset
            return reply.error == 0

        wait_for("a batch to be taken", taken, timeout_s=30, pause_s=0.1)
        return found


def _new_producer(link: Connection) -> tuple[int, int]:
    found: list[int] = []

    def told() -> bool:
        reply: Cursor = link.call(request(INIT_PRODUCER_ID, 1, text(None) + struct.pack(">i", 60_000)))
        _throttle, error, producer_id, epoch = reply.take("ihqh")
        found[:] = [producer_id, epoch]
        return error == 0

    wait_for("a producer id", told, timeout_s=30, pause_s=0.1)
    return found[0], found[1]


def _whole(records: memoryview) -> list[bytes]:
    found, at = [], 0
    while at + 61 <= len(records):
        (length,) = struct.unpack_from(">i", records, at + 8)
        if length < 49 or at + 12 + length > len(records):
            break
        found.append(bytes(records[at : at + 12 + length]))
        at += 12 + length
    return found


def _sound(batch: bytes) -> bool:
    import crc32c

    found: int = struct.unpack_from(">I", batch, 17)[0]
    return found == crc32c.crc32c(batch[21:])


def _aborted(reply: Cursor) -> list[tuple[int, int]]:
    """(producer id, first offset) of what a reader of committed records is told to leave out."""
    found = Cursor(reply.data)
    found.take("ihii")
    found.text()
    found.take("iihqqq")
    return [(found.one("q"), found.one("q")) for _ in range(max(0, found.one("i")))]


def _reading_committed(frame: bytes) -> bytes:
    """The same fetch by a reader of committed records."""
    at = 4 + 8 + len(text("judge")) + 16
    assert frame[at] == 0, "the isolation level comes behind four numbers"
    return frame[:at] + b"\1" + frame[at + 1 :]
