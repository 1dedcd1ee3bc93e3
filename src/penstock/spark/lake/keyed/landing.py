"""A batch of changes into a keyed table, once. On the driver.

The version is pinned, its buckets are rewritten by whoever `run`s tasks, and rows and offsets become one commit that
may only follow that very version. Whoever commits in between, be it a compaction or a DELETE of another engine, makes
it all be done anew on what there is then: files that were made of an older version never enter.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from penstock.spark.errors import BadOption, CommitRefused
from penstock.spark.lake.keyed.bucket_task import BucketDone, BucketTask
from penstock.spark.lake.keyed.buckets import Sorted, sort_files
from penstock.spark.lake.keyed.changes import columns_of
from penstock.spark.lake.keyed.settings import KeyedSettings
from penstock.spark.lake.keyed.watching import PARTITIONS_PROPERTY, check_same, watched
from penstock.spark.lake.landing import Wanted, is_new, prepared, properties_of
from penstock.spark.lake.store import (
    KEYED_PROPERTY,
    BatchCommit,
    Commit,
    Conflicted,
    MergeCounts,
    TableStore,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.spark.lake.options import LakeOptions

TRIES: Final = 10
WAIT_S_FIRST: Final = 0.05
WAIT_S_MAX: Final = 5.0

Run = Callable[[BucketTask], Sequence[BucketDone]]
"""Carries a task out for every bucket that has changes, or for all where there are files in no bucket."""
Explain = Callable[[BatchCommit], BatchCommit]
"""Adds what became of records that gave no change."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Changes:
    """What one batch brings, as far as it is known before it is merged."""

    batch: BatchCommit
    """Its query, number, ranges, and what of these became no change."""
    schema: pa.Schema
    """The columns that the table has to have for its rows."""
    partitions: Mapping[str, int]
    """Topic id → number of partitions, of the topics that are read."""


@dataclass(frozen=True, slots=True)
class Hands:
    """What the merge itself cannot do."""

    run: Run
    explain: Explain
    now_ms: int


def merge(
    store: TableStore, options: LakeOptions, settings: KeyedSettings, changes: Changes, hands: Hands
) -> Commit | None:
    """Commits the batch; None when all of it was there. `CommitRefused` when it would double changes or skip some."""
    began: int | None = None
    wanted = Wanted(changes.schema, ())
    for attempt in range(TRIES):
        try:
            if not store.exists():
                store.create(changes.schema, (), {**properties_of(options), **_properties(settings, changes)})
            store.refresh()
            began = store.version() if began is None else began
            if not is_new(store, changes.batch, began):
                return None
            _check_same_table(store, settings, changes)
            if prepared(store, options, wanted, _properties(settings, changes)):
                # The table moved: what was is_new is looked at again.
                continue
            return store.commit(_merged(store, options, settings, changes, hands))
        except Conflicted as other:
            _log.info("batch %d of query %s is merged anew: %s", changes.batch.batch_id, changes.batch.query_id, other)
            time.sleep(min(WAIT_S_MAX, WAIT_S_FIRST * 2**attempt) * random.uniform(0.5, 1.0))
    raise CommitRefused(
        f"batch {changes.batch.batch_id} could not be merged into {store.location}: {TRIES} times others committed "
        "while it was. Nothing was lost: start the query again, and see who else writes to the table so often"
    )


def _merged(
    store: TableStore, options: LakeOptions, settings: KeyedSettings, changes: Changes, hands: Hands
) -> BatchCommit:
    """The batch as it is committed on top of the version that `store` has loaded."""
    files = sort_files(store.files(), settings.buckets)
    task = BucketTask(
        directory=store.layout().directory,
        columns=columns_of(settings, store.schema()),
        buckets=settings.buckets,
        compression=options.compression,
        now_ms=hands.now_ms,
        keep_deletes_ms=settings.keep_deletes_ms if settings.keeps_deletes else 0,
        of_bucket=files.of_bucket,
        foreign=files.foreign,
        storage=store.storage,
    )
    return hands.explain(_told(changes, files, hands.run(task)))


def _told(changes: Changes, files: Sorted, done: Sequence[BucketDone]) -> BatchCommit:
    rewritten = {each.bucket: each for each in done if each.rewritten}
    assert len({each.bucket for each in done}) == len(done), "a bucket has one task"
    counts = MergeCounts()
    for each in done:
        counts = counts.plus(each.counts)
    gone = [file for bucket in sorted(rewritten) for file in files.of_bucket.get(bucket, ())]
    return replace(
        changes.batch,
        files=tuple(each.file for each in rewritten.values() if each.file is not None),
        replaced=(*gone, *files.foreign),
        merged=counts,
        rows=counts.inserted + counts.updated,
    )


def _properties(settings: KeyedSettings, changes: Changes) -> dict[str, str]:
    found = {KEYED_PROPERTY: settings.to_property()}
    if settings.in_log_order:
        found[PARTITIONS_PROPERTY] = watched(changes.partitions)
    return found


def _check_same_table(store: TableStore, settings: KeyedSettings, changes: Changes) -> None:
    """Whether the table is one that these settings made."""
    there = store.properties()
    text = there.get(KEYED_PROPERTY)
    if text is None:
        if store.files():
            raise BadOption(
                f"the table {store.location} has rows that are in it by no key: let the changes go to another table"
            )
        return
    before = KeyedSettings.of_property(text)
    for name, one, other in (
        ("keys", ", ".join(before.keys), ", ".join(settings.keys)),
        ("sequence_by", before.sequence_by, settings.sequence_by),
    ):
        if one != other:
            raise BadOption(
                f"{name} of the table {store.location} is {one}, and is to be {other}: rows that are there cannot be "
                "compared with changes any more. Say it as before, or write to another table"
            )
    if settings.in_log_order:
        check_same(
            there.get(PARTITIONS_PROPERTY),
            changes.partitions,
            table=store.location,
            begun=bool(store.committed()),
        )
