"""What a flow means in options of Spark's readers and writers. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from penstock.spark.feed import Feed, FeedStep
from penstock.spark.lake.judging import to_option
from penstock.spark.naming import MIRROR_OPTION
from penstock.spark.pipeline.changes_wiring import change_options, keyed_table_options
from penstock.spark.pipeline.expectations import Expectation, Otherwise, rules_of
from penstock.spark.pipeline.flow import EARLIEST, LATEST, Flow, Sink, Source
from penstock.spark.pipeline.store_settings import source_settings, table_options
from penstock.spark.topic_sink.options import EXACTLY_ONCE, STAGES_ONCE

DEFAULT_BOOTSTRAP: Final = "localhost:9092"

STAGE_ATTEMPTS: Final = "spark.stage.maxConsecutiveAttempts"

_OF_READERS: Final = "kafka.isolation.level"
"""Says something to sources alone; a producer has no such setting."""

_ALL: Final = "__all"
"""After the name of a source or a step: its rows before those that break a rule are left out."""
_KEPT: Final = "__kept"

_READS_ANEW: Final = ("startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp")


def source_options(flow: Flow, source: Source, *, sink: Sink | None = None, start: str | None = None) -> dict[str, str]:
    """Options of format("penstock") for a source, as the query of `sink` reads it. `start` is used in place of what the
    file says.

    What the user gave under `options` wins over everything else but `start`.
    """
    made = {**_client(flow), **_topics(source), **start_options(start or source.start), **source_settings(flow)}
    if source.format is not None and source.format != "raw":
        made["value.format"] = source.format
    if source.schema is not None:
        made["value.schema"] = source.schema
    if source.dead_letters is not None:
        made["deadLetters"] = _dead_letters(flow, source.dead_letters)
    made |= change_options(source, sink)
    if sink is not None:
        made["queryName"] = flow.query_name(sink)
    given = dict(source.options)
    if start is not None:
        given = {name: value for name, value in given.items() if name.lower() not in _READS_ANEW}
    if "metadataColumns" in made:
        # Those that the user named are among them.
        given = {name: value for name, value in given.items() if name.lower() != "metadatacolumns"}
    options = _over(made, given)
    return options if sink is None or flow.carrier(source) == sink else _without_letters(options)


def _without_letters(options: dict[str, str]) -> dict[str, str]:
    """A letter belongs to its source and is sent once; queries that do not carry it count it. (Tables know their
    letters, so all may bring them there; whoever is to fail on one fails for itself.)"""
    return {
        name: "drop" if name.lower() == "deadletters" and value.strip().lower().startswith("topic:") else value
        for name, value in options.items()
    }


def sends_rows(flow: Flow, source: Source, sink: Sink) -> bool:
    """Whether the query of a sink sends a source's rows that break its rules to where its letters go. A table has each
    letter once, so all may bring them there; a topic has them from one query."""
    dead = any(each.otherwise is Otherwise.DEAD for each in source.expect)
    to_table = (source.dead_letters or "").startswith("table:")
    return dead and (to_table or flow.carrier(source) == sink)


def start_options(start: str) -> dict[str, str]:
    """Where to begin, as the source's options say it."""
    if start in (EARLIEST, LATEST) or start.startswith(("{", "table:")):
        return {"startingOffsets": start}
    # Nobody has written since: then there is nothing to read yet, and that is no mistake.
    return {"startingTimestamp": str(millis_of(start)), "startingOffsetsByTimestampStrategy": LATEST}


def millis_of(time: str) -> int:
    """An ISO time in milliseconds; UTC where it names no zone."""
    moment = datetime.fromisoformat(time)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def lake_options(flow: Flow, sink: Sink, *, path: str | None = None) -> dict[str, str]:
    """Options of format("penstock-lake") for a table."""
    made = {
        **keyed_table_options(sink),
        "path": path or flow.table_path(sink),
        "table.format": sink.table_format,
        "rows": flow.rows_of(sink),
        **_told_feed(flow, sink),
        **table_options(flow, sink),
    }
    if sink.partition_by:
        made["partition.by"] = ",".join(sink.partition_by)
    if sink.dead_letters is not None:
        made["deadLetters"] = _dead_letters(flow, sink.dead_letters)
    if sink.judges and (rules := rules_of(flow.expected_of(sink.reads), sink.expect)):
        made["expect"] = to_option(rules)
    return _over(made, dict(sink.options))


