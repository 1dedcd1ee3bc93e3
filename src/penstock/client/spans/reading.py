"""One read: whom to ask for which span, what answers mean, and when to stop waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from penstock.client.cluster_view import ClusterView, TopicView
from penstock.client.consumer.batches import open_fetched
from penstock.client.consumer.lookups import EpochEnd, OffsetLookup
from penstock.client.consumer.offsets import EARLIEST, OffsetAndTimestamp
from penstock.client.consumer.partition import CorruptBatch
from penstock.client.errors import AuthenticationFailed, ClientError, NotReachable, TimedOutWaiting, refusal
from penstock.client.retry import Backoff
from penstock.client.settings import ConsumerSettings
from penstock.client.spans.calls import Call, Caller, Wish
from penstock.client.spans.cursor import SpanCursor
from penstock.client.spans.shapes import EndLost, OnTrimmed, Piece, Span, SpanEnd, TopicGone, TopicReplaced
from penstock.model.errors import (
    CORRUPT_MESSAGE,
    FENCED_LEADER_EPOCH,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    error_of,
)
from penstock.model.ids import TopicPartition, uuid_parse, uuid_text
from penstock.protocol.messages.fetch import FetchResponse

_MOVED: Final = (NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH)
_MENDS: Final = (UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID)

SURE_MS: Final = 2_000
"""How long an answer that ends a read is doubted: the broker that gave it may only be behind the others."""

_PARTITIONS_A_CALL: Final = 64
_RECORD_BYTES_GUESS: Final = 16 << 10
_SPARE_BYTES: Final = 64 << 10


class _Track:
    """A span on its way: its cursor, who is asked, and what is wrong with it."""

    __slots__ = (
        "asked",
        "cursor",
        "failures",
        "kind_since_ms",
        "replica",
        "retry_at_ms",
        "since_ms",
        "topic_id",
        "why",
    )

    def __init__(self, cursor: SpanCursor) -> None:
        self.cursor = cursor
        span = cursor.span
        self.topic_id = uuid_parse(span.topic_id) if span.topic_id else b""
        self.asked = False
        self.replica: int | None = None
        self.failures = 0
        self.since_ms = 0.0  # when it began to go wrong
        self.kind_since_ms = 0.0  # and in the way that it does now
        self.retry_at_ms = 0.0
        self.why: ClientError | None = None

    @property
    def span(self) -> Span:
        return self.cursor.span

    @property
    def waits(self) -> bool:
        return not self.asked and not self.cursor.fetched

    def fine(self) -> None:
        self.failures, self.why, self.retry_at_ms = 0, None, 0.0


class Averages:
    """About how many bytes a record of a partition has, so that no more is fetched than a span holds."""

    def __init__(self, kept: int = 4096) -> None:
        self._kept = kept
        self._found: dict[TopicPartition, float] = {}

    def learn(self, tp: TopicPartition, size: int, offsets: int) -> None:
        if len(self._found) >= self._kept:
            self._found.clear()
        if offsets > 0:
            self._found[tp] = size / offsets

    def of(self, tp: TopicPartition) -> float:
        return self._found.get(tp, _RECORD_BYTES_GUESS)


class Reading:
    """Everything that one read of spans needs until it ends."""

    def __init__(
        self,
        view: ClusterView,
        caller: Caller,
        lookup: OffsetLookup,
        settings: ConsumerSettings,
        averages: Averages,
        spans: Sequence[Span],
        piece_bytes: int,
        on_trimmed: OnTrimmed | None = None,
    ) -> None:
        self._view, self._caller, self._lookup = view, caller, lookup
        self._settings, self._averages, self._on_trimmed = settings, averages, on_trimmed
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._patience_ms = float(settings.default_api_timeout_ms)
        self._committed_only = settings.isolation_level == "read_committed"
        self._tracks = [_Track(SpanCursor(span, piece_bytes)) for span in spans]
        self._calls: dict[int, Call] = {}
        self._topics = sorted({span.topic for span in spans})
        self._refreshing: asyncio.Task[None] | None = None
        self._silence: ClientError | None = None  # why the last question for metadata got no answer
        self._away_ms = 0.0

    async def items(self) -> AsyncIterator[Piece | SpanEnd]:
        """Pieces and ends, as they come."""
        tracks = self._tracks
        for track in [track for track in tracks if track.cursor.finished]:
            tracks.remove(track)
            yield track.cursor.end()
        try:
            await self._look_up()
            while tracks:
                self._ask()
                await self._wait()
                for call in [call for call in self._calls.values() if call.reply.done()]:
                    del self._calls[call.node_id]
                    brought = await self._answered(call)
                    # The broker works while the caller does.
                    self._ask()
                    for track in brought:
                        for piece in track.cursor.pieces():
                            left_at_ms = self._clock_ms()
                            yield piece
                            self._away_ms += self._clock_ms() - left_at_ms
                        if track.cursor.finished:
                            tracks.remove(track)
                            yield track.cursor.end()
        finally:
            self._view.unfollow(*self._topics)
            ending: list[asyncio.Future[Any]] = [call.reply for call in self._calls.values()]
            for call in self._calls.values():
                self._caller.give_up(call)
            if self._refreshing is not None:
                self._refreshing.cancel()
                ending.append(self._refreshing)
            await asyncio.gather(*ending, return_exceptions=True)

    def _clock_ms(self) -> float:
        return asyncio.get_running_loop().time() * 1000

    def _now_ms(self) -> float:
        """Time that passes only while the caller waits for us."""
        return self._clock_ms() - self._away_ms

    async def _look_up(self) -> None:
        """Metadata of topics that are not known, or known by another id than the one that is wanted."""
        wanted = {track.span.topic: track.topic_id for track in self._tracks}
        unknown = []
        for name, topic_id in wanted.items():
            topic = self._view.cached(name)
            if topic is None or (topic_id and topic.id != topic_id):
                unknown.append(name)
        if unknown:
            try:
                await self._view.topics(unknown)
            except ClientError as failure:
                self._silence = failure

    # -- asking

    def _ask(self) -> None:
        now_ms = self._now_ms()
        wanted: dict[int, list[_Track]] = {}
        taken = {track.span.tp for track in self._tracks if track.asked}
        for track in self._tracks:
            if not track.waits or track.retry_at_ms > now_ms:
                continue
            node_id = self._source_of(track)
            if node_id is None or node_id in self._calls:
                continue
            group = wanted.setdefault(node_id, [])
            # Two spans of one partition take turns: a request names a partition once.
            if len(group) < _PARTITIONS_A_CALL and track.span.tp not in taken:
                taken.add(track.span.tp)
                group.append(track)
        for node_id, tracks in wanted.items():
            for track in tracks:
                track.asked = True
            self._calls[node_id] = self._caller.call(node_id, [self._wish(track) for track in tracks], now_ms)

    def _source_of(self, track: _Track) -> int | None:
        """Whom to ask; None, with trouble noted, when that is not known."""
        span = track.span
        topic = self._view.cached(span.topic)
        if topic is None:
            if self._silence is not None:
                self._trouble(track, self._silence)
            else:
                self._trouble(track, _gone(span, f"topic {span.topic!r}"), SURE_MS)
            return None
        if track.topic_id and topic.id != track.topic_id:
            self._trouble(track, _replaced(span, topic), SURE_MS)
            return None
        if span.partition >= len(topic.partitions):
            self._trouble(track, _gone(span, str(span.tp)), SURE_MS)
            return None
        track.topic_id = topic.id
        if track.replica is not None:
            return track.replica
        leader = topic.partitions[span.partition].leader
        if leader < 0:
            self._trouble(track, NotReachable("it has no leader", where=str(span.tp), retriable=True))
            return None
        return leader

    def _wish(self, track: _Track) -> Wish:
        cursor, tp = track.cursor, track.span.tp
        expected = (track.span.end - cursor.fetch_offset) * self._averages.of(tp) * 1.25 + _SPARE_BYTES
        return Wish(
            tp,
            track.topic_id,
            cursor.fetch_offset,
            self._lookup.leader_epoch(tp),
            min(int(expected), self._settings.max_partition_fetch_bytes),
        )

    # -- waiting

    async def _wait(self) -> None:
        """Until an answer, fresh metadata, or the time to try again; calls that take too long end here."""
        now_ms = self._now_ms()
        limit_ms = self._settings.request_timeout_ms + self._settings.fetch_max_wait_ms
        until = [call.asked_at_ms + limit_ms for call in self._calls.values()]
        until += [track.retry_at_ms for track in self._tracks if track.waits and track.retry_at_ms > now_ms]
        waited: list[asyncio.Future[Any]] = [call.reply for call in self._calls.values()]
        if self._refreshing is not None:
            waited.append(self._refreshing)
        timeout_s = max(min(until, default=now_ms) - now_ms, 1.0) / 1000
        if waited:
            await asyncio.wait(waited, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(timeout_s)
        for call in self._calls.values():
            if not call.reply.done() and self._now_ms() - call.asked_at_ms >= limit_ms:
                self._caller.give_up(call)

    def _trouble(self, track: _Track, why: ClientError, patience_ms: float | None = None) -> None:
        """Something that time may mend. Raises `why` when it has lasted for long enough, or cannot be mended."""
        if isinstance(why, (AuthenticationFailed, NotReachable)) and not why.retriable:
            raise why
        now_ms = self._now_ms()
        if not track.failures:
            track.since_ms = now_ms
        if type(track.why) is not type(why):
            track.kind_since_ms = now_ms
        track.failures += 1
        track.why = why
        kind_patience_ms = self._patience_ms if patience_ms is None else patience_ms
        if now_ms - track.since_ms >= self._patience_ms or now_ms - track.kind_since_ms >= kind_patience_ms:
            raise why
        track.retry_at_ms = now_ms + self._backoff.delay_ms(track.failures)
        self._refresh(track.span.topic)

    def _refresh(self, topic: str) -> None:
        self._view.mark_stale(topic)
        if self._refreshing is None:
            self._view.follow(*self._topics)
            self._refreshing = asyncio.get_running_loop().create_task(self._refreshed())

    async def _refreshed(self) -> None:
        self._silence = None
        try:
            await self._view.refreshed()
        except ClientError as failure:
            self._silence = failure
        finally:
            self._refreshing = None

    # -- answers

    async def _answered(self, call: Call) -> list[_Track]:
        """Takes a reply in; the tracks that have something to give now, or have ended."""
        tracks = {track.span.tp: track for track in self._tracks if track.asked and track.span.tp in call.wishes}
        for track in tracks.values():
            track.asked = False
        try:
            reply, answers = call.answers()
            if reply.error_code:
                raise refusal(reply.error_code, None, self._caller.where(call.node_id))
        except ClientError as failure:
            self._caller.hang_up(call.node_id)
            for track in tracks.values():
                track.replica = None
                self._trouble(track, failure)
            return []
        endpoints = {node.node_id: (node.host, node.port) for node in reply.node_endpoints}
        empty: list[tuple[_Track, FetchResponse.PartitionData]] = []
        brought = []
        for wish, data in answers:
            track = tracks[wish.tp]
            if data.error_code:
                await self._refused(track, data, call.node_id, endpoints)
            elif self._take(track, data, call.node_id):
                track.fine()
            else:
                empty.append((track, data))
                continue
            brought.append(track)
        if not brought:
            # Those behind others that fill a reply come later; when nobody brought anything something is wrong.
            for track, data in empty:
                await self._nothing_came(track, data)
        return brought

    def _take(self, track: _Track, data: FetchResponse.PartitionData, node_id: int) -> bool:
        """Whether records came, or another place to ask."""
        cursor, records = track.cursor, data.records
        if data.log_start_offset >= 0:
            cursor.log_start = data.log_start_offset
        preferred = data.preferred_read_replica
        moved = preferred >= 0 and preferred != node_id
        if moved:
            track.replica = preferred
        if not records:
            return moved
        assert isinstance(records, (bytes, bytearray, memoryview)), "only a broker's own replies hold file spans"
        asked_from = cursor.fetch_offset
        batches = open_fetched(
            records,
            asked_from,
            aborted=(data.aborted_transactions or ()) if self._committed_only else None,
            check_crcs=self._settings.check_crcs,
        )
        if batches:
            self._averages.learn(track.span.tp, len(records), batches[-1].end - asked_from)
        cursor.put(batches)
        return bool(batches)

    async def _nothing_came(self, track: _Track, data: FetchResponse.PartitionData) -> None:
        """The log seems to end before the span does: for now, or for good?"""
        span, cursor = track.span, track.cursor
        readable = data.last_stable_offset if self._committed_only else data.high_watermark
        if readable < 0 or readable > cursor.fetch_offset:
            nothing = TimedOutWaiting(
                f"the broker sends nothing from offset {cursor.fetch_offset} on", where=str(span.tp)
            )
            self._trouble(track, nothing)
        elif data.high_watermark >= span.end:
            why = f"records from offset {readable} on belong to transactions that have not ended"
            self._trouble(track, TimedOutWaiting(why, where=str(span.tp)))
        else:
            end = await self._log_end(track)
            lost = 0 <= end < span.end
            self._trouble(track, _end_lost(span, end if lost else readable), SURE_MS if lost else None)

    async def _log_end(self, track: _Track) -> int:
        """Where the leader's log ends, also beyond what it shows yet; -1 when it does not tell."""
        tp = track.span.tp
        epoch = self._lookup.leader_epoch(tp)
        if epoch < 0:
            return -1
        found = (await self._lookup.epoch_ends({tp: epoch})).get(tp)
        return found.end_offset if isinstance(found, EpochEnd) else -1

    async def _refused(
        self,
        track: _Track,
        data: FetchResponse.PartitionData,
        node_id: int,
        endpoints: dict[int, tuple[str, int]],
    ) -> None:
        error, tp = error_of(data.error_code), track.span.tp
        if track.replica == node_id:
            # Whatever a follower cannot do, the leader may.
            track.replica = None
            if error is OFFSET_OUT_OF_RANGE:
                return
        if error in _MOVED:
            leader = data.current_leader
            if self._view.learned(*tp, leader.leader_id, leader.leader_epoch, endpoints.get(leader.leader_id)):
                return
        if error is OFFSET_OUT_OF_RANGE:
            await self._out_of_range(track)
        elif error is CORRUPT_MESSAGE:
            why = f"the broker cannot read its log at offset {track.cursor.fetch_offset}"
            raise CorruptBatch(why, where=str(tp), error=error, retriable=False)
        elif error.retriable or error in _MENDS:
            self._trouble(track, refusal(error.code, None, str(tp)))
        else:
            raise refusal(error.code, None, str(tp))

    async def _out_of_range(self, track: _Track) -> None:
        """Before the start of the log, which is a gap, or behind its end, which is a loss."""
        cursor, tp = track.cursor, track.span.tp
        found = (await self._lookup.by_time({tp: EARLIEST})).get(tp)
        if not isinstance(found, OffsetAndTimestamp):
            self._trouble(
                track, found if isinstance(found, ClientError) else refusal(UNKNOWN_SERVER_ERROR.code, None, str(tp))
            )
        elif found.offset > cursor.position:
            if self._on_trimmed is not None:
                self._on_trimmed(track.span, cursor.position, min(found.offset, track.span.end))
            cursor.trim(found.offset)
            track.fine()
        else:
            self._trouble(track, _end_lost(track.span, cursor.position), SURE_MS)


def _replaced(span: Span, topic: TopicView) -> TopicReplaced:
    return TopicReplaced(
        span,
        f"it was deleted and made anew: its id was {span.topic_id or 'another'} and is {uuid_text(topic.id)} now; "
        f"the records of offsets {span.start} to {span.end} are gone",
        where=f"topic {span.topic!r}",
    )


def _gone(span: Span, where: str) -> TopicGone:
    return TopicGone(span, "it does not exist", where=where, error=UNKNOWN_TOPIC_OR_PARTITION)


def _end_lost(span: Span, end: int) -> EndLost:
    return EndLost(span, f"offsets up to {span.end} were asked for, but its log ends at {end}", where=str(span.tp))
