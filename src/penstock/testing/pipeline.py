"""A pipeline file against rows: rows in, rows out, time moved, without a cluster.

    with run_flow("shop.toml") as flow:
        flow.give("orders", [{"id": 1, "amount": 4.5}])
        flow.settle()
        assert flow.table("lake") == [{"id": 1, "amount": 4.5}]

The file is run as it is, by the same code as `penstock pipeline run`, on a real broker inside the process and a Spark
session that tests share. Only places are others: brokers, warehouse and checkpoints are the test's own, sources begin
at the earliest record, and nothing of the real ones is ever opened.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.testing.embedded import broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.tws_tester import TwsTester

    from penstock.spark.pipeline.flow import Flow, Reference, Sink, Source
    from penstock.testing.embedded import EmbeddedBroker

__all__ = ["Letter", "PipelineTrial", "SettleFailed", "TopicRecord", "TwsTester", "run_flow"]

SETTINGS: Final = {"spark.sql.shuffle.partitions": "1", "spark.log.level": "ERROR", "spark.driver.memory": "1g"}
"""What a session of tests wants: small batches cost what their tasks cost."""

_PLACES: Final = ("path", "catalog", "table")
"""Options of tables that name real ones."""


class SettleFailed(AssertionError):
    """A sink failed; says which and why."""


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A record that a sink has written."""

    key: str | None
    value: bytes | None
    headers: Mapping[str, bytes | None]

    def json(self) -> Any:
        """Its value, as a topic sink writes rows."""
        return json.loads(self.value or b"null")


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter: what it was, and why it is one."""

    value: str
    error: str


class PipelineTrial:
    """A flow on trial."""

    def __init__(self, flow: Flow, spark: SparkSession, brokers: EmbeddedBroker) -> None:
        self.flow, self.spark, self.broker = flow, spark, brokers

    def give(
        self, source: str, rows: Iterable[Any], *, at: datetime | str | None = None, key: str | None = None
    ) -> None:
        """Rows into a source, by its name or its topic's: mappings become JSON, texts and bytes go as they are. A
        table that is read, or joined, gets them as a version of it.

        `at` is the time of the records, now (as `advance` has moved it) if it is not given; `key`, the column whose
        value is their key. They are acknowledged when this returns.
        """
        from penstock.blocking import Producer

        known = next((each for each in self.flow.references if each.name == source), None)
        part = known or self.flow.source(source)
        if part is not None and part.table is not None:
            self._fill(part, [dict(row) for row in rows])
            return
        topic = self._topic_of(source)
        timestamp_ms = _millis(at) if at is not None else int(self.broker.clock.now_ms())
        with Producer(**self.broker.client_settings) as producer:
            for row in rows:
                found = str(row[key]).encode() if key is not None else None
                producer.send(topic, _value(row), key=found, timestamp=timestamp_ms)
            producer.flush()

    def settle(self) -> None:
        """Runs every sink until all that was given is processed; `SettleFailed` says why one of them could not."""
        from penstock.spark.pipeline import home
        from penstock.spark.pipeline.retrying import Patience
        from penstock.spark.pipeline.running import Runner

        runner = Runner(self.flow.once(), self.spark, patience=Patience(tries=1))
        runner.run(threading.Event())
        if words := home.failures_of(runner.progress().sinks):
            raise SettleFailed(words)

    def advance(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        """Moves the time of the broker, and with it that of what is given from now on."""
        self.broker.advance(seconds=seconds, minutes=minutes, hours=hours, days=days)

    def table(self, name: str) -> list[dict[str, Any]]:
        """The rows of a sink's table, or of a table by its name, in the order of their values; [] for one not made."""
        sink = self.flow.sink(name)
        place = self.flow.table_path(sink) if sink is not None else self.flow.place_of(name)
        rows = self._rows_of(place)
        return [] if rows is None else _sorted(row.asDict(recursive=True) for row in rows.collect())

    def topic(self, name: str) -> list[TopicRecord]:
        """The committed records of a sink's topic, or of a topic by its name, partition by partition."""
        sink = self.flow.sink(name)
        rows = self._records_of(name if sink is None else sink.target)
        return [
            TopicRecord(
                _text(row["key"]), _bytes(row["value"]), {each["key"]: each["value"] for each in row["headers"] or ()}
            )
            for row in rows
        ]

    def dead(self, name: str) -> list[Letter]:
        """The dead letters of a source or of a sink, wherever it keeps them."""
        part: Source | Sink | None = self.flow.source(name) or self.flow.sink(name)
        kept = None if part is None else part.dead_letters
        if kept is None or ":" not in kept:
            raise LookupError(f"{name} keeps no dead letters: dead_letters = topic:… or table:… of a source or a sink")
        kind, _, where = kept.partition(":")
        if kind == "topic":
            from penstock.spark.values.dead_letters import HEADER_ERROR

            letters = self.topic(where)
            return [Letter(_text(one.value) or "", _text(one.headers[HEADER_ERROR]) or "") for one in letters]
        rows = self._rows_of(self.flow.place_of(where))
        if rows is None:
            return []
        value = "value" if "value" in rows.columns else "row"
        found = [Letter(_text(row[value]) or "", row["error"]) for row in rows.collect()]
        return sorted(found, key=lambda letter: (letter.value, letter.error))

    def _fill(self, source: Source | Reference, rows: list[dict[str, Any]]) -> None:
        options = {"path": self.flow.place_of(source.table or ""), "table.format": source.table_format}
        made = self.spark.createDataFrame(rows)
        made.write.format("penstock-lake").options(**options).mode("append").save()

    def _topic_of(self, name: str) -> str:
        source = self.flow.source(name)
        if source is None or source.pattern is not None:
            return name
        if len(source.topics) > 1:
            raise LookupError(f"source {name} reads {', '.join(source.topics)}: give to one of them by its own name")
        return source.topics[0]

    def _rows_of(self, place: str) -> DataFrame | None:
        from penstock.spark.lake.opening import open_store
        from penstock.spark.lake.options import LakeOptions
        from penstock.spark.source.tables import lake_options

        options = lake_options(place)
        if not open_store(LakeOptions.of(options)).exists():
            return None
        return self.spark.read.format("penstock-lake").options(**options).load()

    def _records_of(self, topic: str) -> list[Any]:
        options = {
            "kafka.bootstrap.servers": self.broker.bootstrap_servers,
            "subscribe": topic,
            "includeHeaders": "true",
        }
        rows = self.spark.read.format("penstock").options(**options).load()
        return rows.orderBy("partition", "offset").collect()


