"""One table as it was looked at last. A look costs as much as what was committed since the one before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from penstock.console.tables.spans import SpanIndex
from penstock.spark.errors import BadOption
from penstock.spark.feed import Feed

if TYPE_CHECKING:
    from penstock.spark.lake.ranges import RangeKey
    from penstock.spark.lake.store import Commit, TableStore
    from penstock.spark.lake.warehouse import TableName

RECENT_MAX: Final = 200


@dataclass(slots=True)
class SeenTable:
    """What is known of a table. Made and changed in the thread that looks; `Look` has finished ones only."""

    found: TableName
    warehouse: str
    """The directory that it was found in, as the console was given it."""
    own_name: str
    """What it is called there."""
    version: int | None = None
    location: str = ""
    rows: int | None = None
    files: int | None = None
    bytes: int | None = None
    columns: tuple[tuple[str, str, bool], ...] = ()
    feed: Feed | None = None
    names: dict[str, frozenset[str]] = field(default_factory=dict)
    """The topics that its commits name, and the ids that these had. "" where none was known."""
    unexplained: bool = False
    """Whether a batch brought rows and said of no topic that they are from it."""
    committed: dict[RangeKey, int] = field(default_factory=dict)
    begun: dict[RangeKey, int] = field(default_factory=dict)
    """The first offset of each partition that is remembered."""
    recent: tuple[Commit, ...] = ()
    """The newest commits, newest first, without their ranges."""
    queries: frozenset[str] = frozenset()
    """The ids of queries that have committed batches."""
    dead: dict[str, int] = field(default_factory=dict)
    """Dead letters by the id of the query."""
    spans: SpanIndex = field(default_factory=SpanIndex)
    """Goes on with the next look; others may `find` in it meanwhile."""
    problem: str = ""
    """Why it cannot be read."""

    @property
    def name(self) -> str:
        return self.found.name

    @property
    def format(self) -> str:
        return self.found.format

    def topic_of(self, key: RangeKey) -> str:
        """The name of the topic of a key, which may be an id."""
        return next((name for name, ids in self.names.items() if key.topic in ids), key.topic)


def look(found: TableName, warehouse: str, own_name: str, before: SeenTable | None) -> SeenTable:
    """The table as it is now. What cannot be read says so, and is no failure of anybody else's."""
    try:
        store = found.open()
        version = store.version()
        if before is not None and before.version == version and not before.problem:
            return before
        same = before is not None and before.location == store.location and before.spans.newest <= version
        spans = before.spans if before is not None and same else _remembered(store)
        spans.put(store.commits(after=spans.newest))
        return _seen(found, warehouse, own_name, store, spans)
    except Exception as failure:  # a format's library has failures of its own; one table does not hide the others
        return SeenTable(found, warehouse, own_name, problem=str(failure) or type(failure).__name__)


def _remembered(store: TableStore) -> SpanIndex:
    """What the ledger has of versions that the table itself has forgotten."""
    from penstock.spark.lake.ledger import Ledger

    spans = SpanIndex()
    oldest = min((commit.version for commit in store.commits()), default=0)
    entries = Ledger(store.location, store.storage).entries()
    spans.put(entry for entry in entries if entry.version < oldest)
    return spans


def _seen(found: TableName, warehouse: str, own_name: str, store: TableStore, spans: SpanIndex) -> SeenTable:
    files = store.files()
    return SeenTable(
        found=found,
        warehouse=warehouse,
        own_name=own_name,
        version=store.version(),
        location=store.location,
        rows=sum(each.rows for each in files),
        files=len(files),
        bytes=sum(each.size_bytes for each in files),
        columns=tuple((each.name, str(each.type), bool(each.nullable)) for each in store.schema()),
        feed=_feed(store.properties()),
        spans=spans,
        names={name: frozenset(ids) for name, ids in spans.names.items()},
        unexplained=spans.unexplained,
        committed=(committed := dict(store.committed())),
        begun={key: first for key in committed if (first := spans.first(key)) is not None},
        recent=tuple(spans.commits()[:RECENT_MAX]),
        queries=frozenset(spans.queries),
        dead=dict(spans.dead),
    )


def _feed(properties: dict[str, Any]) -> Feed | None:
    from penstock.spark.lake.store import FEED_PROPERTY

    text = properties.get(FEED_PROPERTY)
    if not text:
        return None
    try:
        return Feed.of_property(text)
    except BadOption:
        return None
