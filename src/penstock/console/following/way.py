"""What was found of a record, as steps in the order in which it goes them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from penstock.model.units import count

State = Literal["done", "waiting", "unknown"]
GROUPS_SHOWN: Final = 20
LETTER_TOPIC: Final = "penstock.topic"
LETTER_PARTITION: Final = "penstock.partition"
LETTER_OFFSET: Final = "penstock.offset"
LETTER_ERROR: Final = "penstock.error"
AGENT_ERROR: Final = "agent.error"


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """The record, or why there is none at its offset."""

    topic: str
    partition: int
    offset: int
    start: int
    end: int
    there: bool
    timestamp_ms: int = -1
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> dict[str, Any]:
        return {"topic": self.topic, "partition": self.partition, "offset": str(self.offset)}


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """A group that reads the partition, and the offset that it reads next."""

    name: str
    position: int


@dataclass(frozen=True, slots=True)
class FoundBatch:
    """A query of a pipeline that reads the partition."""

    pipeline: str
    flow: str
    query_id: str
    position: int
    state: str


@dataclass(frozen=True, slots=True)
class FoundCommit:
    """A table that is fed by the topic. `version` is None where none of its commits has the offset."""

    table: str
    stands: int | None
    """The offset up to which it has the partition."""
    version: int | None = None
    at_ms: int = 0
    batch: int = -1
    query_id: str = ""
    dead: int = 0
    replaced_by: int = -1
    row: str | None = None
    """The row as text, where it could be found."""
    sought: bool = False
    """Whether the row was looked for: the table says where its rows are from, and answered."""


@dataclass(frozen=True, slots=True)
class FoundLetter:
    """Where the record was put aside, and why."""

    place: str
    error: str
    topic: str = ""
    partition: int = -1
    offset: int = -1
    table: str = ""
    query: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """All that was found."""

    record: FoundRecord
    groups: Sequence[FoundGroup] = ()
    batches: Sequence[FoundBatch] = ()
    commits: Sequence[FoundCommit] = ()
    letters: Sequence[FoundLetter] = ()
    looked: Sequence[str] = ()
    """Where letters were looked for."""


Step = dict[str, Any]


def steps(way: Way) -> list[Step]:
    record = way.record
    return [
        *_origin(record),
        _record(record),
        *_groups(way),
        *_batches(way),
        *_tables(way),
        *_letters(way),
    ]


def _step(kind: str, state: State, text: str, **params: Any) -> Step:
    return {"kind": kind, "state": state, "text": text, "params": params}


def _origin(record: FoundRecord) -> Iterator[Step]:
    headers = record.headers
    if LETTER_TOPIC in headers:
        topic, partition, offset = (headers.get(each, "?") for each in (LETTER_TOPIC, LETTER_PARTITION, LETTER_OFFSET))
        why = headers.get(LETTER_ERROR, "no reason was told")
        text = f"this is a dead letter of {topic}-{partition}, offset {offset}: {why}"
        yield _step("dead_letter", "done", text, topic=topic, partition=partition, offset=offset)
    if "path" in headers:
        at = f", byte {headers['offset']}" if "offset" in headers else ""
        host = f" on {headers['host']}" if "host" in headers else ""
        yield _step("file", "done", f"a line of {headers['path']}{at}{host}", path=headers["path"])
    elif "peer" in headers:
        yield _step("file", "done", f"an agent received it from {headers['peer']}")
    if AGENT_ERROR in headers:
        yield _step("dead_letter", "done", f"the agent could not transform it: {headers[AGENT_ERROR]}")


def _record(record: FoundRecord) -> Step:
    name = f"{record.topic}-{record.partition}"
    if record.there:
        return _step("record", "done", f"offset {record.offset} of {name}", **record.place, at_ms=record.timestamp_ms)
    if record.offset >= record.end:
        text = f"{name} ends at offset {record.end}: nothing was written at {record.offset} yet"
        return _step("record", "waiting", text)
    if record.offset < record.start:
        text = f"{name} begins at offset {record.start}: what was at {record.offset} has been deleted"
        return _step("record", "unknown", text)
    text = f"{name} has no record at offset {record.offset}: it was compacted away, aborted, or is a marker"
    return _step("record", "unknown", text)


def _groups(way: Way) -> Iterator[Step]:
    offset = way.record.offset
    # Those that still have to read it come first.
    for group in sorted(way.groups, key=lambda each: (each.position > offset, each.name))[:GROUPS_SHOWN]:
        if group.position > offset:
            text = f"group {group.name} has read past it, up to offset {group.position}"
            yield _step("group", "done", text, group=group.name)
        else:
            before = count("record", offset - group.position)
            text = f"group {group.name} is at offset {group.position}, with {before} to read before it"
            yield _step("group", "waiting", text, group=group.name)
    more = len(way.groups) - GROUPS_SHOWN
    if more > 0:
        yield _step("group", "unknown", f"and {count('group', more)} more read this partition")


def _batches(way: Way) -> Iterator[Step]:
    offset = way.record.offset
    for batch in way.batches:
        name = f"{batch.flow} of pipeline {batch.pipeline}"
        commit = next((each for each in way.commits if each.query_id == batch.query_id and each.batch >= 0), None)
        if commit is not None:
            text = f"batch {commit.batch} of {name} had it"
            yield _step("batch", "done", text, pipeline=batch.pipeline, batch=str(commit.batch))
        elif batch.position > offset:
            text = f"{name} is past it, at offset {batch.position}"
            yield _step("batch", "done", text, pipeline=batch.pipeline)
        else:
            text = f"{name} is {batch.state}, at offset {batch.position}: it has not had it yet"
            yield _step("batch", "waiting", text, pipeline=batch.pipeline)


def _tables(way: Way) -> Iterator[Step]:
    offset = way.record.offset
    for commit in way.commits:
        params = {"table": commit.table}
        if commit.version is None:
            if commit.stands is not None and offset < commit.stands:
                text = f"table {commit.table} has offsets up to {commit.stands}; the commit is older than is remembered"
                yield _step("table", "unknown", text, **params)
            elif commit.stands is not None:
                text = f"table {commit.table} has offsets up to {commit.stands}: it is not there yet"
                yield _step("table", "waiting", text, **params)
            continue
        where = f"version {commit.version} of table {commit.table}"
        params |= {"version": str(commit.version)}
        if commit.replaced_by > commit.version:
            text = f"{where} brought it; version {commit.replaced_by} has replaced all rows since"
            yield _step("table", "done", text, **params)
        elif commit.row is not None:
            yield _step("table", "done", f"it is a row since {where}: {commit.row}", **params)
        elif commit.sought and way.letters:
            yield _step("table", "done", f"{where} covers it, and has no row of it: it is a dead letter", **params)
        elif commit.sought:
            text = f"{where} covers it, and has no row of it: a step left it out, a later version removed it, or it is"
            yield _step("table", "done", f"{text} a dead letter", **params)
        else:
            dead = f", {count('dead letter', commit.dead)} among them" if commit.dead else ""
            text = f"{where} brought the offsets around it{dead}; the table does not keep where its rows are from"
            yield _step("table", "done", text, **params)


def _letters(way: Way) -> Iterator[Step]:
    for letter in way.letters:
        params: dict[str, Any] = {"table": letter.table} if letter.table else {}
        if letter.topic:
            params = {"topic": letter.topic, "partition": letter.partition, "offset": str(letter.offset)}
        yield _step("dead_letter", "done", f"put aside in {letter.place}: {letter.error}", **params)
    if not way.letters and way.looked and any(each.dead and each.row is None for each in way.commits):
        text = f"not found among the dead letters of {', '.join(way.looked)}"
        yield _step("dead_letter", "unknown", text)
