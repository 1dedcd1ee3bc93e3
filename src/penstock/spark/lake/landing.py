"""A batch into a table, once: decide on its offsets, fit the table's columns, commit, write it down. On the driver.

The order of things is what makes it exactly once. Rows that do not fit are committed to their dead-letter table before
the batch is (a crash between the two finds them there, under the same query and batch); offsets and rows are one commit
of the table; the ledger comes after and is filled up by whoever comes next.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from penstock.spark.errors import CommitRefused
from penstock.spark.lake.evolution import needs
from penstock.spark.lake.ledger import Ledger
from penstock.spark.lake.opening import open_store
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.ranges import AlreadyThere, Apply, Conflict, Decision, decide, stretched
from penstock.spark.lake.store import (
    FEED_PROPERTY,
    ROWS_PROPERTY,
    BatchCommit,
    CannotEvolve,
    Commit,
    Conflicted,
    TableStore,
    WrittenFile,
)
from penstock.spark.lake.writing import DEAD_ROWS

if TYPE_CHECKING:
    import pyarrow as pa

TRIES: Final = 30
WAIT_S_FIRST: Final = 0.01
WAIT_S_MAX: Final = 1.0

_log = logging.getLogger(__name__)
_ledgers: dict[str, Ledger] = {}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the table must be like for a batch's files."""

    schema: pa.Schema
    partition_by: tuple[str, ...]


def land(
    store: TableStore, options: LakeOptions, wanted: Wanted, batch: BatchCommit, dead: Iterable[WrittenFile] = ()
) -> Commit | None:
    """Commits the batch; None when all of it was there. `CommitRefused` when it would double records or skip some."""
    dead = tuple(dead)
    began: int | None = None
    for attempt in range(TRIES):
        try:
            ensure_table(store, wanted.schema, wanted.partition_by, properties_of(options))
            store.refresh()
            began = store.version() if began is None else began
            if options.fan:
                batch = replace(batch, ranges=stretched(batch.ranges, store.committed([r.key for r in batch.ranges])))
            if not is_new(store, batch, began):
                return None
            if prepared(store, options, wanted):
                # The table moved: what was decided is looked at again.
                continue
            if dead:
                _land_dead(store, options, batch, dead)
                dead = ()
            return store.commit(batch)
        except Conflicted as other:
            _log.info("batch %d of query %s tries again: %s", batch.batch_id, batch.query_id, other)
            time.sleep(min(WAIT_S_MAX, WAIT_S_FIRST * 2**attempt) * random.uniform(0.5, 1.0))
    raise CommitRefused(
        f"batch {batch.batch_id} could not be committed to {store.location}: {TRIES} times others came first. Nothing "
        "was lost: start the query again, and see who else writes to the table so often"
    )


def ensure_table(
    store: TableStore, schema: pa.Schema, partition_by: Sequence[str] = (), properties: Mapping[str, str] | None = None
) -> None:
    """Makes the table if it is not there."""
    if not store.exists():
        store.create(schema, partition_by, properties)


def write_down(store: TableStore, commit: Commit | None) -> None:
    """The ledger, after a commit or a replay. Never fails the query: the next one fills what is missing."""
    try:
        ledger = _ledgers.setdefault(store.location, Ledger(store.location, store.storage))
        missing = store.commits(after=ledger.complete_through())
        if commit is None or ledger.complete_through() != commit.version - 1:
            ledger.backfill(missing)
        else:
            ledger.append(commit)
    except Exception as failure:
        _ledgers.pop(store.location, None)
        _log.warning("the ledger of %s could not be written, the next commit fills it up: %s", store.location, failure)


def judge(store: TableStore, batch: BatchCommit) -> Decision:
    """Whether the batch may enter the table as it was last refreshed.

    Offsets decide. A batch without any (another source, or a step that gives rows when only time has passed) is known
    by its query and number.
    """
    if batch.ranges:
        return decide(batch.ranges, store.committed([each.key for each in batch.ranges]))
    if batch.batch_id >= 0:
        last = store.last_batch(batch.query_id)
        return AlreadyThere() if last is not None and last >= batch.batch_id else Apply()
    return Apply()


