"""What the lake asks of a table format; Delta and Iceberg answer it.

Everybody above (the sink, upkeep, audit, SQL, union reads) knows tables only through `TableStore`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

from penstock.spark.errors import SparkRoomError
from penstock.spark.lake.ranges import RangeKey, TableRange

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.spark.stores.storage import Storage

COMMIT_KEY: Final = "penstock.commit"
"""Under this name a commit's metadata (Delta's commitInfo, an Iceberg snapshot's) has `BatchCommit.told()` as JSON."""

FEED_PROPERTY: Final = "penstock.feed"
"""The table property that says, as JSON, which topics feed the table and how they are decoded."""
ROWS_PROPERTY: Final = "penstock.rows"
"""Says `record` where every record is one row."""

APPEND: Final = "append"
OVERWRITE: Final = "overwrite"
MERGE: Final = "merge"
"""Rows were inserted, updated and deleted by key."""
COMPACT: Final = "compact"
OTHER: Final = "other"
"""A commit that is not ours, or that changed no rows: a new column, a property, an expiry."""
LOST: Final = "lost"
"""Only in a ledger: a version whose commit metadata was cleaned away before anybody wrote it down."""
BATCHES: Final = (APPEND, OVERWRITE, MERGE)
"""Kinds of commits that bring a batch, with its offsets."""


HISTORY_PROPERTY: Final = "penstock.history.keep"
"""For how many days upkeep keeps what versions brought, because a stream follows the table."""
KEYED_PROPERTY: Final = "penstock.keyed"
"""Says, as JSON, that rows of the table are changed by key: its files are rewritten by merges alone."""


class Conflicted(SparkRoomError):
    """Somebody else committed first: reload, look again, decide again."""


class NotUnderstood(SparkRoomError):
    """The table's format asks something of readers that this one does not know; names it and what to try."""


