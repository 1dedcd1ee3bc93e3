"""How far a query is, as the offsets of a group that has no members: every lag tool shows it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from penstock.client.admin.group_offsets import READS_COMMITTED, CommittedOffset
from penstock.client.admin.session import Results
from penstock.client.errors import ClientError, CommitFailed
from penstock.model.errors import NON_EMPTY_GROUP
from penstock.model.ids import TopicPartition
from penstock.spark.naming import group_of
from penstock.spark.progress.patience import Resting, within
from penstock.spark.progress.topic import common_settings
from penstock.spark.progress.warnings_once import forget, reason, warn_once

if TYPE_CHECKING:
    from penstock.client.admin import Admin


_resting = Resting(30.0)


class Commit(Enum):
    """What became of offsets that were to be committed."""

    DONE = "done"
    TAKEN = "the group has members of its own"
    FAILED = "failed"


def publish_offsets(settings: Mapping[str, Any], query: str, offsets: Mapping[TopicPartition, int]) -> bool:
    """Commits offsets to the group of a query (its name, or its id when it has none); for workers and planners.

    Answers whether they are there. Never raises, takes two seconds at most, warns once when it cannot, and does not
    try again for half a minute then.
    """
    if query in _resting:
        return False
    from penstock.spark.dialogue import admin_for, for_process

    try:
        admin = admin_for(common_settings(settings))
        committed = settings.get("isolation_level") == READS_COMMITTED
        if for_process().run(commit_offsets(admin, query, offsets, read_committed=committed)) is Commit.DONE:
            return True
    except Exception as failure:  # whatever it is, a query does not fail for it
        complain(query, failure)
    _resting.begin(query)
    return False


async def commit_offsets(
    admin: Admin,
    query: str,
    offsets: Mapping[TopicPartition, int],
    *,
    read_committed: bool = False,
    forward_only: bool = False,
) -> Commit:
    """The same for those who have a loop. Offsets below zero are wishes, not places, and are left out.

    `read_committed` is told to lag tools: such a query waits for nothing behind the last stable offset.
    `forward_only` is for those who may be late: what somebody else has committed further on stays.
    """
    metadata = READS_COMMITTED if read_committed else ""
    places = {tp: CommittedOffset(offset, metadata=metadata) for tp, offset in offsets.items() if offset >= 0}
    if not places:
        return Commit.DONE
    failure: Exception | None
    try:
        results = await within(_commit(admin, group_of(query), places, forward_only))
        failure = next(iter(results.failed.values()), None)
    except (ClientError, TimeoutError, OSError) as broken:
        failure = broken
    if failure is None:
        forget("group", query)
        return Commit.DONE
    complain(query, failure)
    return Commit.TAKEN if taken(failure) else Commit.FAILED


async def _commit(
    admin: Admin, group: str, places: Mapping[TopicPartition, CommittedOffset], forward_only: bool
) -> Results[TopicPartition, None]:
    if forward_only:
        there = await admin.group_offsets(group, list(places))
        places = {tp: place for tp, place in places.items() if tp not in there or there[tp].offset <= place.offset}
    return await admin.alter_group_offsets(group, places) if places else Results()


def complain(query: str, failure: Exception) -> None:
    """Once for each query, until it goes well again."""
    group = group_of(query)
    if taken(failure):
        words = (
            f"group {group!r} has members of its own, so the progress of query {query!r} is not committed to it: lag "
            "tools show theirs. Give the query another name (queryName) or the consumers another group."
        )
    else:
        words = (
            f"the progress of query {query!r} could not be committed to group {group!r}: {reason(failure)}. "
            "The query goes on; lag tools show an older place. Is the broker up, may this user commit to the group? "
            "publishProgress=false turns this off."
        )
    warn_once("group", query, words=words)


def taken(failure: Exception) -> bool:
    """Whether a group belongs to real consumers."""
    return isinstance(failure, CommitFailed) or (isinstance(failure, ClientError) and failure.error is NON_EMPTY_GROUP)
