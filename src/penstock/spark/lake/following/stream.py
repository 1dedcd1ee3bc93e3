"""spark.readStream.format("penstock-lake"): what Spark asks of a table that is read as a stream.

initialOffset   a wish, as in streams of topics: it must not move when the first batch is played again
latestOffset    how far the next batch goes; the first one also writes down where it begins
partitions      only what the two offsets say, so that a replay reads the same versions
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from penstock.model.ids import TopicPartition
from penstock.spark.errors import DataLost
from penstock.spark.lake.followed import keep_history
from penstock.spark.lake.following.parts import VersionPart
from penstock.spark.lake.following.rows import rows_of_part
from penstock.spark.lake.following.stores import brought_by, followed_id
from penstock.spark.lake.following.versions import (
    NAME_PREFIX,
    SNAPSHOT,
    Brought,
    cut,
    start_of,
    taken,
)
from penstock.spark.lake.keyed.settings import KeyedSettings
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.reading import group
from penstock.spark.lake.store import KEYED_PROPERTY, TableFile, TableStore
from penstock.spark.offsets import EARLIEST, LATEST, StreamOffset
from penstock.spark.stores.storage import Storage

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class LakeStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One query's reader. Only options and schema are pickled."""

    def __init__(self, options: LakeOptions, schema: StructType) -> None:
        self.options, self.schema = options, schema
        self._held: TableStore | None = None
        self._asked = False
        self._target: int | None = None
        """With trigger(availableNow=True): where the table's versions ended when the query began."""
        name = options.table or options.path.rstrip("/").rpartition("/")[2]
        self._place = TopicPartition(f"{NAME_PREFIX}{name}", 0)

    def __reduce__(self) -> tuple[Any, ...]:
        return LakeStreamReader, (self.options, self.schema)

    # What Spark asks.

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        text = self.options.starting_version
        start = start_of(text)
        wish = LATEST if start is None else EARLIEST if start == SNAPSHOT else start
        return StreamOffset({self._place: wish}).to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._ask_for_history()
        self._target = self._end()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        before = StreamOffset.of_json(start)
        first = not StreamOffset.is_ours(start)
        self._ask_for_history()
        now = self._target if self._target is not None else self._end()
        wish = before.ends[self._place]
        begin = {EARLIEST: SNAPSHOT, LATEST: now}.get(wish, wish) if first else wish
        self._check_same(before)
        if begin == SNAPSHOT or begin >= now:
            end = max(begin, now)
        else:
            end = cut(self._brought(begin, now), begin, now, self.options.max_files_per_trigger)
        if end == begin and not first:
            return start
        starts = {self._place: begin} if first else {}
        return StreamOffset({self._place: end}, {self._place.topic: self._id()}, starts=starts, quiet=True).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        return StreamOffset({self._place: self._end()}).to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        before, after = StreamOffset.of_json(start), StreamOffset.of_json(end)
        begin, last = after.starts.get(self._place, before.ends[self._place]), after.ends[self._place]
        store = self._store()
        if begin == SNAPSHOT:
            files = store.files(last - 1) if last > 1 or store.format == "delta" else []
            return [VersionPart(last - 1, each, storage=store.storage) for each in self._grouped(files)]
        if begin >= last:
            return []
        versions = self._brought(begin, last)
        if not self.options.changes:
            rows = taken(versions, self.options.removals, store.location)
            files = [file for each in rows for file in each.added]
            return [VersionPart(last - 1, each, storage=store.storage) for each in self._grouped(files)]
        keys = _keys(store)
        return [part for each in versions for part in self._changed(each, keys, store.storage)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from pyspark.sql.pandas.types import to_arrow_schema

        assert isinstance(partition, VersionPart), "Spark hands back what was planned"
        return rows_of_part(partition, to_arrow_schema(self.schema, timezone="UTC"), changes=self.options.changes)

    # How it is found out.

    def _store(self) -> TableStore:
        store = self._held = self._held or open_store(self.options)
        store.refresh()
        return store

    def _end(self) -> int:
        return self._store().version() + 1

    def _ask_for_history(self) -> None:
        """Once in the life of a reader, before it says where the table ends."""
        if not self._asked:
            self._asked = True
            keep_history(self._store(), days=self.options.history_keep_days)

    def _id(self) -> str:
        return followed_id(self._store())

    def _check_same(self, before: StreamOffset) -> None:
        then, now = before.ids.get(self._place.topic), self._id()
        if then is not None and then != now:
            raise DataLost(
                f"the table {self._store().location} was deleted and made anew: the stream has read versions of the "
                "old one. Without its checkpoint it begins with all rows of the new one"
            )

    def _brought(self, begin: int, end: int) -> list[Brought]:
        return brought_by(self._store(), begin, end)

    def _grouped(self, files: Sequence[TableFile]) -> list[tuple[TableFile, ...]]:
        return group(files, os.cpu_count() or 1) if files else []

    def _changed(self, each: Brought, keys: tuple[str, ...], storage: Storage) -> list[VersionPart]:
        if not each.removed:
            return [VersionPart(each.version, files, storage=storage) for files in self._grouped(each.added)]
        return [VersionPart(each.version, each.added, each.removed, keys, storage)]


def _keys(store: TableStore) -> tuple[str, ...]:
    """By which a table follows changes; none where it does not."""
    text = store.properties().get(KEYED_PROPERTY)
    return KeyedSettings.of_property(text).keys if text else ()
