"""What a pipeline file says, as values. Pure; everything in it was checked when it was read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from penstock.spark.lake.keyed.settings import KeyedSettings
from penstock.spark.pipeline.expectations import Expectation, Otherwise
from penstock.spark.pipeline.table_pattern import TABLES_MAX, TablePattern

CONTINUOUS = "continuous"
"""A trigger: the next micro-batch begins when the last one ends."""
AVAILABLE_NOW = "available-now"
"""A trigger: what is there now is processed, then the sink is finished."""
TABLE_TRIGGER = "10 seconds"
"""The default of tables: small files cost every reader, and what is fresher is read from the log."""

EARLIEST, LATEST = "earliest", "latest"


class SinkKind(StrEnum):
    """Where rows go. The words are the keys of the file."""

    TABLE = "table"
    TOPIC = "topic"
    PARQUET = "parquet"
    CONSOLE = "console"
    FOREACH_BATCH = "foreach_batch"


@dataclass(frozen=True, slots=True)
class Watermark:
    """How late a row may come: `delay` is an interval such as `10 minutes`."""

    column: str
    delay: str


@dataclass(frozen=True, slots=True)
class Source:
    """Topics, or a table, as rows. Exactly one of `topics`, `pattern` and `table` says which."""

    name: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    format: str | None = None
    schema: str | None = None
    start: str = LATEST
    """earliest, latest, an ISO time, `table:…` or the JSON of offsets by partition."""
    dead_letters: str | None = None
    watermark: Watermark | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    line: int = 0
    expect: tuple[Expectation, ...] = ()
    cdc: str = ""
    """The envelope that changes come in; "" for rows."""
    table: str | None = None
    """A table of the lake in place of topics; `start` is a version then."""
    table_format: str = "delta"
    removals: str = "fail"
    """What a version that takes rows away does to a stream of a table: fail or ignore."""
    changes: bool = False
    """Whether a table gives what became of each row, and not its rows."""

    @property
    def keeps_letters(self) -> bool:
        """Whether what is wrong with it has somewhere to go."""
        return self.dead_letters is not None and ":" in self.dead_letters


@dataclass(frozen=True, slots=True)
class Reference:
    """A table that steps may join; a query sees it anew when it has moved, looked at every `refresh_ms`."""

    name: str
    table: str
    table_format: str = "delta"
    refresh_ms: int = 300_000
    options: Mapping[str, str] = field(default_factory=dict)
    line: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """Rows made of other rows, by SQL over named inputs or by `module:function` of DataFrames."""

    name: str
    inputs: tuple[str, ...]
    sql: str | None = None
    python: str | None = None
    line: int = 0
    expect: tuple[Expectation, ...] = ()


@dataclass(frozen=True, slots=True)
class Sink:
    """Where rows go. `target` is a table, topic, directory or function; empty for the console."""

    name: str
    reads: str
    kind: SinkKind
    target: str = ""
    trigger: str = CONTINUOUS
    mode: str = "append"
    table_format: str = "delta"
    partition_by: tuple[str, ...] = ()
    rows: str | None = None
    """record or any, as the user said; None leaves it to whether steps are in between."""
    key: str | None = None
    """The column that becomes the key of records of a topic."""
    exactly_once: bool = False
    """Whether records of a topic are written in transactions."""
    options: Mapping[str, str] = field(default_factory=dict)
    line: int = 0
    expect: tuple[Expectation, ...] = ()
    fresh_within_s: float = 0.0
    """How old the oldest record may be that it has not taken; 0 when nothing is promised."""
    dead_letters: str | None = None
    """`table:PATH`: where rows go that do not fit a table, or that break a rule of the sink's own."""
    max_tables: int = TABLES_MAX
    """Of a sink of many tables."""
    together: str | None = None
    """Sinks that say the same word share one query: their source is read and decoded once."""
    keyed: KeyedSettings | None = None
    """How a table follows changes; None for one that rows are added to."""

    @property
    def many(self) -> TablePattern | None:
        """How its tables are named, when it has one for each value of a column."""
        return TablePattern.of(self.target) if self.kind is SinkKind.TABLE else None

    @property
    def judges(self) -> bool:
        """Whether its writer counts and leaves out rows that break rules: then that is one with their commit."""
        return self.kind is SinkKind.TABLE and self.many is None and self.keyed is None