class CannotEvolve(SparkRoomError):
    """The table's format cannot take this schema; says which column, both types, and what to do."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A Parquet file that a task wrote and nobody has committed yet. It crosses from workers to the driver."""

    path: str
    """Relative to the layout's directory, as it is on disk (partition values escaped, nothing else)."""
    size_bytes: int
    rows: int
    partition: Mapping[str, str | None] = field(default_factory=dict)
    """Partition field → value as text, in the order of the fields; None is null."""
    stats: str = "{}"
    """Delta's statistics as JSON: numRecords, minValues, maxValues, nullCount."""


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """What became of the changes of a batch: each is one of these."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    superseded: int = 0
    """A later change of the same key was in the batch, or in the table already."""
    ignored: int = 0
    """Left out as the sink says, or the delete of a row that was not there."""

    @property
    def changes(self) -> int:
        return self.inserted + self.updated + self.deleted + self.superseded + self.ignored

    @property
    def rows_more(self) -> int:
        """How many rows more the table has than before; may be negative."""
        return self.inserted - self.deleted

    def plus(self, other: MergeCounts) -> MergeCounts:
        return MergeCounts(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def told(self) -> dict[str, int]:
        """Those that are not zero."""
        return {name: number for name in self.__slots__ if (number := getattr(self, name))}

    @classmethod
    def of_told(cls, told: Mapping[str, Any]) -> MergeCounts:
        return cls(**{name: int(told.get(name, 0)) for name in cls.__slots__})


@dataclass(frozen=True, slots=True)
class BatchCommit:
    """One batch: its rows as files, and the offsets they come from. Both land, or neither does."""

    query_id: str
    """The streaming query's; a batch write has "write-<uuid>"."""
    batch_id: int
    """-1 for a batch write: there is no such batch of a query, and the table remembers none."""
    ranges: tuple[TableRange, ...] = ()
    files: tuple[WrittenFile, ...] = ()
    rows: int = 0
    dead: int = 0
    """Records of the ranges that went to dead letters (flows of one row a record)."""
    gaps: int = 0
    """Offsets of the ranges that had no record: compacted, trimmed, transaction markers."""
    overwrite: bool = False
    dropped: int = 0
    """Rows that an expectation left out, and nobody keeps."""
    expectations: Mapping[str, int] = field(default_factory=dict)
    """How many rows broke each expectation, whatever became of them; those that none broke are left out."""
    merged: MergeCounts | None = None
    """What became of the changes of a table by key; None where rows are added."""
    replaced: tuple[TableFile, ...] = ()
    """Files of the version that was read whose rows are in `files` now, as far as they are still there."""

    @property
    def records(self) -> int:
        """How many records it tells the fate of, where each is one row or one change."""
        return (self.rows if self.merged is None else self.merged.changes) + self.dead + self.dropped

    @property
    def kind(self) -> str:
        return MERGE if self.merged is not None else OVERWRITE if self.overwrite else APPEND

    def told(self) -> dict[str, Any]:
        """What the commit's metadata says under `COMMIT_KEY`."""
        return {
            "kind": self.kind,
            "query": self.query_id,
            "batch": self.batch_id,
            "ranges": [each.to_json() for each in self.ranges],
            "rows": self.rows,
            "dead": self.dead,
            "gaps": self.gaps,
            "files": len(self.files),
            "bytes": sum(each.size_bytes for each in self.files),
            **_judged(self.dropped, self.expectations),
            **(self.merged.told() | {"written": sum(each.rows for each in self.files)} if self.merged else {}),
        }


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a table, as its history or the ledger tells it."""

    version: int
    """Rises by one with every commit: Delta's version, Iceberg's sequence number."""
    time_ms: int
    kind: str
    """append, overwrite, merge, compact, other; lost in ledgers."""
    query_id: str = ""
    batch_id: int = -1
    ranges: tuple[TableRange, ...] = ()
    rows: int = 0
    dead: int = 0
    gaps: int = 0
    files: int = 0
    size_bytes: int = 0
    snapshot: str = ""
    """Iceberg's snapshot id; "" for Delta, where the version says it."""
    dropped: int = 0
    expectations: Mapping[str, int] = field(default_factory=dict)
    merged: MergeCounts = MergeCounts()
    written: int = 0
    """Rows of the files that a merge wrote: those of whole buckets, however few of them changed."""

    @property
    def rows_in_its_files(self) -> int:
        return self.written if self.kind == MERGE else self.rows

    @property
    def rows_more(self) -> int:
        """How many rows more the table has by this commit than before; may be negative."""
        return self.merged.rows_more if self.kind == MERGE else self.rows

    @property
    def records(self) -> int:
        """How many records it tells the fate of, where each is one row or one change."""
        return (self.merged.changes if self.kind == MERGE else self.rows) + self.dead + self.dropped

    @classmethod
    def of_told(cls, told: Mapping[str, Any], *, version: int, time_ms: int, kind: str, snapshot: str = "") -> Commit:
        """From what `BatchCommit.told()` gave, as it is found in a commit's metadata."""
        return cls(
            version=version,
            time_ms=time_ms,
            kind=kind,
            query_id=told.get("query", ""),
            batch_id=int(told.get("batch", -1)),
            ranges=tuple(TableRange.of_json(each) for each in told.get("ranges", ())),
            rows=int(told.get("rows", 0)),
            dead=int(told.get("dead", 0)),
            gaps=int(told.get("gaps", 0)),
            files=int(told.get("files", 0)),
            size_bytes=int(told.get("bytes", 0)),
            snapshot=snapshot,
            dropped=int(told.get("dropped", 0)),
            expectations={str(name): int(count) for name, count in told.get("expectations", {}).items()},
            merged=MergeCounts.of_told(told),
            written=int(told.get("written", 0)),
        )

    def to_json(self) -> dict[str, Any]:
        """One line of the ledger."""
        return {
            "version": self.version,
            "time": self.time_ms,
            "kind": self.kind,
            "query": self.query_id,
            "batch": self.batch_id,
            "ranges": [each.to_json() for each in self.ranges],
            "rows": self.rows,
            "dead": self.dead,
            "gaps": self.gaps,
            "files": self.files,
            "bytes": self.size_bytes,
            "snapshot": self.snapshot,
            **_judged(self.dropped, self.expectations),
            **self.merged.told(),
            **({"written": self.written} if self.written else {}),
        }

    @classmethod
    def of_json(cls, line: Mapping[str, Any]) -> Commit:
        return cls.of_told(
            line, version=int(line["version"]), time_ms=int(line["time"]), kind=line["kind"], snapshot=line["snapshot"]
        )


