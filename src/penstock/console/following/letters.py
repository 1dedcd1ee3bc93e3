"""Where a record that became no row was put aside: a topic of dead letters says in headers whose letters they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from penstock.client.admin import Admin
from penstock.console.following.way import (
    LETTER_ERROR,
    LETTER_OFFSET,
    LETTER_PARTITION,
    LETTER_TOPIC,
    FoundLetter,
    FoundRecord,
)
from penstock.console.messages.places import LogEnds, ends_of, positions_of
from penstock.console.messages.reading import Budget, Ranges, consumer_of, read_ranges

if TYPE_CHECKING:
    from penstock.client.consumer import ConsumerRecord
    from penstock.console.messages.thread import ReadingThread
    from penstock.spark.progress.status import PipelineStatus

TOPICS_MAX: Final = 3
SECONDS: Final = 4.0
BYTES_MAX: Final = 32 << 20
RECORDS_MAX: Final = 100_000
_NAMED: Final = ("dead", "letter", "dlq")


def letter_topics(topics: Iterable[str], told: Iterable[str]) -> list[str]:
    """Those that pipelines name, then those whose names say what they are for. Pure."""
    visible = set(topics)
    named = [topic for topic in dict.fromkeys(told) if topic in visible]
    hinted = sorted(topic for topic in visible if any(word in topic.lower() for word in _NAMED))
    return list(dict.fromkeys([*named, *hinted]))[:TOPICS_MAX]


def topics_in_file(pipeline: PipelineStatus) -> list[str]:
    """What a pipeline's file says, where it is on this machine and as it was run."""
    from penstock.console.pipelines.here import flow_here

    flow = flow_here(pipeline)
    if flow is None:
        return []
    given = [source.dead_letters or "" for source in flow.sources]
    return [text.partition(":")[2].strip() for text in given if text.startswith("topic:")]


async def find_in_topic(
    admin: Admin,
    reading: ReadingThread,
    keywords: Mapping[str, Any],
    letters: str,
    record: FoundRecord,
    now_ms: int,
) -> FoundLetter | None:
    """The letter of a record, looked for from the record's own time on, within bounds."""
    ends = await ends_of(admin, letters, None, committed=False)
    since = str(max(record.timestamp_ms, 0))
    froms = await positions_of(admin, letters, f"time:{since}" if record.timestamp_ms >= 0 else "oldest", ends, now_ms)
    return await reading.do(_read(keywords, letters, froms, ends, record))


async def _read(
    keywords: Mapping[str, Any], letters: str, froms: Mapping[int, int], ends: LogEnds, record: FoundRecord
) -> FoundLetter | None:
    """On the reading thread."""
    found: list[FoundLetter] = []
    async with consumer_of(keywords, letters, list(froms)) as consumer:
        ranges = Ranges(consumer, letters, froms, ends.ends)

        def take(each: ConsumerRecord) -> None:
            headers = texts_of(each.headers)
            place = (headers.get(LETTER_TOPIC), headers.get(LETTER_PARTITION), headers.get(LETTER_OFFSET))
            if place == (record.topic, str(record.partition), str(record.offset)):
                error = headers.get(LETTER_ERROR, "no reason was told")
                found.append(FoundLetter(f"topic {letters}", error, letters, each.partition, each.offset))
                for partition in list(ranges.open):
                    ranges.leave(partition)

        await read_ranges(ranges, Budget(SECONDS, BYTES_MAX, RECORDS_MAX), take)
    return found[0] if found else None


def texts_of(headers: Iterable[tuple[str, bytes | None]]) -> dict[str, str]:
    """Headers by name, the first of each; what is no text is told as what can be told of it."""
    found: dict[str, str] = {}
    for name, value in headers:
        found.setdefault(name, (value or b"").decode("utf-8", "replace"))
    return found
