"""Who fetches the evidence when all has come to rest: the count from the writer, everything else from where it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.client.admin import Admin
from penstock.client.arrow import record_batch
from penstock.client.consumer import Consumer
from penstock.client.spans import Piece, Span, SpanReader
from penstock.demo.evidence import Arrival, Evidence, Findings, Landing, Timings
from penstock.demo.measures import speed
from penstock.demo.plan import LETTERS, MINUTES, TABLE, TOPIC
from penstock.demo.processes import DemoFailed
from penstock.demo.stage import Stage
from penstock.demo.traffic import number_of
from penstock.spark.values.dead_letters import HEADER_OFFSET, HEADER_PARTITION, HEADER_TOPIC

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.kernels import ConsumerRecord
    from penstock.spark.lake.store import TableStore

READ_WITHIN_S = 30.0


class Shown(NamedTuple):
    """What a topic shows to readers of committed records."""

    absent: frozenset[tuple[int, int]]
    """Partition and offset where it shows none."""
    lines: list[int]
    """The number in each record."""


async def gather(stage: Stage, timings: Timings) -> Findings:
    """Everything anew: nothing that was seen on the way is believed."""
    count = stage.count()
    if count is None or not count.done:
        raise DemoFailed("the writer left no count, so nothing can be checked")
    reach = stage.reach
    letters, minutes = await asyncio.gather(read_all(reach, LETTERS), read_all(reach, MINUTES))
    async with Admin(**reach) as admin:
        topic = await admin.describe_topic(TOPIC, configs=False)
    ranges = {each.partition: (each.start, each.end) for each in topic.partitions}
    shown = await shown_by(reach, TOPIC, ranges)
    store, rows = await asyncio.to_thread(_table, stage)
    clean, words = await asyncio.to_thread(_audit, store, reach)
    sums_clean, sums_words = await asyncio.to_thread(_audit_sums, stage)
    partitions, offsets = rows["_partition"].to_pylist(), rows["_offset"].to_pylist()
    evidence = Evidence(
        written=count.lines,
        broken=frozenset(count.broken),
        topic=ranges,
        absent=shown.absent,
        rows=list(map(Arrival, partitions, offsets, rows["line"].to_pylist())),
        letters=[arrival_of(each) for each in letters],
        minutes_in_table=_by_minute(rows),
        minutes_in_topic=newest_sums(minutes),
        audit_clean=clean,
        audit_words=words,
        shipped=shown.lines,
        sums_clean=sums_clean,
        sums_words=sums_words,
    )
    measured = speed(
        lines=count.day_lines,
        size_bytes=count.day_bytes,
        seconds=count.day_s,
        rows=zip(partitions, offsets, rows["written_ms"].to_pylist(), strict=True),
        landings=landings_of(store),
    )
    return Findings(evidence, measured, timings)


async def read_all(reach: Mapping[str, Any], topic: str) -> list[ConsumerRecord]:
    """Every committed record that the topic has now."""
    found: list[ConsumerRecord] = []
    settings: dict[str, Any] = {**reach, "isolation_level": "read_committed"}
    async with asyncio.timeout(READ_WITHIN_S), Consumer(**settings) as consumer:
        partitions = [(topic, each) for each in await consumer.partitions_for(topic)]
        ends = await consumer.end_offsets(*partitions)
        consumer.assign(partitions)
        consumer.seek_to_start()
        waiting = {place for place in partitions if ends[place] > 0}  # type: ignore[index]  # TopicPartition is a tuple
        while waiting:
            found += await consumer.poll(timeout_ms=500)
            # As above: a TopicPartition is a tuple.
            waiting = {place for place in waiting if await consumer.position(place) < ends[place]}  # type: ignore[index]
    return found


async def shown_by(reach: Mapping[str, Any], topic: str, ranges: Mapping[int, tuple[int, int]]) -> Shown:
    """Everything in these ranges, as a reader of committed records sees it."""
    spans = [Span(topic, "", partition, start, end) for partition, (start, end) in ranges.items() if start < end]
    left = {span.partition: set(range(span.start, span.end)) for span in spans}
    lines: list[int] = []
    settings: dict[str, Any] = {**reach, "isolation_level": "read_committed"}
    async with asyncio.timeout(READ_WITHIN_S), SpanReader(**settings) as reader:
        async for item in reader.read(spans):
            if isinstance(item, Piece):
                records = record_batch(item.sink, topic, item.span.partition)
                left[item.span.partition].difference_update(records.column("offset").to_pylist())
                lines += map(number_of, records.column("value").to_pylist())
    absent = ((partition, offset) for partition, offsets in left.items() for offset in offsets)
    return Shown(frozenset(absent), lines)


def arrival_of(letter: ConsumerRecord) -> Arrival:
    """Where a dead letter comes from, by its headers, and which line it is."""
    headers = {name: value or b"" for name, value in letter.headers}
    if headers.get(HEADER_TOPIC) != TOPIC.encode():
        return Arrival(-1, letter.offset, -1)
    return Arrival(int(headers[HEADER_PARTITION]), int(headers[HEADER_OFFSET]), number_of(letter.value or b""))


def newest_sums(minutes: list[ConsumerRecord]) -> dict[str, int]:
    """Minute → requests; the newest record of a minute counts, as compaction leaves it."""
    newest = {record.key: record.value for record in sorted(minutes, key=lambda record: record.offset)}
    sums = (json.loads(value) for value in newest.values() if value is not None)
    return {str(each["minute"]): int(each["requests"]) for each in sums}


def landings_of(store: TableStore) -> list[Landing]:
    return [
        Landing(each.time_ms, tuple((one.partition, one.start, one.end) for one in each.ranges), each.rows)
        for each in store.commits()
        if each.ranges
    ]


def _table(stage: Stage) -> tuple[TableStore, pa.Table]:
    from penstock.spark.lake.query import dataset_of
    from penstock.spark.lake.warehouse import Warehouse

    store = Warehouse(str(stage.warehouse)).find(TABLE).open()
    return store, dataset_of(store).to_table(columns=["_partition", "_offset", "line", "written_ms", "time"])


def _by_minute(rows: pa.Table) -> dict[str, int]:
    import pyarrow.compute as pc

    minutes = pc.strftime(pc.floor_temporal(rows["time"], unit="minute"), format="%Y-%m-%dT%H:%M")
    counted = pc.value_counts(minutes)
    return dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))


def _audit(store: TableStore, reach: Mapping[str, Any]) -> tuple[bool, str]:
    from penstock.spark.lake.audit import audit
    from penstock.spark.recount import recount_for

    found = audit(store, recount_for(store, settings_for=lambda _: reach))
    if found.clean:
        return True, f"clean: {found.commits:,} commits, no offset skipped or doubled"
    worst = next(each for each in found.findings if each.severity != "note")
    return False, f"not clean: {worst.meaning}"


def _audit_sums(stage: Stage) -> tuple[bool, str]:
    """What `penstock pipeline audit` says of the topic of sums."""
    from penstock.spark.pipeline.auditing import audit_topics
    from penstock.spark.pipeline.reading import read_flow

    flow = read_flow(stage.folder / "pipeline.toml")
    # The pipeline itself may not read what it writes.
    ((_, found),) = audit_topics(flow.on(kafka={"client.config": stage.reach["client_config"]}))
    if found.clean:
        return True, f"clean: {found.decisions:,} decisions, {found.rows:,} records in transactions, none beside them"
    return False, f"not clean: {found.findings[0]}"
