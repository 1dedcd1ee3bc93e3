"""A keyed table and whoever writes it, on real files, with everything that can come between: a world for properties.

The log is a list, tasks run in this process, kills are exceptions at the steps of a batch; the table is Delta's or
Iceberg's own, and so are those who change it beside us. What it has to be is kept by a dictionary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from penstock.spark.lake.audit import audit
from penstock.spark.lake.keyed import graves
from penstock.spark.lake.keyed.bucket_task import BucketDone, BucketTask, graves_in
from penstock.spark.lake.keyed.changes import DELETE, IGNORED, UPSERT
from penstock.spark.lake.keyed.envelopes import UNAVAILABLE
from penstock.spark.lake.keyed.landing import Changes, Hands, merge
from penstock.spark.lake.keyed.settings import KeyedSettings
from penstock.spark.lake.keyed.spreading import BUCKET, marks, of_bucket, spread, spread_schema
from penstock.spark.lake.landing import write_down
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.parquet_rows import rows_of
from penstock.spark.lake.ranges import TableRange
from penstock.spark.lake.store import BatchCommit, Commit, TableStore
from tests.unit.spark.lake.keyed.model import ROWS_BY_COLUMN, ROWS_BY_OFFSET, Change, as_arrow, columns

BUCKETS = 3
PARTITIONS = 3

Key = tuple[int, str | None]
Values = tuple[object, ...]
Act = Callable[[], object]


class Killed(Exception):
    """The driver ended here."""


@dataclass
class Topic:
    id: str
    partitions: list[list[Change]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])


@dataclass(frozen=True)
class Plan:
    """One batch, as the query's offset log has it."""

    query: str
    batch: int
    topic: Topic
    spans: tuple[tuple[int, int], ...]
    """Of each partition."""

    def changes(self) -> list[Change]:
        return [
            change
            for partition, (start, end) in zip(self.topic.partitions, self.spans, strict=True)
            for change in partition[start:end]
        ]

    def ranges(self) -> tuple[TableRange, ...]:
        return tuple(
            TableRange("t", self.topic.id, number, start, end)
            for number, (start, end) in enumerate(self.spans)
            if start < end
        )


class Truth:
    """What the table has to be: changes done one after the other as they come to be committed."""

    def __init__(self, in_log_order: bool) -> None:
        self._in_log_order = in_log_order
        self._known: dict[Key, tuple[tuple[object, ...], Values | None]] = {}

    @property
    def rows(self) -> dict[Key, Values]:
        return {key: values for key, (_, values) in self._known.items() if values is not None}

    def apply(self, changes: list[Change]) -> None:
        for change in sorted(changes, key=lambda each: each.order):
            order = (change.offset,) if self._in_log_order else change.order
            if change.kind == IGNORED or (change.key in self._known and order < self._known[change.key][0]):
                continue
            before = self._known.get(change.key, (order, None))[1]
            self._known[change.key] = (order, None if change.kind == DELETE else self._filled(change, before))

    def forget(self, id: int) -> None:
        """Another engine has deleted these rows: nothing is remembered of them."""
        self._known = {key: found for key, found in self._known.items() if key[0] != id or found[1] is None}

    def forget_deletes_but(self, keys: set[Key]) -> None:
        """Another engine has rewritten files, and what was remembered in their footers is gone."""
        self._known = {key: found for key, found in self._known.items() if found[1] is not None or key in keys}

    @staticmethod
    def _filled(change: Change, before: Values | None) -> Values:
        name, blob, _ = before or (UNAVAILABLE, UNAVAILABLE.encode(), None)
        return (
            name if change.name == UNAVAILABLE else change.name,
            blob if change.blob == UNAVAILABLE.encode() else change.blob,
            change.n,
        )