def is_new(store: TableStore, batch: BatchCommit, began: int = -1) -> bool:
    """Whether there is something to commit; `CommitRefused` where it would double records or skip some."""
    if batch.batch_id < 0:
        # A batch write is never a replay, but its own answer may have been lost.
        return not any(each.query_id == batch.query_id for each in store.commits(after=began))
    match judge(store, batch):
        case Apply():
            return True
        case AlreadyThere() if _is_replay(store, batch):
            _log.info("batch %d of query %s is in %s already", batch.batch_id, batch.query_id, store.location)
            return False
        case AlreadyThere():
            # A lost checkpoint would do no harm here, but another flow's rows would be left out in silence.
            there = tuple(f"{each.topic}-{each.partition} [{each.start}, {each.end})" for each in batch.ranges)
            raise CommitRefused(refusal(store, batch, ("another query has brought " + ", ".join(there[:20]),)))
        case Conflict(reasons):
            raise CommitRefused(refusal(store, batch, reasons))


def refusal(store: TableStore, batch: BatchCommit, reasons: tuple[str, ...]) -> str:
    shown = "; ".join(reasons[:20]) + (f"; and {len(reasons) - 20} more" if len(reasons) > 20 else "")
    return (
        f"batch {batch.batch_id} of query {batch.query_id} does not begin where the table {store.location} stands: "
        f'{shown}. Nothing was written. To go on where the table stands, read with .option("startingOffsets", '
        f'"table:{store.location}") and a new checkpoint; to keep both, write to another table'
    )


def _is_replay(store: TableStore, batch: BatchCommit) -> bool:
    """Whether the query itself has committed that batch; its offsets may be there from another query too."""
    last = store.last_batch(batch.query_id)
    return last is not None and last >= batch.batch_id


def prepared(store: TableStore, options: LakeOptions, wanted: Wanted, more: Mapping[str, str] | None = None) -> bool:
    """Whether the table had to be changed for the batch, and was; `more` are properties that it has to have."""
    changed = False
    if needs(store.schema(), wanted.schema):
        store.evolve(wanted.schema)
        store.refresh()
        if lacking := needs(store.schema(), wanted.schema):
            raise CannotEvolve(f"{store.location} did not take {', '.join(map(str, lacking))}: cast it in the query")
        changed = True
    wanted_properties, there = {**properties_of(options), **(more or {})}, store.properties()
    if any(there.get(name) != value for name, value in wanted_properties.items()):
        store.set_properties(wanted_properties)
        changed = True
    return changed


def properties_of(options: LakeOptions) -> dict[str, str]:
    """What the table itself shall know: what feeds it (for union reads), whether a record is a row (for audits)."""
    found = {FEED_PROPERTY: options.feed} if options.feed else {}
    if options.rows == "record":
        found[ROWS_PROPERTY] = options.rows
    return found


def dead_letter_options(options: LakeOptions) -> LakeOptions:
    """Of the Delta table that rows go to which do not fit; reached as the table itself is."""
    return LakeOptions(path=options.dead_letters_path, storage=options.storage)


def _land_dead(store: TableStore, of: LakeOptions, batch: BatchCommit, files: tuple[WrittenFile, ...]) -> None:
    """Under the same query and batch, so that a replay adds nothing. Tables that share a query have letters each."""
    letters = BatchCommit(
        query_id=f"{batch.query_id}/{store.location}" if of.batch >= 0 else batch.query_id,
        batch_id=batch.batch_id,
        files=files,
        rows=sum(each.rows for each in files),
    )
    options = dead_letter_options(of)
    land(open_store(options), options, Wanted(DEAD_ROWS, ()), letters)
