"""Printing what is read: the loop behind `penstock consume` and `penstock tail`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.progress import Progress
from penstock.cli.suggesting import suggesting
from penstock.client.consumer import Consumer
from penstock.client.errors import UnknownTopic
from penstock.client.settings import ConsumerSettings
from penstock.model.errors import UNKNOWN_TOPIC_OR_PARTITION
from penstock.model.ids import TopicPartition
from penstock.model.units import count
from penstock.operations.records.offsets import Point, Range, place

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.kernels import ConsumerRecord
    from penstock.operations.records.matching import Matcher
    from penstock.operations.records.writing import Piece

POLL_RECORDS = 2_000
POLL_MS = 200
FURTHER_BACK = 4


@dataclass(slots=True)
class Job:
    """What to print. `tail` says how many of the records that are there already; None leaves it to `where`."""

    topics: tuple[str, ...]
    regex: bool
    partitions: tuple[int, ...]
    where: Range
    write: Piece
    limit: int | None
    keywords: dict[str, Any]
    connection: Connection
    tail: int | None = None
    matches: Matcher | None = None


@dataclass(slots=True)
class Span:
    """A partition's records from `first` up to `stop` (None: for ever); the log is there from `start` to `end` now."""

    first: int
    stop: int | None
    start: int
    end: int


class Printer:
    """Writes records and counts them."""

    def __init__(self, write: Piece, limit: int | None, matches: Matcher | None) -> None:
        self._write, self._limit, self._matches, self.count = write, limit, matches, 0
        self._progress = Progress("read", wanted=not sys.stdout.isatty())

    @property
    def full(self) -> bool:
        return self._limit is not None and self.count >= self._limit

    def left(self, most: int) -> int:
        """How many records are taken at once: as many as are printed, where that is known beforehand."""
        return most if self._limit is None else min(most, self._limit - self.count)

    def print(self, records: Sequence[ConsumerRecord]) -> None:
        out, write, size = sys.stdout.buffer, self._write, 0
        for record in records:
            if self._matches is not None and not self._matches(record):
                continue
            if self.full:
                break
            self.count += 1
            size += len(record.key or b"") + len(record.value or b"")
            out.write(write(record, self.count))
        out.flush()
        self._progress.add(len(records), size)

    def close(self) -> None:
        self._progress.close()
        if self._matches is not None and self._matches.unreadable:
            larger = count("record", self._matches.unreadable)
            click.echo(f"{larger} of more than 1 MiB not looked into", err=True)


async def run(job: Job) -> None:
    ConsumerSettings.of(job.keywords)  # what is wrong with them is told before anybody is asked
    printer = Printer(job.write, job.limit, job.matches)
    try:
        if "group_id" in job.keywords:
            await _in_group(job, printer)
        else:
            await _alone(job, printer)
    finally:
        printer.close()


async def _in_group(job: Job, printer: Printer) -> None:
    consumer = Consumer(**job.keywords)
    if job.regex:
        consumer.subscribe(pattern="|".join(f"(?:{text})" for text in job.topics))
    else:
        async with job.connection.admin() as admin, suggesting(admin, topics=job.topics):
            (await admin.describe_topics(job.topics, offsets=False, configs=False)).checked()
        consumer.subscribe(job.topics)
    async with consumer:
        while not printer.full:
            # Only what is printed is taken: what is left of a larger poll would be committed too.
            printer.print(await consumer.poll(printer.left(POLL_RECORDS), timeout_ms=POLL_MS))


async def _alone(job: Job, printer: Printer) -> None:
    partitions = await _partitions(job)
    if job.tail:
        last = await _spans(job, partitions, Range(Point("end", -job.tail), Point("end")))
        records = await _last(job, last, job.tail)
        records.sort(key=lambda record: (record.timestamp, record.topic, record.partition, record.offset))
        printer.print(records[-job.tail :])
        following = {item: Span(span.end, None, span.start, span.end) for item, span in last.items()}
    else:
        following = await _spans(job, partitions, job.where)
    # Of what is only looked at nobody knows how many will be printed.
    left = printer.left if job.matches is None else lambda most: most
    await _read(job, following, printer.print, lambda: printer.full, left)


async def _last(job: Job, spans: dict[TopicPartition, Span], number: int) -> list[ConsumerRecord]:
    """The last `number` records of each partition, or all it has.

    Markers, aborted records and what compaction took have offsets too, so a partition that gave too few records is read
    again from further back.
    """
    records: list[ConsumerRecord] = []
    behind = number
    while spans:
        of_partition: dict[TopicPartition, list[ConsumerRecord]] = {item: [] for item in spans}

        def take(
            found: Sequence[ConsumerRecord], into: dict[TopicPartition, list[ConsumerRecord]] = of_partition
        ) -> None:
            for record in found:
                into[TopicPartition(record.topic, record.partition)].append(record)

        await _read(job, spans, take, lambda: False)
        behind *= FURTHER_BACK
        again = {}
        for item, span in spans.items():
            if len(of_partition[item]) < number and span.first > span.start:
                again[item] = Span(max(span.end - behind, span.start), span.end, span.start, span.end)
            else:
                records += of_partition[item][-number:]
        spans = again
    return records


