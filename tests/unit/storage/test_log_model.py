"""A log against a plain list under every sequence of appends, reads, cuts, retention, reopening and crashes."""

from __future__ import annotations

from dataclasses import dataclass, field

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.kernels import read_header, scan_batches
from penstock.model.ids import Epoch, Millis, Offset, TopicPartition, Uuid
from penstock.storage.log import Log
from penstock.storage.settings import PlainLogSettings
from penstock.testing.memory_files import MemoryFiles
from tests.properties import examples

from .batches import batch, header_of

NAME = TopicPartition("orders", 0)
TOPIC_ID = Uuid(b"\x07" * 16)
DIRECTORY = "/data/orders-0"
SETTINGS = PlainLogSettings(segment_bytes=2_000, index_interval_bytes=300, retention_bytes=5_000, retention_ms=50_000)


@dataclass
class Model:
    """What must be readable: (base, last, bytes) of each batch, and the ends."""

    batches: list[tuple[int, int, bytes]] = field(default_factory=list)
    start: int = 0
    next: int = 0
    flushed: int = 0


class LogMachine(RuleBasedStateMachine):
    @initialize()
    def create(self) -> None:
        self.files = MemoryFiles()
        self.files.makedirs("/data")
        self.files.sync_dir("/")
        self.now = Millis(1_000)
        self.epoch = 0
        self.model = Model()
        self.log = Log.create(self.files, DIRECTORY, NAME, TOPIC_ID, SETTINGS, now=self.now)

    @rule(count=st.integers(1, 5), bulk=st.integers(0, 300), wait_ms=st.integers(0, 500))
    def append(self, count: int, bulk: int, wait_ms: int) -> None:
        self.now = Millis(self.now + wait_ms)
        data = batch(count, value=b"v" * bulk, timestamp=self.now)
        ticket = self.log.append(data, header_of(data), epoch=Epoch(self.epoch), now=self.now)
        assert ticket.base == self.model.next
        self.model.batches.append((ticket.base, ticket.end - 1, bytes(data)))
        self.model.next = ticket.end
        self.log.commit_to(self.log.next)

    @rule(counts=st.lists(st.integers(1, 3), min_size=1, max_size=6), gap=st.integers(0, 4))
    def replicate(self, counts: list[int], gap: int) -> None:
        base = self.model.next + gap
        data = bytearray()
        for count in counts:
            made = batch(count, base=base, epoch=self.epoch, timestamp=self.now)
            self.model.batches.append((base, base + count - 1, bytes(made)))
            data += made
            base += count
        self.log.append_exact(data, now=self.now)
        self.model.next = base
        self.log.commit_to(self.log.next)

    @rule()
    def new_epoch(self) -> None:
        self.epoch += 1
        self.log.epochs.assign(Epoch(self.epoch), self.log.next)

    @rule(data=st.data(), max_bytes=st.integers(1, 3_000), at_least_one=st.booleans())
    def read(self, data: st.DataObject, max_bytes: int, at_least_one: bool) -> None:
        offset = data.draw(st.integers(self.log.log_start, self.log.written))
        limit = data.draw(st.integers(offset, self.log.written))
        read = self.log.read(offset, max_bytes=max_bytes, limit=limit, at_least_one=at_least_one)
        got = b"".join(span.read() for span in read.spans)
        assert len(got) == read.size
        wanted = [entry for entry in self.model.batches if entry[1] >= offset]
        whole = b"".join(entry[2] for entry in wanted)
        assert whole.startswith(got)
        found = [header for _, header in scan_batches(got)]
        assert sum(header.size for header in found) == len(got)
        assert all(header.last_offset < limit for header in found)
        if not got and wanted and wanted[0][1] < limit:
            assert not at_least_one
            assert len(wanted[0][2]) > max_bytes
        if len(found) > 1 or not at_least_one:
            assert len(got) <= max_bytes

    @rule(max_bytes=st.integers(100, 3_000))
    def follow(self, max_bytes: int) -> None:
        """A consumer that asks for what comes after what it got sees everything, in order."""
        offset = self.log.log_start
        seen = b""
        while offset < self.log.written:
            read = self.log.read(offset, max_bytes=max_bytes, limit=self.log.written, at_least_one=True)
            if not read.size:
                break
            seen += read.spans[0].read()
            offset = read.end
        assert seen == b"".join(entry[2] for entry in self.model.batches if entry[1] >= self.log.log_start)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        to = data.draw(st.integers(self.log.log_start, self.log.next))
        self.log.truncate(Offset(to), now=self.now)
        to = min([to, *(entry[0] for entry in self.model.batches if entry[0] < to <= entry[1])])
        self.model.batches = [entry for entry in self.model.batches if entry[1] < to]
        self.model.start = min(self.model.start, to)
        self.model.next = min(self.model.next, to)
        self.model.flushed = min(self.model.flushed, to)
        self.epoch += 1

    @rule(data=st.data())
    def trim(self, data: st.DataObject) -> None:
        to = data.draw(st.integers(self.log.log_start, self.log.committed))
        self.log.advance_start(Offset(to))
        self.model.start = max(self.model.start, to)

    @rule(wait_ms=st.sampled_from([0, 10_000, 60_000]))
    def retain(self, wait_ms: int) -> None:
        self.now = Millis(self.now + wait_ms)
        before = self.log.size_bytes
        gone = self.log.retain(self.now)
        self.log.purge(self.now)
        if gone:
            self.model.start = max(self.model.start, self.log.segments[0].base)
            assert self.log.size_bytes < before
        self.model.batches = [entry for entry in self.model.batches if entry[0] >= self.log.segments[0].base]

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.model.flushed = self.model.next

    @rule()
    def restart(self) -> None:
        self.log.close()
        self.model.flushed = self.model.next
        self._open(clean=True)
        assert self.log.scanned_bytes == 0

    @rule()
    def kill(self) -> None:
        self.files.kill()
        self._open(clean=False)
        assert self.log.next == self.model.next or self._gap_at_end()

    @rule(data=st.data(), keep_names=st.booleans())
    def power_cut(self, data: st.DataObject, keep_names: bool) -> None:
        self.files.crash(lambda _, size: data.draw(st.integers(0, size)), keep_names=keep_names)
        if not self.files.exists(DIRECTORY):
            assert self.model.flushed == 0
            self.model = Model()
            self.log = Log.create(self.files, DIRECTORY, NAME, TOPIC_ID, SETTINGS, now=self.now)
            return
        start = self.model.start
        self._open(clean=False)
        end = self.log.next
        flushed_end = max((entry[1] + 1 for entry in self.model.batches if entry[1] < self.model.flushed), default=0)
        assert end >= flushed_end, "what was flushed is still there"
        # Cut bytes may come back when the cut itself was not synced; they were part of the log once.
        held = self._everything()
        low, high = max(self.log.log_start, start), self.model.flushed
        flushed = [entry for entry in self.model.batches if low <= entry[1] < high]
        assert flushed == [entry for entry in held if low <= entry[1] < high]
        self.model.batches = held
        self.model.next = end
        self.model.start = self.log.log_start
        self.model.flushed = min(self.model.flushed, end)

    def _gap_at_end(self) -> bool:
        """A truncation into a batch leaves the end above the last batch; nothing on disk remembers that."""
        last = max((entry[1] + 1 for entry in self.model.batches), default=0)
        last = max(last, self.log.segments[-1].base)
        if self.log.next == max(last, self.log.log_start):
            self.model.next = self.log.next
            self.model.flushed = min(self.model.flushed, self.model.next)
            return True
        return False

    def _everything(self) -> list[tuple[int, int, bytes]]:
        entries = []
        for segment in self.log.segments:
            data = segment.file.pread(segment.size, 0)
            for position, header in scan_batches(data):
                entries.append((header.base_offset, header.last_offset, data[position : position + header.size]))
        return entries

    def _open(self, *, clean: bool) -> None:
        self.log = Log.open(
            self.files,
            DIRECTORY,
            NAME,
            TOPIC_ID,
            SETTINGS,
            now=self.now,
            clean=clean,
            recovery_point=self.model.flushed,
            log_start=self.model.start,
            high_watermark=self.model.next,
        )
        if self.log.log_start < self.model.start:
            assert self.log.next < self.model.start, "what was trimmed shows again only when the end is lost"
            self.model.start = self.log.log_start
        if clean and self.log.next != self.model.next:
            assert self._gap_at_end()
        self.log.commit_to(self.log.next)

    @invariant()
    def ends_are_in_order(self) -> None:
        log = self.log
        assert log.log_start <= log.last_stable <= log.committed <= log.written <= log.next
        assert log.flushed <= log.written
        assert log.segments[0].base <= log.log_start or log.log_start == log.next

    @invariant()
    def indexes_point_at_batches(self) -> None:
        for segment in self.log.segments:
            count = len(segment.offsets)
            for slot in range(count):
                offset, position = segment.offsets._entry(slot)
                header = read_header(segment.file.pread(61, position))
                assert header.last_offset == offset


LogMachine.TestCase.settings = settings(
    max_examples=examples(100), stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLogAgainstModel = LogMachine.TestCase
