"""How many records topics have in the offsets that a table was fed from: for an audit that lacks an explanation.

Markers of transactions, aborted records and what compaction removed have offsets and are no records. The commit of a
batch says how many of them there were, as its tasks told. Where that did not reach it the topic still knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from penstock.client.errors import ClientError
from penstock.client.spans import Span, SpanEnd, SpanLost
from penstock.spark.dialogue import for_process, reader_for
from penstock.spark.errors import Missing
from penstock.spark.feed import Feed
from penstock.spark.lake.audit import Recount
from penstock.spark.lake.store import FEED_PROPERTY, Commit, TableStore
from penstock.spark.source.client_settings import client_settings

PATIENCE_MS: Final = 10_000
"""Of a broker that does not answer."""


class _Trimmed(Exception):
    """What was to be counted was deleted meanwhile."""


def recount_for(
    store: TableStore, bootstrap: str = "", settings_for: Callable[[str], Mapping[str, Any]] = lambda _: {}
) -> Recount | None:
    """Asks the brokers that feed the table, or those at `bootstrap`; None when nobody says which they are.

    `settings_for` an address are a consumer's: how one logs in there, above all.
    """
    text = store.properties().get(FEED_PROPERTY)
    feed = Feed.of_property(text) if text else Feed(bootstrap)
    address = bootstrap or feed.bootstrap
    if not address:
        return None

    def recount(commits: Sequence[Commit]) -> Mapping[int, int]:
        kafka = {name: value for name, value in feed.options.items() if name.startswith("kafka.")}
        given = {name.removeprefix("kafka."): value for name, value in kafka.items()}
        # Whatever decides which records there are is as the table's own query has it.
        settings = client_settings({"default.api.timeout.ms": str(PATIENCE_MS), **given, "bootstrap.servers": address})
        return _counts(settings | {name: str(each) for name, each in settings_for(address).items()}, commits)

    return recount


def _counts(settings: Mapping[str, str], commits: Sequence[Commit]) -> dict[int, int]:
    found: dict[int, int] = {}
    lost: set[str] = set()
    for commit in commits:
        # Who is told once that a topic is gone need not be told again for every commit.
        if lost & {each.topic_id or each.topic for each in commit.ranges}:
            continue
        spans = [Span(each.topic, each.topic_id, each.partition, each.start, each.end) for each in commit.ranges]
        try:
            found[commit.version] = _records(settings, spans)
        except _Trimmed:
            continue
        except SpanLost as gone:
            lost.add(gone.span.topic_id or gone.span.topic)
        except ClientError as failure:
            address = settings["bootstrap_servers"]
            raise Missing(
                f"{address} was to tell how many records there are in {len(commits)} commits that do not say why "
                f"offsets have no row, and does not: {failure}"
            ) from failure
    return found


def _records(settings: Mapping[str, str], spans: Sequence[Span]) -> int:
    def trimmed(span: Span, start: int, end: int) -> None:
        raise _Trimmed(span, start, end)

    reader = reader_for(settings)
    rows = 0
    for item in for_process().iterate(reader.read(spans, on_trimmed=trimmed)):
        if isinstance(item, SpanEnd):
            rows += item.rows
    return rows