async def _partitions(job: Job) -> list[TopicPartition]:
    async with job.connection.admin() as admin:
        if job.regex:
            patterns = [_pattern(text) for text in job.topics]
            topics = [t for t in await admin.topics() if any(pattern.fullmatch(t.name) for pattern in patterns)]
            if not topics:
                words = " or ".join(map(repr, job.topics))
                raise UnknownTopic(f"no topic matches {words}", error=UNKNOWN_TOPIC_OR_PARTITION)
        else:
            async with suggesting(admin, topics=job.topics):
                found = await admin.describe_topics(job.topics, offsets=False, configs=False)
                topics = list(found.checked().values())
    everything = [TopicPartition(topic.name, each.partition) for topic in topics for each in topic.partitions]
    if not job.partitions:
        return everything
    chosen = [item for item in everything if item.partition in job.partitions]
    for number in job.partitions:
        if all(item.partition != number for item in chosen):
            where = f"partition {number} of {', '.join(topic.name for topic in topics)}"
            raise UnknownTopic(f"{where} does not exist", error=UNKNOWN_TOPIC_OR_PARTITION)
    return chosen


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as wrong:
        raise click.BadParameter(f"{text!r} is no regular expression: {wrong}", param_hint="TOPIC") from None


async def _spans(job: Job, partitions: list[TopicPartition], where: Range) -> dict[TopicPartition, Span]:
    """Where each partition begins and stops, from where its log begins and ends now."""
    committed = job.keywords.get("isolation_level") == "read_committed"
    async with job.connection.admin() as admin:
        starts = (await admin.offsets(dict.fromkeys(partitions, "earliest"))).checked()
        ends = (await admin.offsets(dict.fromkeys(partitions, "latest"), read_committed=committed)).checked()
        at_times: dict[TopicPartition, dict[int, int]] = {item: {} for item in partitions}
        for moment in where.times():
            found_at = await admin.offsets(dict.fromkeys(partitions, moment), read_committed=committed)
            for item, found in found_at.checked().items():
                at_times[item][moment] = found.offset
    spans = {}
    for item in partitions:
        start, end = starts[item].offset, ends[item].offset
        first = place(where.first, start, end, at_times[item])
        stop = None if where.until is None else place(where.until, start, end, at_times[item])
        spans[item] = Span(first, stop, start, end)
    return spans


async def _read(
    job: Job,
    spans: dict[TopicPartition, Span],
    take: Any,
    full: Any,
    left: Any = lambda most: most,
) -> None:
    """Gives what lies in the spans to `take`, until all of them are through or it has enough."""
    open_spans = {item: span for item, span in spans.items() if span.stop is None or span.first < span.stop}
    if not open_spans:
        return
    keywords = {**job.keywords, "offset_reset": "earliest"}
    async with Consumer(**keywords) as consumer:
        consumer.assign(open_spans)
        for item, span in open_spans.items():
            # An offset that is still to come is waited for at the end.
            consumer.seek(item, min(span.first, max(span.end, 0)))
        while open_spans and not full():
            records = await consumer.poll(POLL_RECORDS, timeout_ms=POLL_MS)
            wanted = [record for record in records if _within(record, open_spans)]
            if wanted:
                take(wanted[: left(len(wanted))])
            for item in await _finished(consumer, open_spans, records):
                del open_spans[item]
                consumer.pause(item)


def _within(record: ConsumerRecord, spans: dict[TopicPartition, Span]) -> bool:
    span = spans.get(TopicPartition(record.topic, record.partition))
    return span is not None and record.offset >= span.first and (span.stop is None or record.offset < span.stop)


async def _finished(
    consumer: Consumer, spans: dict[TopicPartition, Span], records: Sequence[ConsumerRecord]
) -> list[TopicPartition]:
    """Partitions that are through. Positions count, not records: the last offset may hold a marker or nothing."""
    bounded = [item for item, span in spans.items() if span.stop is not None]
    if records:
        last = {TopicPartition(record.topic, record.partition): record.offset for record in records}
        return [item for item in bounded if item in last and last[item] + 1 >= (spans[item].stop or 0)]
    return [item for item in bounded if await consumer.position(item) >= (spans[item].stop or 0)]