@dataclass(frozen=True, slots=True)
class SparkPart:
    """On which Spark it runs, with which settings, and which Python files go to the executors."""

    master: str = "local[*,4]"
    settings: Mapping[str, str] = field(default_factory=dict)
    python: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Flow:
    """One pipeline. Paths are absolute; the names of sources and steps are one namespace."""

    name: str
    path: Path
    digest: str
    bootstrap: str | None
    warehouse: str
    checkpoints: str
    spark: SparkPart
    kafka: Mapping[str, str]
    """Settings of the client library for sources and topics, without the prefix `kafka.`."""
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    """Each after all that it reads."""
    sinks: tuple[Sink, ...]
    storage: Mapping[str, str] = field(default_factory=dict)
    """How an object store is reached, by the lake's names without `storage.`; secrets are references."""
    catalog: Mapping[str, str] = field(default_factory=dict)
    """`uri`, and how to log in to that catalog of Iceberg tables; secrets are references."""
    admin: str | None = None
    """HOST:PORT of `/metrics`; None for none."""
    checkpoints_here: str = ""
    """Where Spark keeps them when `checkpoints` is in an object store, which then has copies; "" where it has none."""
    references: tuple[Reference, ...] = ()

    @property
    def directory(self) -> Path:
        """Where modules of Python steps are found."""
        return self.path.parent

    def source(self, name: str) -> Source | None:
        return next((source for source in self.sources if source.name == name), None)

    def sink(self, name: str) -> Sink | None:
        return next((sink for sink in self.sinks if sink.name == name), None)

    def lineage(self, sink: Sink) -> tuple[tuple[Source, ...], tuple[Step, ...]]:
        """The sources and steps that a sink depends on; steps in the order in which they can be made."""
        wanted = {sink.reads}
        for step in reversed(self.steps):
            if step.name in wanted:
                wanted.update(step.inputs)
        return (
            tuple(source for source in self.sources if source.name in wanted),
            tuple(step for step in self.steps if step.name in wanted),
        )

    def expected_of(self, name: str) -> tuple[Expectation, ...]:
        """What the rows of a source or a step are held against."""
        parts: tuple[Source | Step, ...] = (*self.sources, *self.steps)
        return next((part.expect for part in parts if part.name == name), ())

    def references_of(self, sink: Sink) -> tuple[Reference, ...]:
        """What the steps before a sink join."""
        read = {name for step in self.lineage(sink)[1] for name in step.inputs}
        return tuple(each for each in self.references if each.name in read)

    def carrier(self, source: Source) -> Sink | None:
        """The sink whose query delivers the dead letters of a source: every query that reads it meets them all.

        A table comes first, because it knows its offsets: after a lost checkpoint it meets no letter again.
        """
        readers = [sink for sink in self.sinks if source in self.lineage(sink)[0]]
        return next((sink for sink in readers if sink.kind is SinkKind.TABLE), readers[0] if readers else None)

    def rows_of(self, sink: Sink) -> str:
        """`record` when every record becomes one row (the audit then counts), else `any`."""
        if sink.rows:
            return sink.rows
        source = self.source(sink.reads)
        if source is None or source.table is not None:
            return "any"
        left_out = any(each.otherwise in (Otherwise.DROP, Otherwise.DEAD) for each in (*source.expect, *sink.expect))
        # What the writer itself leaves out it counts.
        return "any" if left_out and not sink.judges else "record"

    def query_name(self, sink: Sink) -> str:
        """The name of its Spark query; `spark-<this>` is the group that shows its lag."""
        return f"{self.name}-{sink.together or sink.name}"

    def checkpoint(self, sink: Sink) -> str:
        """Where Spark keeps it."""
        return f"{self.checkpoints_here or self.checkpoints}/{sink.together or sink.name}"

    def mirror(self, sink: Sink) -> str:
        """Where copies of its checkpoint are kept; "" when the checkpoint itself is where it shall be."""
        return f"{self.checkpoints}/{sink.together or sink.name}" if self.checkpoints_here else ""

    def mates(self, sink: Sink) -> tuple[Sink, ...]:
        """The sinks of its query, itself among them."""
        if sink.together is None:
            return (sink,)
        return tuple(each for each in self.sinks if each.together == sink.together)

    def table_path(self, sink: Sink) -> str:
        """Where a table of the warehouse, or a directory of Parquet files, lies; of many tables, their index."""
        return self.place_of(sink.target if sink.many is None else f"_fanned/{sink.name}")

    def place_of(self, target: str) -> str:
        return target if _has_place(target) else f"{self.warehouse}/{target}"

    def once(self) -> Flow:
        """The same flow, ending when everything that is there now was processed."""
        return replace(self, sinks=tuple(replace(sink, trigger=AVAILABLE_NOW) for sink in self.sinks))

    def only(self, names: tuple[str, ...]) -> Flow:
        """The same flow with these sinks alone, and with those that share their queries."""
        queries = {self.query_name(sink) for sink in self.sinks if sink.name in names}
        return replace(self, sinks=tuple(sink for sink in self.sinks if self.query_name(sink) in queries))

    def on(
        self, *, bootstrap: str | None = None, master: str | None = None, kafka: Mapping[str, str] | None = None
    ) -> Flow:
        """The same flow elsewhere; what is None stays as the file has it."""
        return replace(
            self,
            bootstrap=bootstrap or self.bootstrap,
            spark=replace(self.spark, master=master or self.spark.master),
            kafka=self.kafka if kafka is None else dict(kafka),
        )

    def names(self) -> Iterator[str]:
        """All that SQL and sinks may read from."""
        yield from (source.name for source in self.sources)
        yield from (step.name for step in self.steps)


def _has_place(target: str) -> bool:
    """Whether a table is named by where it lies and not by its name in the warehouse."""
    return target.startswith("/") or "://" in target
