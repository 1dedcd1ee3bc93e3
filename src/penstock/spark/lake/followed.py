"""How long a table keeps what its versions brought: as long as the stream has asked for that follows it.

Upkeep shortens a table's history after an hour, for the sake of whoever commits. A stream that is paused needs more, so
it writes its wish into the table before it begins.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from penstock.spark.lake.store import HISTORY_PROPERTY, TableStore

_log = logging.getLogger(__name__)


def history_kept(store: TableStore) -> timedelta:
    """Nothing where no stream follows the table."""
    return kept_by(store.properties().get(HISTORY_PROPERTY, ""))


def kept_by(text: str) -> timedelta:
    try:
        return timedelta(days=float(text or 0))
    except ValueError:
        # What is no number asks for nothing that could be told.
        return timedelta()


def keep_history(store: TableStore, *, days: float) -> None:
    """Raises the wish; a smaller one is another stream's. A table that nobody may write to is followed all the same."""
    if days <= 0 or history_kept(store) >= timedelta(days=days):
        return
    try:
        store.set_properties({HISTORY_PROPERTY: f"{days:g}"})
        store.refresh()
    except Exception as failure:
        _log.warning(
            "the table %s could not be told to keep its history for %g days, so a stream that pauses for long may not "
            "go on: %s",
            store.location,
            days,
            failure,
        )
