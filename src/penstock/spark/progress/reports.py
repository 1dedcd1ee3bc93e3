"""What a task found missing or undecodable, told to whoever commits its batch.

Spark gives a sink the rows and nothing about those that never became one: offsets that compaction removed, values that
no decoder took. A task tells them in the internal topic before it ends, and the commit of its batch picks them up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from penstock.client.errors import ClientError
from penstock.spark.progress.login import login_of_the_process
from penstock.spark.progress.patience import Resting, within
from penstock.spark.progress.topic import Entry, InternalTopic
from penstock.spark.progress.warnings_once import forget, reason, warn_once

SLACK_MS: Final = 5 * 60_000
"""How far the clocks of a driver and a broker may be apart."""

GAPS_MAX: Final = 100

_resting = Resting(10.0)


@dataclass(frozen=True, slots=True)
class SpanReport:
    """One span of a batch: `rows` were handed on, `dead` could not be decoded, `missing` offsets hold no record.

    `gaps` are the first of the missing ranges `[from, to)`; `missing` counts all of them.
    """

    query_id: str
    batch_id: int
    topic: str
    topic_id: str
    partition: int
    start: int
    end: int
    rows: int
    dead: int
    missing: int
    gaps: tuple[tuple[int, int], ...] = ()

    @property
    def key(self) -> str:
        return f"{_prefix(self.query_id, self.batch_id)}{self.topic}/{self.partition}/{self.start}"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "gaps": [list(gap) for gap in self.gaps[:GAPS_MAX]]}

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> SpanReport:
        """Fields that a later version added are passed over."""
        known = {name: given[name] for name in cls.__slots__ if name in given}
        return cls(**{**known, "gaps": tuple((int(a), int(b)) for a, b in given.get("gaps", ()))})


def publish(settings: Mapping[str, Any], reports: Sequence[SpanReport]) -> bool:
    """For a task before it ends: returns when they are acknowledged, and answers whether they are.

    Never raises, takes two seconds at most, warns once when it cannot: rows and offsets stay right, only the audit of
    the table will not know why some offsets have no row.
    """
    if not reports:
        return True
    if "publish" in _resting:
        return False
    from penstock.spark.dialogue import for_process

    try:
        for_process().run(within(append(settings, reports)))
    except Exception as failure:  # whatever it is, a query does not fail for it
        _resting.begin("publish")
        warn_once(
            "reports",
            words=f"what a batch of query {reports[0].query_id} found missing could not be told to its sink: "
            f"{reason(failure)}. Rows and offsets are right; `penstock lake audit` will not know why some "
            "offsets have no row. Is the broker up, may this user write the topic __penstock_spark?",
        )
        return False
    forget("reports")
    return True


async def append(settings: Mapping[str, Any], reports: Sequence[SpanReport]) -> None:
    """The same for those who have a loop, raising."""
    async with InternalTopic(settings) as topic:
        await topic.append([Entry(report.key, report.to_json()) for report in reports])


def collect(bootstrap: str, query_id: str, batch_id: int, since_ms: int) -> list[SpanReport]:
    """For the commit of a batch: every report that its tasks published before they ended, each span once.

    `since_ms` is any time before the batch's first task, such as the one in Spark's offset log. Never raises, takes
    two seconds at most, warns once when it cannot.
    """
    from penstock.spark.dialogue import admin_for, for_process

    if bootstrap in _resting:
        return []
    try:
        settings = {"bootstrap_servers": bootstrap, **login_of_the_process(bootstrap)}
        topic = InternalTopic(settings, admin=admin_for(settings))
        return for_process().run(within(find(topic, query_id, batch_id, since_ms)))
    except Exception as failure:  # whatever it is, a commit does not fail for it
        _resting.begin(bootstrap)
        warn_once(
            "collect",
            words=f"the reports of batch {batch_id} of query {query_id} could not be read from {bootstrap}: "
            f"{reason(failure)}. Rows and offsets are right; `penstock lake audit` will not know why some "
            "offsets have no row.",
        )
        return []


async def find(topic: InternalTopic, query_id: str, batch_id: int, since_ms: int) -> list[SpanReport]:
    """The same for those who have a loop, raising."""
    try:
        entries, _ = await topic.read(since_ms=max(0, since_ms - SLACK_MS), prefix=_prefix(query_id, batch_id))
    except ClientError:
        await topic.close()
        raise
    return latest(entries)


def latest(entries: Iterable[Entry]) -> list[SpanReport]:
    """One report for each span, the last: a task that was tried again has read its spans again."""
    found: dict[tuple[str, int, int], SpanReport] = {}
    for entry in entries:
        if entry.value is None:
            continue
        try:
            report = SpanReport.of_json(entry.value)
        except (TypeError, ValueError):
            continue
        found[report.topic, report.partition, report.start] = report
    return [found[place] for place in sorted(found)]


def _prefix(query_id: str, batch_id: int) -> str:
    return f"span/{query_id}/{batch_id}/"
