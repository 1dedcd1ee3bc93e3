"""The way of one record, as the person who asks sees it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response

from penstock.client.errors import ClientError
from penstock.console.answers import answer
from penstock.console.commands import command
from penstock.console.failures import Declined, bad_request
from penstock.console.following.letters import find_in_topic, letter_topics, texts_of, topics_in_file
from penstock.console.following.way import (
    FoundBatch,
    FoundCommit,
    FoundGroup,
    FoundLetter,
    FoundRecord,
    Way,
    steps,
)
from penstock.console.listings import whole_number
from penstock.console.messages.pages import page_forwards
from penstock.console.messages.places import LogEnds, ends_of
from penstock.console.pipelines.sights import visible
from penstock.console.routes.declaring import declared
from penstock.console.routes.desk import Desk, desk_of, now_ms
from penstock.console.routes.shapes import Followed
from penstock.model.errors import PenstockError
from penstock.model.ids import TopicPartition
from penstock.spark.progress.status import PipelineStatus

if TYPE_CHECKING:
    from penstock.console.tables.seen import SeenTable

TABLES_ASKED_MAX: Final = 3


@declared(query=Followed)
async def follow(request: Request) -> Response:
    desk, query = await desk_of(request), request.query_params
    topic = query.get("topic", "")
    if not topic or "partition" not in query or "offset" not in query:
        raise bad_request("topic, partition and offset: which record?")
    partition = whole_number(query, "partition", 0, (1 << 31) - 1)
    offset = whole_number(query, "offset", 0, (1 << 63) - 2)
    record = await _record(desk, topic, partition, offset)
    pipelines = await _pipelines(desk, record)
    way = Way(
        record=record,
        groups=_groups(desk, record),
        batches=[batch for each in pipelines for batch in _batches(each, record)],
        **await _beyond(desk, record, pipelines, query.get("letters", "")),
    )
    same = command("consume", names=[topic], options=["-p", str(partition), f"--offset={offset}", "-n", "1"])
    return answer({"steps": steps(way), "command": same})


async def _record(desk: Desk, topic: str, partition: int, offset: int) -> FoundRecord:
    """Read as this person, who is refused here if they may not."""
    ends = await ends_of(desk.acting.admin, topic, [partition], committed=False)
    if partition not in ends.ends:
        raise Declined(404, "not_found", f"topic {topic!r} has no partition {partition}")
    start, end = ends.starts[partition], ends.ends[partition]
    one = LogEnds({partition: offset}, {partition: offset + 1})
    # Whoever may describe a topic and not read it is refused, whether or not there is a record.
    within = start <= offset < end
    probe = one if within else LogEnds({partition: start}, {partition: min(start + 1, end)})
    at = offset if within else start
    page = await desk.shared.reading.do(page_forwards(desk.acting.consumer_keywords, topic, {partition: at}, probe, 1))
    if not within or not page.records:
        return FoundRecord(topic, partition, offset, start, end, there=False)
    found = page.records[0]
    return FoundRecord(
        topic, partition, offset, start, end, there=True, timestamp_ms=found.timestamp, headers=texts_of(found.headers)
    )


def _groups(desk: Desk, record: FoundRecord) -> list[FoundGroup]:
    item = TopicPartition(record.topic, record.partition)
    return [
        FoundGroup(group, positions[item].offset)
        for group, positions in desk.seeing().picture.committed.items()
        if item in positions and desk.vision.group(group)
    ]


async def _pipelines(desk: Desk, record: FoundRecord) -> list[PipelineStatus]:
    try:
        heard = await desk.shared.lakeside.heard(desk.sampler.address.name).look()
    except PenstockError:
        return []
    seen = visible(desk.vision, heard.pipelines.values())
    return [each for each in seen if _batches(each, record)]


def _batches(pipeline: PipelineStatus, record: FoundRecord) -> list[FoundBatch]:
    return [
        FoundBatch(
            pipeline.name,
            query.query.removeprefix(f"{pipeline.name}-"),
            query.query_id,
            partition.offset,
            pipeline.state,
        )
        for query in pipeline.queries
        for partition in query.partitions
        if (partition.topic, partition.partition) == (record.topic, record.partition)
    ]


async def _beyond(desk: Desk, record: FoundRecord, pipelines: list[PipelineStatus], given: str) -> dict[str, Any]:
    """Tables that have it, and letters where one of them may have put it aside."""
    tables: dict[str, SeenTable] = {}
    letter_tables: list[SeenTable] = []
    if desk.shared.settings.warehouses:
        from penstock.console.following.rows import is_of_letters

        look, tables = await desk.shared.lakeside.tables(desk)
        letter_tables = [table for table in look.tables.values() if is_of_letters(table)]
    commits = await _commits(desk, record, tables)
    # A record that is known to have become a row, or that nobody has had yet, is nobody's letter.
    settled = bool(commits) and all(each.row is not None or each.version is None for each in commits)
    had = any(batch.position > record.offset for each in pipelines for batch in _batches(each, record))
    if settled or not record.there or not (commits or had or given):
        return {"commits": commits}
    queries = {query.query for each in pipelines for query in each.queries}
    queries |= {feed.query for each in commits if (feed := tables[each.table].feed) is not None}
    asked = letter_tables[:TABLES_ASKED_MAX]
    letters, looked = await _letters(desk, record, pipelines, asked, given, queries)
    return {"commits": commits, "letters": letters, "looked": looked}


async def _commits(desk: Desk, record: FoundRecord, tables: dict[str, SeenTable]) -> list[FoundCommit]:
    topic = desk.seeing().picture.topics.get(record.topic)
    topic_id, asked, found = topic.id if topic else "", 0, []
    for table in tables.values():
        ids = table.names.get(record.topic, frozenset())
        if not ids & {topic_id, ""}:
            continue
        named = (topic_id, record.topic)
        keys = [key for key in table.committed if key.partition == record.partition and key.topic in named]
        stands = max((table.committed[key] for key in keys), default=None)
        commit = table.spans.find(record.topic, topic_id, record.partition, record.offset)
        row, sought = None, False
        if commit is not None and asked < TABLES_ASKED_MAX:
            asked += 1
            row, sought = await _row(desk, table, record)
        found.append(
            FoundCommit(
                table.name,
                stands,
                None if commit is None else commit.version,
                0 if commit is None else commit.time_ms,
                -1 if commit is None else commit.batch_id,
                "" if commit is None else commit.query_id,
                0 if commit is None else commit.dead,
                table.spans.replaced_by,
                row,
                sought,
            )
        )
    return found


async def _row(desk: Desk, table: SeenTable, record: FoundRecord) -> tuple[str | None, bool]:
    """The row, and whether it was looked for: a busy console, or a slow table, tells the rest of the way."""
    from penstock.console.following.rows import find_row, keeps_places

    if not keeps_places(table) or not desk.shared.lakeside.has_sql:
        return None, False
    try:
        return await find_row(desk.shared.lakeside.sql, desk.person, table, record), True
    except Declined:
        return None, False


async def _letters(
    desk: Desk,
    record: FoundRecord,
    pipelines: list[PipelineStatus],
    letter_tables: list[SeenTable],
    given: str,
    queries: set[str],
) -> tuple[list[FoundLetter], list[str]]:
    found: list[FoundLetter] = []
    looked: list[str] = []
    if letter_tables and desk.shared.lakeside.has_sql:
        from penstock.console.following.rows import find_letters

        try:
            letters = await find_letters(desk.shared.lakeside.sql, desk.person, letter_tables, record)
            # A topic of another cluster may have the same name: only letters of queries that are known here count.
            found += [letter for letter in letters if letter.query in queries]
            looked += [f"table {table.own_name}" for table in letter_tables]
        except Declined:
            pass  # the rest of the way is told
    told = [given] if given else []
    for pipeline in pipelines:
        told += await asyncio.to_thread(topics_in_file, pipeline)
    seen = [name for name in desk.seeing().picture.topics if desk.vision.topic(name)]
    for topic in letter_topics(seen, told):
        reach = (desk.acting.admin, desk.shared.reading, desk.acting.consumer_keywords)
        try:
            letter = await find_in_topic(*reach, topic, record, now_ms())
        except ClientError:
            continue  # who may not read the letters is told the rest
        looked.append(f"topic {topic}")
        if letter is not None:
            found.append(letter)
    return found, looked
