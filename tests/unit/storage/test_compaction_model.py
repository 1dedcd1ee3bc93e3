"""Random logs and random passes against a plain model of what compaction promises."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from penstock.kernels import Record, check_batch, scan_batches
from penstock.model.ids import Millis
from penstock.protocol.batch import CODECS, CONTROL, build_batch, read_records
from penstock.protocol.control import Marker, marker_batch
from penstock.storage.compaction import CleanJob, CleanResult, LastOfProducer, SegmentFacts, clean
from penstock.storage.names import CLEANED, SEGMENT_SUFFIXES, segment_file
from penstock.storage.segment import Segment
from penstock.storage.transaction_index import AbortedTransaction
from penstock.testing.memory_files import MemoryFiles
from tests.properties import examples

DIRECTORY = "/t-0"
RETENTION_MS = 100
PLAIN, IDEMPOTENT, COMMITTED, ABORTED = range(4)


@dataclass
class ModelBatch:
    """A batch as it was written, and what the model still expects of it."""

    base: int
    last: int
    segment: int
    kind: int
    records: list[Record]
    horizon: int | None = None


@dataclass(frozen=True)
class BatchPlan:
    kind: int
    codec: int
    pairs: list[tuple[int, bool]]


@dataclass(frozen=True)
class PassPlan:
    keys_max: int
    later_ms: int
    short_by: int


PASSES = st.builds(PassPlan, st.sampled_from([2, 1_000]), st.sampled_from([0, 60, 150]), st.integers(0, 5))
PLANS = st.lists(
    st.tuples(
        st.lists(
            st.builds(
                BatchPlan,
                st.sampled_from([PLAIN, PLAIN, IDEMPOTENT, COMMITTED, ABORTED]),
                st.sampled_from(sorted(CODECS.values())),
                st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=4),
            ),
            min_size=1,
            max_size=4,
        ),
        st.lists(
            st.builds(PassPlan, st.sampled_from([2, 1_000]), st.sampled_from([0, 60, 150]), st.integers(0, 5)),
            max_size=2,
        ),
    ),
    min_size=1,
    max_size=5,
)


@dataclass
class World:
    """The real files and the model, side by side."""

    files: MemoryFiles = field(default_factory=MemoryFiles)
    next: int = 0
    now_ms: int = 10_000
    first_dirty: int = 0
    sequence: int = 0
    segments: list[SegmentFacts] = field(default_factory=list)
    model: list[ModelBatch] = field(default_factory=list)
    ever: list[tuple[int, bytes]] = field(default_factory=list)
    last_of_producer: dict[int, int] = field(default_factory=dict)

    # -- writing

    def write_segment(self, plans: list[BatchPlan]) -> None:
        base = self.next
        segment = Segment.create(self.files, DIRECTORY, base, now=0)
        for plan in plans:
            first = self.next
            for batch in self.batches_of(plan, base):
                ((_, header),) = scan_batches(batch)
                segment.append(batch, header.last_offset, header.max_timestamp, 0)
                if plan.kind == ABORTED and header.attributes & CONTROL:
                    last = header.last_offset
                    segment.aborted.append(AbortedTransaction(header.producer_id, first, last, last))
        segment.seal()
        segment.close()
        self.segments.append(SegmentFacts(base, segment.size))

    def batches_of(self, plan: BatchPlan, segment: int) -> list[bytes]:
        base = self.next
        records = [
            Record(base + i, 5_000 + (base + i) * 7 % 50, b"key%d" % key, b"value%d" % (base + i) if filled else None)
            for i, (key, filled) in enumerate(plan.pairs)
        ]
        self.next += len(records)
        self.model.append(ModelBatch(base, self.next - 1, segment, plan.kind, list(records)))
        if plan.kind != ABORTED:
            self.ever += [(record.offset, record.key or b"") for record in records]
        if plan.kind == PLAIN:
            return [build_batch(records, base_offset=base, codec=plan.codec)]
        producer_id = 40 + plan.kind
        self.last_of_producer[producer_id] = self.next - 1
        sequence, self.sequence = self.sequence, self.sequence + len(records)
        data = build_batch(
            records,
            base_offset=base,
            codec=plan.codec,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=plan.kind != IDEMPOTENT,
        )
        if plan.kind == IDEMPOTENT:
            return [data]
        self.next += 1
        marker = marker_batch(
            Marker(plan.kind == COMMITTED, 0),
            base_offset=self.next - 1,
            leader_epoch=0,
            timestamp=5_000,
            producer_id=producer_id,
            producer_epoch=0,
        )
        return [data, marker]

    # -- cleaning

    def aborted(self) -> list[AbortedTransaction]:
        found = []
        for base, _ in self.segments:
            present = self.files.exists(f"{DIRECTORY}/{segment_file(base, '.txnindex')}")
            index = Segment(self.files, DIRECTORY, base, size=0, created_ms=0, has_aborted=present).aborted
            found += index.entries()
        return found

    def ranges(self) -> list[tuple[int, int]]:
        """(first, last) offset of each batch that the files hold by now."""
        logs = [self.files.read(f"{DIRECTORY}/{segment_file(base, '.log')}") for base, _ in self.segments]
        return [(header.base_offset, header.last_offset) for log in logs for _, header in scan_batches(log)]

    def clean(self, plan: PassPlan) -> None:
        self.now_ms += plan.later_ms
        clean_end = max(self.first_dirty, self.next - plan.short_by)
        job = CleanJob(
            segments=[segment for segment in self.segments if segment.base < clean_end],
            first_dirty=self.first_dirty,
            clean_end=clean_end,
            now_ms=self.now_ms,
            delete_retention_ms=RETENTION_MS,
            segment_bytes=700,
            segment_index_bytes=1 << 20,
            index_interval_bytes=100,
            dedupe_buffer_bytes=plan.keys_max * 24,
            load_factor=1.0,
            producers=[LastOfProducer(who, last, 0) for who, last in self.last_of_producer.items()],
            aborted=self.aborted(),
        )
        # A batch is cleaned whole or not at all. One that an earlier pass emptied and removed holds nothing up: below
        # `first_dirty` every key has been seen, and there is none left in it.
        whole = min([clean_end, *(base for base, last in self.ranges() if base < clean_end <= last)])
        result = clean(self.files, DIRECTORY, job)
        assert self.first_dirty <= result.first_dirty <= max(clean_end, self.first_dirty)
        assert result.full or result.first_dirty == max(whole, self.first_dirty)
        self.expect(result, clean_end)
        self.swap(result)
        self.first_dirty = result.first_dirty

    def expect(self, result: CleanResult, clean_end: int) -> None:
        """What the model says of a pass."""
        replaced = {base for made in result.segments for base in made.replaces}
        end = result.first_dirty
        latest = {key: offset for offset, key in self.ever if offset < end}
        becomes = {base: made.base for made in result.segments for base in made.replaces}
        for batch in self.model:
            if batch.segment not in replaced:
                continue
            batch.segment = becomes[batch.segment]
            if batch.last >= clean_end:
                continue
            passed = batch.horizon is not None and batch.horizon <= self.now_ms
            batch.records = [
                record
                for record in batch.records
                if batch.kind != ABORTED
                and (
                    record.offset >= end
                    or (record.offset == latest[record.key or b""] and (record.value is not None or not passed))
                )
            ]
            if batch.horizon is None and any(record.value is None for record in batch.records):
                batch.horizon = self.now_ms + RETENTION_MS

    def swap(self, result: CleanResult) -> None:
        gone = {base for made in result.segments for base in made.replaces}
        for base in gone:
            for suffix in SEGMENT_SUFFIXES:
                if self.files.exists(path := f"{DIRECTORY}/{segment_file(base, suffix)}"):
                    self.files.remove(path)
        for made in result.segments:
            for suffix in SEGMENT_SUFFIXES:
                path = f"{DIRECTORY}/{segment_file(made.base, suffix)}"
                if self.files.exists(path + CLEANED):
                    self.files.rename(path + CLEANED, path)
        new = [SegmentFacts(made.base, made.size) for made in result.segments]
        self.segments = new + [old for old in self.segments if old.base not in gone]

    # -- judging

    def check(self) -> None:
        data, last_offset, producers_seen = [], -1, {}
        for base, size in self.segments:
            log = self.files.read(f"{DIRECTORY}/{segment_file(base, '.log')}")
            assert len(log) == size
            for at, header in scan_batches(log):
                check_batch(log, at)
                assert last_offset < header.base_offset <= header.last_offset, "order is kept, nothing overlaps"
                last_offset = header.last_offset
                if not header.attributes & CONTROL:
                    data += read_records(log[at : at + header.size])
                    if header.producer_id >= 0:
                        producers_seen[header.producer_id] = header.last_offset
            assert sum(header.size for _, header in scan_batches(log)) == size
            self.check_indexes(base, size, log)
        assert data == [record for batch in self.model for record in batch.records]
        assert producers_seen == self.last_of_producer, "the last batch of each producer survives"
        void = [batch for batch in self.model if batch.kind == ABORTED and batch.records]
        told = self.aborted()
        for batch in void:
            assert any(each.first <= batch.base <= each.last for each in told), "readers are told what is void"

    def check_indexes(self, base: int, size: int, log: bytes) -> None:
        segment = Segment(self.files, DIRECTORY, base, size=size, created_ms=0, has_aborted=False)
        assert not segment.indexes_doubtful()
        for position, header in scan_batches(log):
            offset, found_at = segment.offsets.lookup(header.last_offset)
            assert found_at <= position
            assert offset <= header.last_offset
        largest = max((header.max_timestamp for _, header in scan_batches(log)), default=-1)
        assert segment.latest().timestamp == largest
        segment.close()


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PLANS)
@example(
    [
        (
            [
                BatchPlan(PLAIN, 0, [(0, False), (1, False), (0, False)]),
                BatchPlan(ABORTED, 0, [(0, False), (0, False)]),
                BatchPlan(ABORTED, 0, [(0, False)]),
            ],
            # The first pass removes the aborted batch at 3 and 4; the second ends where that was.
            [PassPlan(2, 0, 0), PassPlan(2, 0, 4)],
        )
    ]
)
def test_compaction_keeps_what_it_promises(plans: list[tuple[list[BatchPlan], list[PassPlan]]]) -> None:
    world = World()
    world.files.makedirs(DIRECTORY)
    for batches, passes in plans:
        world.write_segment(batches)
        for plan in passes:
            world.clean(plan)
            world.check()
    # However the passes went, enough of them leave one record for each key, and no tombstone after its horizon.
    for later_ms in (0, 0, RETENTION_MS, 0):
        world.clean(PassPlan(1_000, later_ms, 0))
        world.check()
        world.write_segment([BatchPlan(PLAIN, 0, [(9, True)])])
    world.clean(PassPlan(1_000, 2 * RETENTION_MS, 0))
    world.check()
    values = {key: record for record in _written(world) if (key := record.key)}
    left = [record for batch in world.model for record in batch.records]
    assert len({record.key for record in left}) == len(left)
    assert all(record.value is not None for record in left)
    assert {record.key for record in left} == {key for key, record in values.items() if record.value is not None}


def _written(world: World) -> list[Record]:
    """The last record of each key as the log was written, from the offsets that the model saw."""
    last = {key: offset for offset, key in world.ever}
    present = {record.offset: record for batch in world.model for record in batch.records}
    return [present.get(offset, Record(offset, 0, key, None)) for key, offset in last.items()]


def test_a_pass_is_a_function_of_its_job_and_its_files() -> None:
    made = []
    for at in (Millis(1), Millis(999_999)):
        world = World()
        world.files.makedirs(DIRECTORY)
        plain = BatchPlan(PLAIN, 4, [(0, True), (1, False), (0, True)])
        world.write_segment([plain, BatchPlan(ABORTED, 0, [(1, True)])])
        world.files.set_mtime_ms(f"{DIRECTORY}/{segment_file(0, '.log')}", at)
        world.clean(PassPlan(1_000, 0, 0))
        made.append(world.files.read(f"{DIRECTORY}/{segment_file(0, '.log')}"))
    assert made[0] == made[1]
