"""Dead letters in a Delta table, each once, whoever writes: a task that is tried again, its twin, a batch played again.

A letter is known by topic, partition, offset and the record's time, which is another when a topic was made anew. To
write is to compare and set: read what is there, add what is missing, and commit under a key per partition that Delta
refuses when another writer has committed it in the meantime; then look again. Writers of other partitions do not meet.
"""

from __future__ import annotations

import os
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from penstock.spark.errors import BadOption, Missing, SparkRoomError
from penstock.spark.lake.places import absolute, opened
from penstock.spark.stores.storage import FROM_ENVIRONMENT, Storage
from penstock.spark.values.letters import ERROR_MOST, DeadLetter, Reader

if TYPE_CHECKING:
    from deltalake import DeltaTable

TRIES: Final = 30
_PAUSE_MOST_S: Final = 0.5

_INSTANT: Final = pa.timestamp("us", tz="UTC")
SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", _INSTANT),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("error", pa.string()),
        ("query", pa.string()),
        ("batch_id", pa.int64()),
        ("seen_at", _INSTANT),
    ]
)

Identity = tuple[str, int, int, datetime | None]


class LetterTable:
    """The table at `location`, made when the first letter comes."""

    def __init__(self, location: str, storage: Storage = FROM_ENVIRONMENT) -> None:
        self._storage = storage
        self.location = location if "://" in location else os.path.abspath(os.path.expanduser(location))

    def append(self, letters: Sequence[DeadLetter], reader: Reader, seen_at: datetime) -> int:
        """Adds those that are not there yet; gives how many those were. They are durable when it returns."""
        deltalake = _deltalake()
        conflict: Exception | None = None
        for attempt in range(TRIES):
            table = self._opened()
            missing = _unknown(letters, set(_known(table, letters, self._storage)))
            if not missing:
                return 0
            try:
                deltalake.write_deltalake(
                    table, _rows(missing, reader, seen_at), mode="append", commit_properties=_keys(table, missing)
                )
                return len(missing)
            except deltalake.exceptions.CommitFailedError as refused:
                conflict = refused
                # Two that meet again and again should not do so in step.
                time.sleep(random.uniform(0, min(_PAUSE_MOST_S, 0.01 * 2**attempt)))
        raise SparkRoomError(
            f"{len(letters)} dead letters could not be written to the table {self.location}: {TRIES} times another "
            f"writer committed first ({conflict}); try again with fewer writers"
        )

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """All letters that are there now, so many at a time; none when there is no table."""
        table = self._there()
        places = [] if table is None else [opened(absolute(path), self._storage) for path in table.file_uris()]
        if not places:
            return
        files = ds.dataset([path for _, path in places], schema=SCHEMA, format="parquet", filesystem=places[0][0])
        yield from files.to_batches(batch_size=rows, batch_readahead=1, fragment_readahead=1)

    def count(self) -> int:
        table = self._there()
        return (
            0
            if table is None
            else int(pc.sum(pa.table(table.get_add_actions(flatten=True))["num_records"]).as_py() or 0)
        )

    def _there(self) -> DeltaTable | None:
        """The table, which is not made here."""
        deltalake = _deltalake()
        try:
            table: DeltaTable = deltalake.DeltaTable(self.location, storage_options=self._options)
        except deltalake.exceptions.TableNotFoundError:
            return None
        return self._checked(table)

    @property
    def _options(self) -> dict[str, str] | None:
        return self._storage.for_delta(self.location)

    def _opened(self) -> DeltaTable:
        return self._there() or self._checked(self._created())

    def _checked(self, table: DeltaTable) -> DeltaTable:
        from penstock.spark.lake.delta.features import check_understood

        check_understood(table, self.location)
        names = [found.name for found in table.schema().fields]
        if names != SCHEMA.names:
            raise BadOption(
                f"deadLetters=table:{self.location} is a table of something else, with columns {', '.join(names)}: "
                "choose a path of its own"
            )
        return table

    def _created(self) -> DeltaTable:
        deltalake = _deltalake()
        try:
            made: DeltaTable = deltalake.DeltaTable.create(
                self.location, schema=SCHEMA, mode="ignore", storage_options=self._options
            )
            return made
        except (deltalake.exceptions.DeltaError, OSError) as wrong:
            try:
                # Somebody else has made it at the same moment.
                theirs: DeltaTable = deltalake.DeltaTable(self.location, storage_options=self._options)
                return theirs
            except deltalake.exceptions.TableNotFoundError:
                raise SparkRoomError(f"the table {self.location} of dead letters cannot be made: {wrong}") from wrong