def _told_feed(flow: Flow, sink: Sink) -> dict[str, str]:
    """A table that is made of tables has no log that goes on after it by itself."""
    if flow.references_of(sink) or any(source.table is not None for source in flow.lineage(sink)[0]):
        return {}
    return {"feed": feed_of(flow, sink).to_property()}


def feed_of(flow: Flow, sink: Sink) -> Feed:
    """What the table says of its origin: whoever reads the log beside the table makes the same rows of it."""
    sources, steps = flow.lineage(sink)
    rows, query = flow.rows_of(sink), flow.query_name(sink)
    told = [each for step in steps for each in _held_to(step.expect, step.name, step.sql)]
    if len(sources) == 1:
        (source,) = sources
        before = _held_to(source.expect, source.name, "")[1:]
        view = f"{source.name}{_ALL}" if before else source.name
        last = _held_to(sink.expect, f"{sink.reads}{_KEPT}", f"SELECT * FROM {sink.reads}")
        told = [*before, *told, *(last if len(last) > 1 else [])]
        options = source_options(flow, source)
        return Feed.of_source(options, view=view, steps=told, rows=rows, query=query, cdc=source.cdc)
    topics = tuple(topic for source in sources for topic in source.topics)
    return Feed(flow.bootstrap or DEFAULT_BOOTSTRAP, topics=topics, steps=tuple(told), rows=rows, query=query)


def _held_to(expectations: tuple[Expectation, ...], name: str, sql: str | None) -> list[FeedStep]:
    """A step and, where rows are left out of what it makes, the step that leaves them out."""
    rules = [each.rule for each in expectations if each.otherwise in (Otherwise.DROP, Otherwise.DEAD)]
    if not rules:
        return [FeedStep(name, sql)]
    holds = " AND ".join(f"coalesce(({rule}), false)" for rule in rules)
    return [FeedStep(f"{name}{_ALL}", sql), FeedStep(name, f"SELECT * FROM {name}{_ALL} WHERE {holds}")]


def topic_options(flow: Flow, sink: Sink) -> dict[str, str]:
    """Options of format("penstock") as a sink."""
    client = {name: value for name, value in _client(flow).items() if name.lower() != _OF_READERS}
    once = {EXACTLY_ONCE: "true"} if sink.exactly_once else {}
    if sink.exactly_once and once_settings(flow).get(STAGE_ATTEMPTS) == "1":
        once[STAGES_ONCE] = "true"
    return _over({**client, "topic": sink.target, **once}, dict(sink.options))


def once_settings(flow: Flow) -> dict[str, str]:
    """What sinks that write in transactions want of the session, unless the file says otherwise: a stage whose input
    was lost is not begun again, its batch is."""
    if not any(sink.exactly_once for sink in flow.sinks):
        return {}
    return {STAGE_ATTEMPTS: str(flow.spark.settings.get(STAGE_ATTEMPTS, "1"))}


def plain_options(sink: Sink) -> dict[str, str]:
    """Options of Spark's own sinks."""
    return {name: value for name, value in sink.options.items() if name != MIRROR_OPTION}


def _client(flow: Flow) -> dict[str, str]:
    settings = {f"kafka.{name.removeprefix('kafka.')}": value for name, value in flow.kafka.items()}
    return {**settings, "kafka.bootstrap.servers": flow.bootstrap or DEFAULT_BOOTSTRAP}


def _topics(source: Source) -> dict[str, str]:
    if source.pattern is not None:
        return {"subscribePattern": source.pattern}
    return {"subscribe": ",".join(source.topics)}


def _dead_letters(flow: Flow, given: str) -> str:
    """A table without a place lies in the warehouse, like every other table of the file."""
    kind, _, where = given.partition(":")
    if kind != "table" or where.startswith("/") or "://" in where:
        return given
    return f"table:{flow.warehouse}/{where}"


def _over(made: dict[str, str], given: dict[str, str]) -> dict[str, str]:
    """Spark's options are the same in any case: what is given replaces what was made."""
    names = {name.lower() for name in given}
    return {**{name: value for name, value in made.items() if name.lower() not in names}, **given}
