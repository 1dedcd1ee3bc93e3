"""Keeping a table small: when to compact, expire and sweep, and doing it, for either format.

After a batch the sink calls `after_commit`, which has it done by a process of its own (`beside.py`); people call `tidy`
through `penstock lake compact`. Upkeep never fails or holds a query: what could not be done now is due again later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol, runtime_checkable

from penstock.spark.lake.beside import begin
from penstock.spark.lake.followed import history_kept
from penstock.spark.lake.ledger import Ledger
from penstock.spark.lake.options import LakeOptions
from penstock.spark.lake.store import Commit, Compaction, Conflicted, Expiry, TableStore

_log = logging.getLogger(__name__)

SAFE_AGE: Final = {"delta": timedelta(days=7), "iceberg": timedelta(days=1)}
"""Files that nobody names may belong to a task that still runs; after this long none does. Delta's readers hold on to
versions by their files alone, so there the age is that of Delta's own tools."""

SWEEP_EVERY: Final = 10
"""Rounds of upkeep between two looks for orphans, which list the whole directory."""

ROUND_COMMITS: Final = 50
"""Commits in a round of upkeep where nobody wants compaction."""


@dataclass(frozen=True, slots=True)
class Due:
    """What a commit makes due."""

    compact: bool = False
    expire: bool = False
    sweep: bool = False


def due(options: LakeOptions, batch_id: int) -> Due:
    """By the number of the batch, so that nothing needs to be remembered between batches. Pure."""
    round_commits = options.compact_every or ROUND_COMMITS
    rounds, rest = divmod(batch_id + 1, round_commits)
    if rest or batch_id < 0:
        return Due()
    expires = options.expire_after_days > 0
    return Due(compact=options.compact_every > 0, expire=expires, sweep=expires and rounds % SWEEP_EVERY == 0)


@dataclass(frozen=True, slots=True)
class Tidied:
    """What upkeep did."""

    compaction: Compaction
    expiry: Expiry
    orphans_removed: int

    def to_json(self) -> dict[str, Any]:
        return {
            "files_removed": self.compaction.files_removed,
            "files_added": self.compaction.files_added,
            "bytes_removed": self.compaction.bytes_removed,
            "bytes_added": self.compaction.bytes_added,
            "snapshots_expired": self.expiry.snapshots_removed,
            "expired_files_deleted": self.expiry.files_removed,
            "orphans_deleted": self.orphans_removed,
        }


@runtime_checkable
class Thinnable(Protocol):
    """A table whose history is written whole with each commit, so that steps of it must go before they are old."""

    def thin(self, now: datetime) -> Expiry: ...


Told = Callable[[str], None]


def after_commit(options: LakeOptions, commit: Commit) -> bool:
    """Has done what is due after a batch, without waiting for it; whether anything was begun."""
    wanted = due(options, commit.batch_id)
    if wanted == Due():
        return False
    try:
        return begin(options, asdict(wanted))
    except OSError as failure:
        _log.warning("upkeep of %s could not be started and is due again later: %s", options.path, failure)
    return False


def carry_out(store: TableStore, options: LakeOptions, wanted: Due) -> Tidied | None:
    """Does it, and writes down what it committed. What goes wrong is a warning, and None: the batch has landed."""
    now = datetime.now(UTC)
    try:
        done = tidy(
            store,
            target_bytes=options.target_file_bytes if wanted.compact else None,
            expire_before=now - timedelta(days=options.expire_after_days) if wanted.expire else None,
            sweep_before=now - SAFE_AGE[store.format] if wanted.sweep else None,
            thin=wanted.expire,
            whole=False,
        )
        write_down(store)
        return done
    except Conflicted as busy:
        _log.info("upkeep of %s gave way to another writer: %s", store.location, busy)
    except Exception as failure:
        _log.warning("upkeep of %s failed and is tried again later: %s", store.location, failure)
    return None


def tidy(
    store: TableStore,
    *,
    target_bytes: int | None = None,
    expire_before: datetime | None = None,
    sweep_before: datetime | None = None,
    thin: bool = False,
    whole: bool = True,
    told: Told = _log.debug,
) -> Tidied:
    """Does what is asked for, in the order in which one makes work for the next. `told` hears each step begin.

    `thin` allows expiry to take snapshots that are not old but too many for the format; unless `whole`, compaction
    leaves small files until there are enough of their size.
    """
    store.refresh()
    compaction, expiry, orphans = Compaction(), Expiry(), 0
    if target_bytes is not None:
        told(f"compacting {store.location}")
        compaction = store.compact(target_bytes, whole=whole)
    if expire_before is not None:
        told("writing down what the history says before parts of it go")
        write_down(store)
        told(f"expiring versions from before {expire_before:%Y-%m-%d %H:%M} UTC")
        expiry = _expire(store, expire_before, thin)
    if sweep_before is not None:
        told("looking for files that nobody names")
        orphans = store.vacuum(sweep_before)
    return Tidied(compaction, expiry, orphans)


def write_down(store: TableStore) -> int:
    """Brings the ledger up to the table's history; how many commits it lacked."""
    store.refresh()
    ledger = Ledger(store.location, store.storage)
    return ledger.backfill(store.commits(after=ledger.complete_through()))


def _expire(store: TableStore, before: datetime, thin: bool) -> Expiry:
    # What a follower may still have to read is not old.
    found = store.expire(min(before, datetime.now(UTC) - history_kept(store)))
    if not thin or not isinstance(store, Thinnable):
        return found
    thinned = store.thin(datetime.now(UTC))
    return Expiry(
        snapshots_removed=found.snapshots_removed + thinned.snapshots_removed,
        files_removed=found.files_removed + thinned.files_removed,
    )