def _deltalake() -> Any:
    try:
        import deltalake
        import deltalake.exceptions
    except ImportError as missing:
        raise Missing("dead letters in a table need deltalake: pip install 'penstock[spark]'") from missing
    return deltalake


def _identity(letter: DeadLetter) -> Identity:
    return letter.topic, letter.partition, letter.offset, letter.timestamp and letter.timestamp.astimezone(UTC)


def _unknown(letters: Iterable[DeadLetter], known: set[Identity]) -> list[DeadLetter]:
    found = {_identity(letter): letter for letter in letters}
    return [letter for identity, letter in found.items() if identity not in known]


def _known(table: DeltaTable, letters: Iterable[DeadLetter], storage: Storage) -> Iterator[Identity]:
    """Which letters of these ranges of offsets the table has."""
    offsets: dict[tuple[str, int], list[int]] = defaultdict(list)
    for letter in letters:
        offsets[letter.topic, letter.partition].append(letter.offset)
    ranges = {key: (min(found), max(found)) for key, found in offsets.items()}
    found_in = [opened(absolute(path), storage) for path in _files_that_may_have(table, ranges)]
    if not found_in:
        return
    wanted = [
        (ds.field("topic") == topic) & (ds.field("partition") == partition) & (ds.field("offset").isin(sorted(found)))
        for (topic, partition), found in offsets.items()
    ]
    condition = wanted[0]
    for other in wanted[1:]:
        condition = condition | other
    files = ds.dataset([path for _, path in found_in], schema=SCHEMA, format="parquet", filesystem=found_in[0][0])
    found = files.to_table(columns=["topic", "partition", "offset", "timestamp"], filter=condition)
    for row in found.to_pylist():
        yield row["topic"], row["partition"], row["offset"], row["timestamp"] and row["timestamp"].astimezone(UTC)


def _files_that_may_have(table: DeltaTable, ranges: dict[tuple[str, int], tuple[int, int]]) -> list[str]:
    """Files whose statistics do not rule the ranges out."""
    uris = {uri.rsplit("/", 1)[-1]: uri for uri in table.file_uris()}
    if not uris:
        return []
    files = pa.table(table.get_add_actions(flatten=True))
    for name in ("topic", "partition", "offset"):
        if f"min.{name}" not in files.column_names:
            return list(uris.values())
    may = pa.array([False] * len(files))
    for (topic, partition), (first, last) in ranges.items():
        spans = [
            pc.and_(pc.less_equal(files[f"min.{name}"], most), pc.greater_equal(files[f"max.{name}"], least))
            for name, least, most in (
                ("topic", topic, topic),
                ("partition", partition, partition),
                ("offset", first, last),
            )
        ]
        one = pc.and_kleene(pc.and_kleene(spans[0], spans[1]), spans[2])
        may = pc.or_(may, pc.fill_null(one, True))
    return [uris[path.rsplit("/", 1)[-1]] for path in files["path"].filter(may).to_pylist()]


def _keys(table: DeltaTable, letters: Iterable[DeadLetter]) -> Any:
    """A key per partition that only one of two writers can take."""
    deltalake = _deltalake()
    names = sorted({f"penstock.dead/{letter.topic}/{letter.partition}" for letter in letters})
    taken = [deltalake.Transaction(name, (table.transaction_version(name) or 0) + 1) for name in names]
    return deltalake.CommitProperties(app_transactions=taken)


def _rows(letters: Sequence[DeadLetter], reader: Reader, seen_at: datetime) -> pa.Table:
    columns = {
        "topic": [letter.topic for letter in letters],
        "partition": [letter.partition for letter in letters],
        "offset": [letter.offset for letter in letters],
        "timestamp": [letter.timestamp for letter in letters],
        "key": [letter.key for letter in letters],
        "value": [letter.value for letter in letters],
        "headers": [[{"key": name, "value": value} for name, value in letter.headers] for letter in letters],
        "error": [letter.error[:ERROR_MOST] for letter in letters],
        "query": [reader.query] * len(letters),
        "batch_id": [reader.batch_id] * len(letters),
        "seen_at": [seen_at] * len(letters),
    }
    return pa.table(columns, schema=SCHEMA)
