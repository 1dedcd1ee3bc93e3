"""Commits and committed offsets over the network: the coordinator found, errors retried until a deadline.

Commits go one after the other in the order in which they were asked for, so that an older one never overtakes. They
take the view's shared link: the member's own may be held by a JoinGroup.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from penstock.client.cluster_view import ClusterView
from penstock.client.consumer.group.commits import (
    Identity,
    commit_refusals,
    commit_request,
    fetch_request,
    fetched,
    version_for,
)
from penstock.client.consumer.offsets import OffsetAndMetadata
from penstock.client.errors import ClientError, CommitFailed, TimedOutWaiting, link_failure, refusal
from penstock.client.retry import Backoff
from penstock.model.errors import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_MEMBER_EPOCH,
    ILLEGAL_GENERATION,
    NONE,
    NOT_COORDINATOR,
    REBALANCE_IN_PROGRESS,
    REQUEST_TIMED_OUT,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode,
)
from penstock.model.ids import TopicPartition, Uuid
from penstock.model.ports import Clock
from penstock.protocol.wire import schema_of
from penstock.transport.dial import Link, LinkError

T = TypeVar("T")

OFFSET_COMMIT = 8
OFFSET_FETCH = 9

_ELSEWHERE = (COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, REQUEST_TIMED_OUT)
_MOVED_ON = (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS, FENCED_MEMBER_EPOCH)
_NO_TOPIC = (UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID)

_WORDS: Mapping[ErrorCode, str] = {
    REBALANCE_IN_PROGRESS: "the group is rebalancing; commit again afterwards what is still assigned",
    UNKNOWN_MEMBER_ID: "the group has gone on without this consumer, and its partitions belong to others: the time "
    "between polls was longer than max_poll_interval_ms, or no heartbeat came through for session_timeout_ms. "
    "The records will be read again; poll more often, or with a smaller max_poll_records",
    ILLEGAL_GENERATION: "the group has rebalanced since these records were polled; what is no longer assigned here "
    "will be read again by its new owner",
    FENCED_MEMBER_EPOCH: "the coordinator has fenced this consumer; its partitions belong to others",
}


class _Again(Exception):
    """Worth another try; carries what to raise when there is no time left."""

    def __init__(self, failure: ClientError) -> None:
        self.failure = failure


class Committer:
    """Speaks as `identity(for_commit)` says, which raises CommitFailed for a member that is out and wants to commit."""

    def __init__(
        self,
        view: ClusterView,
        clock: Clock,
        backoff: Backoff,
        request_timeout_ms: int,
        identity: Callable[[bool], Identity],
        on_moved_on: Callable[[ErrorCode, int], None],
    ) -> None:
        self._view, self._clock, self._backoff = view, clock, backoff
        self._request_timeout_ms = request_timeout_ms
        self._identity, self._on_moved_on = identity, on_moved_on
        self._in_turn = asyncio.Lock()
        self.commits = 0
        self.commit_ms_total = 0.0
        self.commit_ms_max = 0.0

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_ms: float, *, automatic: bool = False
    ) -> None:
        """Returns when all are stored; nothing is known of any when it raises.

        An `automatic` one does not wait for a topic that the coordinator does not know: it was deleted, and whoever
        gives up its partitions waits for this commit.
        """
        if not offsets:
            return
        began_at = self._clock.monotonic_ms()
        async with self._in_turn:
            left_ms = timeout_ms - (self._clock.monotonic_ms() - began_at)
            await self._until_done("commit", left_ms, lambda limit_ms: self._commit_once(offsets, limit_ms, automatic))
        took_ms = self._clock.monotonic_ms() - began_at
        self.commits += 1
        self.commit_ms_total += took_ms
        self.commit_ms_max = max(self.commit_ms_max, took_ms)

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: float
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group has committed; partitions without an offset are left out."""
        wanted = frozenset(partitions)
        if not wanted:
            return {}
        return await self._until_done(
            "committed offsets", timeout_ms, lambda limit_ms: self._fetch_once(wanted, limit_ms)
        )

    async def _until_done(self, what: str, timeout_ms: float, attempt: Callable[[float], Awaitable[T]]) -> T:
        deadline = self._clock.monotonic_ms() + timeout_ms
        failures = 0
        while True:
            left_ms = deadline - self._clock.monotonic_ms()
            try:
                return await attempt(max(min(self._request_timeout_ms, left_ms), 1))
            except _Again as again:
                failure = again.failure
            except ClientError as broken:
                if not broken.retriable or isinstance(broken, CommitFailed):
                    raise
                failure = broken
            failures += 1
            delay_ms = self._backoff.delay_ms(failures)
            if self._clock.monotonic_ms() + delay_ms >= deadline:
                words = f"{what}: not done within {timeout_ms:.0f} ms; the last attempt: {failure}"
                raise TimedOutWaiting(words, where=failure.where, retriable=True) from failure
            await asyncio.sleep(delay_ms / 1000)

    async def _commit_once(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], limit_ms: float, automatic: bool
    ) -> None:
        who = self._identity(True)
        link = await self._link(who.group_id)
        topics = {partition.topic for partition in offsets}
        version = version_for(link.newest(OFFSET_COMMIT), topics, self._id_of)
        reply = await self._ask(link, commit_request(who, offsets, version, self._id_of), version, limit_ms, who)
        refusals = list(commit_refusals(reply, self._view.name_of))
        if refusals:
            # One that no retry can mend is worth more than one that another try might.
            where, error = min(refusals, key=lambda refused: refused[1].retriable)
            raise self._commit_failure(where, error, who, automatic)

    def _commit_failure(self, where: TopicPartition, error: ErrorCode, who: Identity, automatic: bool) -> Exception:
        if error in _MOVED_ON:
            self._on_moved_on(error, who.generation)
            return CommitFailed(
                _WORDS[error], where=f"group {who.group_id}", error=error, retriable=error is REBALANCE_IN_PROGRESS
            )
        failure = refusal(error.code, None, f"group {who.group_id}, {where}")
        self._heed(error, where.topic, who.group_id)
        if automatic and error in _NO_TOPIC:
            failure.retriable = False
        return _Again(failure) if failure.retriable or error is STALE_MEMBER_EPOCH else failure

    async def _fetch_once(
        self, partitions: frozenset[TopicPartition], limit_ms: float
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        who = self._identity(False)
        link = await self._link(who.group_id)
        version = version_for(link.newest(OFFSET_FETCH), {partition.topic for partition in partitions}, self._id_of)
        reply = await self._ask(link, fetch_request(who, partitions, version, self._id_of), version, limit_ms, who)
        found = fetched(reply, self._view.name_of)
        if found.error is not NONE:
            raise self._fetch_failure(f"group {who.group_id}", "", found.error, who)
        if found.refusals:
            where, error = min(found.refusals, key=lambda refused: refused[1].retriable)
            raise self._fetch_failure(f"group {who.group_id}, {where}", where.topic, error, who)
        return found.offsets

    def _fetch_failure(self, where: str, topic: str, error: ErrorCode, who: Identity) -> Exception:
        self._heed(error, topic, who.group_id)
        failure = refusal(error.code, None, where)
        # An epoch that is old or not known any more is a matter of the next heartbeat.
        return _Again(failure) if error.retriable or error in (STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID) else failure

    def _heed(self, error: ErrorCode, topic: str, group_id: str) -> None:
        if error in _ELSEWHERE:
            self._view.forget_coordinator(group_id)
        elif error in _NO_TOPIC and topic:
            self._view.mark_stale(topic)

    async def _link(self, group_id: str) -> Link:
        return await self._view.link(await self._view.coordinator(group_id))

    async def _ask(self, link: Link, request: Any, version: int, limit_ms: float, who: Identity) -> Any:
        try:
            return await link.request(request, version, limit_ms)
        except LinkError as broken:
            self._view.forget_coordinator(who.group_id)
            raise link_failure(broken) from broken

    def _id_of(self, topic: str) -> Uuid | None:
        found = self._view.cached(topic)
        return Uuid(found.id) if found is not None and any(found.id) else None


def newest_for(link: Link, request: object) -> int:
    """The version in which `link`'s broker and we talk about this."""
    return link.newest(schema_of(type(request)).key)