def _judged(dropped: int, expectations: Mapping[str, int]) -> dict[str, Any]:
    """Told only where there is something to tell."""
    return {
        **({"dropped": dropped} if dropped else {}),
        **({"expectations": dict(expectations)} if expectations else {}),
    }


@dataclass(frozen=True, slots=True)
class TableFile:
    """A data file of a table's version."""

    path: str
    """Whole: a local path or a URI, as pyarrow opens it."""
    size_bytes: int
    rows: int
    partition: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where and how tasks write files for a table."""

    directory: str
    """A local path or a URI; `WrittenFile.path` is relative to it."""
    keeps_partition_columns: bool
    """Whether the files hold the partition columns too (Iceberg), or the log alone does (Delta)."""
    small_integers: bool = False
    """Whether the format has integers of 8 and 16 bits (Delta), or the smallest has 32 (Iceberg)."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction did; both counts 0 when there was nothing to do."""

    files_removed: int = 0
    files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0


@dataclass(frozen=True, slots=True)
class Expiry:
    """What an expiry did."""

    snapshots_removed: int = 0
    files_removed: int = 0


class TableStore(Protocol):
    """One table. Not shared between threads; cheap to make; reads see what `refresh` last saw."""

    @property
    def format(self) -> str: ...

    @property
    def location(self) -> str:
        """The table's directory, a local path or a URI; the ledger is under it."""

    @property
    def storage(self) -> Storage:
        """How the files at `location` are reached, the ledger's too."""

    def exists(self) -> bool:
        """Whether the table is there (now: no refresh is needed before)."""

    def create(
        self, schema: pa.Schema, partition_by: Sequence[str], properties: Mapping[str, str] | None = None
    ) -> None:
        """Makes the table unless it is there already; whoever is second finds the first one's table."""

    def refresh(self) -> None:
        """Looks at the newest version. `Missing` when there is no table."""

    def schema(self) -> pa.Schema: ...

    def partition_by(self) -> list[str]:
        """As `partition.by` has it: column names, or transform(column) for Iceberg."""

    def version(self) -> int: ...

    def committed(self, keys: Collection[RangeKey] | None = None) -> dict[RangeKey, int]:
        """Where the table stands: of `keys`, or of every partition that it was ever fed from."""

    def last_batch(self, query_id: str) -> int | None:
        """The last batch of that query that is in the table."""

    def layout(self) -> Layout: ...

    def can_widen(self, have: pa.DataType, wanted: pa.DataType) -> bool:
        """Whether `evolve` can turn a column of type `have` into `wanted`."""

    def evolve(self, schema: pa.Schema) -> None:
        """Adds the columns that `schema` has and the table has not, nullable, and widens where the format can.

        Order does not matter and columns that only the table has stay. `CannotEvolve`, `Conflicted`.
        """

    def commit(self, batch: BatchCommit) -> Commit:
        """Rows and offsets in one table transaction, on top of the version that was last refreshed.

        `Conflicted` when somebody else moved any of the same offsets or committed the same query's batch meanwhile, and
        whenever it is not known whether the commit landed: the caller refreshes and decides again.
        """

    def commits(self, after: int = -1) -> Iterator[Commit]:
        """The history that the table still has, oldest first, of versions above `after`."""

    def files(self, version: int | None = None) -> list[TableFile]:
        """The data files of a version, the newest if none is given. Everybody who reads or removes rows asks here, so
        here is the check: `NotUnderstood` when the files alone, by the names of their columns, do not tell the rows."""

    def properties(self) -> dict[str, str]: ...

    def set_properties(self, properties: Mapping[str, str]) -> None: ...

    def compact(self, target_bytes: int, *, whole: bool = True) -> Compaction:
        """Few files of about `target_bytes` instead of many small ones, beside whoever appends. `Conflicted`.

        Unless `whole`, small files may wait for others of their size (`tiers`): less is rewritten, day after day.
        """

    def expire(self, older_than: datetime) -> Expiry:
        """Forgets versions older than that and deletes the files that only they had. Offsets and ledger stay."""

    def orphans(self, older_than: datetime) -> list[str]:
        """Files under the table that no kept version names, older than that: left by tasks that lost or died."""

    def vacuum(self, older_than: datetime) -> int:
        """Deletes the orphans; how many."""