class Following:
    """One table, its topic, and the query between them."""

    def __init__(self, path: Path, table_format: str, *, in_log_order: bool) -> None:
        self.in_log_order = in_log_order
        self.settings = KeyedSettings(
            ("id", "part"), **({} if in_log_order else {"sequence_by": "at"}), buckets=BUCKETS, cdc="debezium"
        )
        self.options = LakeOptions(path=str(path), table_format=table_format, rows="record", compact_every=0)
        self.columns = columns(in_log_order=in_log_order)
        self.topic = Topic("topic-0")
        self.truth = Truth(in_log_order)
        self.now_ms = 1
        self.foreign_deletes = 0
        self.keeps_files = False
        """A fault to plant: after a conflict the files of the older version are committed."""
        self._queries = 1
        self._plans: list[Plan] = []
        """The checkpoint: the batches that were planned, the last of which may not be done."""
        self._done = 0
        self._landed: Counter[tuple[str, int]] = Counter()

    @property
    def store(self) -> TableStore:
        return open_store(self.options)

    # The topic.

    def send(self, changes: list[Change]) -> None:
        """Changes get their place in the topic."""
        for change in changes:
            partition = self.topic.partitions[change.partition]
            offset = len(partition)
            partition.append(replace(change, offset=offset, seq=offset if self.in_log_order else change.seq))

    def recreate(self) -> None:
        """The topic is deleted and made anew: what was not read is gone."""
        self.topic = Topic(f"topic-{int(self.topic.id.removeprefix('topic-')) + 1}")

    # The query.

    def batch(self, most: int = 100, *, beside: Act | None = None, killed: str = "") -> Commit | None:
        """The next batch, or the last one again if it is not done. `beside` happens between reading and commit."""
        if self._done == len(self._plans):
            self._plans.append(self._next(most))
        plan = self._plans[-1]
        commit = self.carry_out(plan, beside=beside, killed=killed)
        self._done = len(self._plans)
        return commit

    def replay(self, back: int) -> Commit | None:
        """A driver that was away does an older batch once more."""
        done = self._plans[: self._done]
        return self.carry_out(done[-1 - back]) if len(done) > back else None

    def replay_last(self) -> None:
        """A successor does the batch that is under way, from the same checkpoint, and is done first."""
        self.carry_out(self._plans[-1])

    def planned(self, *, query: str, spans: tuple[tuple[int, int], ...]) -> Plan:
        return Plan(query, 0, self.topic, spans)

    def rebucket(self, buckets: int) -> None:
        self.settings = replace(self.settings, buckets=buckets)

    def forget_deletes_after(self, ms: int) -> None:
        self.settings = replace(self.settings, keep_deletes_ms=ms)

    def lose_checkpoint(self) -> None:
        self._queries += 1
        self._plans, self._done = [], 0

    def carry_out(self, plan: Plan, *, beside: Act | None = None, killed: str = "") -> Commit | None:
        if killed == "before":
            raise Killed
        acts = [beside] if beside is not None else []

        made: list[list[BucketDone]] = []

        def run(task: BucketTask) -> list[BucketDone]:
            done = made[0] if made and self.keeps_files else rewrite(task, plan.changes())
            made.append(done)
            if killed == "written":
                raise Killed
            while acts:
                acts.pop()()
            return done

        self.now_ms += 1
        rows = ROWS_BY_OFFSET if self.in_log_order else ROWS_BY_COLUMN
        changes = Changes(
            BatchCommit(plan.query, plan.batch, plan.ranges()), rows, {plan.topic.id: len(plan.topic.partitions)}
        )
        store = self.store
        commit = merge(store, self.options, self.settings, changes, Hands(run, lambda told: told, self.now_ms))
        if commit is not None:
            self.truth.apply(plan.changes())
            self._landed[plan.query, plan.batch] += 1
            assert commit.merged.changes == len(plan.changes())
            assert self._landed[plan.query, plan.batch] == 1, "a batch landed twice"
        if killed == "committed":
            raise Killed
        write_down(store, commit)
        return commit

    def _next(self, most: int) -> Plan:
        spans = []
        committed = self._standing()
        before = self._plans[-1] if self._plans else None
        for number, partition in enumerate(self.topic.partitions):
            start = committed.get(number, 0)
            if before is not None and before.topic is self.topic and number < len(before.spans):
                start = before.spans[number][1]
            spans.append((start, min(len(partition), start + most)))
        return Plan(f"query-{self._queries}", len(self._plans), self.topic, tuple(spans))

    def _standing(self) -> dict[int, int]:
        store = self.store
        if not store.exists():
            return {}
        store.refresh()
        return {key.partition: end for key, end in store.committed().items() if key.topic == self.topic.id}

    # Others, and what is true at any time.

    def exists(self) -> bool:
        return self.store.exists()

    def foreign_compaction(self) -> None:
        if self.options.table_format == "delta":
            from deltalake import DeltaTable

            DeltaTable(self.options.path).optimize.compact()
            self._forget_deletes()
            return
        from penstock.spark.lake.iceberg.compaction import compact
        from penstock.spark.lake.iceberg.store import IcebergStore

        compact(IcebergStore(self.options), 1 << 20, "zstd", whole=True)
        self._forget_deletes()

    def foreign_delete(self, id: int) -> None:
        if not any(key[0] == id for key in self.truth.rows):
            return
        if self.options.table_format == "delta":
            from deltalake import DeltaTable

            DeltaTable(self.options.path).delete(f"id = {id}")
        else:
            from penstock.spark.lake.iceberg.store import IcebergStore

            store = IcebergStore(self.options)
            store.refresh()
            store.table.delete(f"id == {id}")
        self.foreign_deletes += 1
        self.truth.forget(id)
        self._forget_deletes()

    def _forget_deletes(self) -> None:
        store = self.store
        store.refresh()
        found = [graves_in(file.path, self.columns, store.storage) for file in store.files()]
        kept = pa.concat_tables(found or [self._no_graves()])
        self.truth.forget_deletes_but({(row["id"], row["part"]) for row in kept.to_pylist()})

    def _no_graves(self) -> pa.Table:
        return graves.schema_of(self.columns).empty_table()

    def rows(self) -> dict[Key, Values]:
        store = self.store
        if not store.exists():
            return {}
        store.refresh()
        found: dict[Key, Values] = {}
        for row in all_rows(store):
            key = (row["id"], row["part"])
            assert key not in found, f"{key} is there twice"
            found[key] = (row["name"], row["blob"], row["n"])
        return found

    def check(self) -> None:
        found, wanted = self.rows(), self.truth.rows
        assert found == wanted, f"{found} is not {wanted}"

    def check_proof(self) -> None:
        """The audit proves it, but for rows that another engine took."""
        if self.exists() and not self.foreign_deletes:
            found = audit(self.store)
            assert found.clean, str(found)