@contextmanager
def run_flow(file: str | Path, spark: SparkSession | None = None) -> Iterator[PipelineTrial]:
    """The flow of a file on trial, gone afterwards with all that it wrote. Without `spark` it is a session that stays
    for the next one: starting it takes seconds, once."""
    from penstock.spark import register
    from penstock.spark.pipeline.reading import read_flow

    read = read_flow(Path(file))
    session = spark or _session()
    register(session)
    with tempfile.TemporaryDirectory(prefix="penstock-flow-") as folder, broker(_BROKER) as brokers:
        flow = moved(read, Path(folder), brokers.bootstrap_servers)
        _create_topics(flow, brokers)
        try:
            yield PipelineTrial(flow, session, brokers)
        finally:
            for query in session.streams.active:
                if query.name in {flow.query_name(sink) for sink in flow.sinks}:
                    query.stop()


_BROKER: Final = {
    "log.retention.ms": -1,
    "log.message.timestamp.after.max.ms": (1 << 63) - 1,
    "auto.create.topics.enable": True,
}
"""Tests give records of any time, and name topics of a pattern when they give to them."""


def moved(flow: Flow, folder: Path, bootstrap: str) -> Flow:
    """The same flow where nothing of the real world is. Pure."""
    names: dict[str, str] = {}

    def place(target: str) -> str:
        """A table that the file names by where it lies gets a name of its own in the warehouse of the test."""
        if not (target.startswith("/") or "://" in target):
            return target
        return names.setdefault(target, f"_placed/{len(names)}-{target.rstrip('/').rpartition('/')[2]}")

    def letters(given: str | None) -> str | None:
        kind, _, where = (given or "").partition(":")
        return f"table:{place(where)}" if kind == "table" else given

    def source(each: Source) -> Source:
        options = each.options if each.table is None else _elsewhere(each.options)
        table = None if each.table is None else place(each.table)
        return replace(each, start="earliest", table=table, dead_letters=letters(each.dead_letters), options=options)

    def sink(each: Sink) -> Sink:
        target = place(each.target) if each.kind in ("table", "parquet") else each.target
        return replace(each, target=target, dead_letters=letters(each.dead_letters), options=_elsewhere(each.options))

    return replace(
        flow,
        bootstrap=bootstrap,
        kafka={},
        storage={},
        catalog={},
        warehouse=str(folder / "lake"),
        checkpoints=str(folder / "checkpoints"),
        checkpoints_here="",
        sources=tuple(source(each) for each in flow.sources),
        references=tuple(
            replace(each, table=place(each.table), options=_elsewhere(each.options)) for each in flow.references
        ),
        sinks=tuple(sink(each) for each in flow.sinks),
    )


def _elsewhere(options: Mapping[str, str]) -> dict[str, str]:
    """Options of a table without those that say where the real one is."""
    return {name: value for name, value in options.items() if name.lower() not in _PLACES}


def _create_topics(flow: Flow, brokers: EmbeddedBroker) -> None:
    from penstock.blocking import Admin

    kept = [each.dead_letters or "" for each in flow.sources]
    topics = {topic for source in flow.sources for topic in source.topics}
    topics |= {sink.target for sink in flow.sinks if sink.kind == "topic"}
    topics |= {where.removeprefix("topic:") for where in kept if where.startswith("topic:")}
    with Admin(**brokers.client_settings) as admin:
        for topic in sorted(topics):
            admin.create_topic(topic, 1)


def _session() -> SparkSession:
    from penstock.spark import session

    return session("local[2]", app_name="penstock-testing", settings=SETTINGS)


def _value(row: Any) -> bytes | None:
    if isinstance(row, Mapping):
        return json.dumps(row, default=_plain).encode()
    return row.encode() if isinstance(row, str) else row


def _plain(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _millis(at: datetime | str) -> int:
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _text(value: Any) -> str | None:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, (bytes, bytearray)) else value


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _sorted(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(
        rows, key=lambda row: [(value is not None, str(type(value)), _order(value)) for value in row.values()]
    )


def _order(value: Any) -> Any:
    return value if isinstance(value, (int, float, str, bytes, datetime)) else repr(value)


def __getattr__(name: str) -> Any:
    # Spark's own tester of stateful processors belongs to the same kit; pyspark is loaded by those who ask for it.
    if name == "TwsTester":
        from pyspark.sql.streaming import tws_tester

        return tws_tester.TwsTester
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