def rewrite(task: BucketTask, changes: list[Change]) -> list[BucketDone]:
    """What Spark's tasks do, here."""
    batches = as_arrow(changes, task.columns).to_batches(max_chunksize=5)
    sent = pa.Table.from_batches(spread(batches, task.columns, task.buckets), schema=spread_schema(task.columns))
    if task.foreign:
        sent = pa.concat_tables([sent, marks(task.columns, range(task.buckets))])
    numbers = sorted(set(sent.column(BUCKET).to_pylist()))
    return [
        BucketDone.of_json(
            task.rewrite(number, of_bucket(sent, number).select(task.columns.schema.names).to_batches()).to_json()
        )
        for number in numbers
    ]


def all_rows(store: TableStore) -> Iterator[dict[str, object]]:
    for file in store.files():
        for batch in rows_of(file.path, store.schema(), file.partition):
            yield from batch.to_pylist()


def upsert(id: int, name: str | None, *, seq: int = 0, partition: int | None = None, n: int = 0) -> Change:
    return Change(id, "", name, None, n, seq, id % PARTITIONS if partition is None else partition, 0, UPSERT)


def delete(id: int, *, seq: int = 0, partition: int | None = None) -> Change:
    return Change(id, "", None, None, None, seq, id % PARTITIONS if partition is None else partition, 0, DELETE)
