"""Fetch sessions (KIP-227): what a fetcher is interested in, kept between its fetches.

A session remembers its partitions, so an idle one costs nothing: only interests that are *dirty* (asked anew, or
whose partition moved) are visited by the next fetch, oldest first, so that a busy partition cannot starve the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.model.errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
    Refused,
)
from penstock.model.ids import Millis, Uuid

FULL, FINAL = 0, -1  # the two session epochs with a meaning of their own
_EPOCH_MAX = 2**31 - 1


class Interest:
    """One partition in one session: from where to read and what its fetcher was last told."""

    __slots__ = (
        "given", "hosted", "last_fetched_epoch", "leader_epoch", "log_start", "max_bytes", "offset", "overlapped",
        "partition", "sent_high_watermark", "sent_log_start", "session", "topic", "topic_id", "unknown", "unread",
        "watched",
    )  # fmt: skip

    def __init__(self, session: FetchSession, topic: str, topic_id: Uuid, partition: int) -> None:
        self.session, self.topic, self.topic_id, self.partition = session, topic, topic_id, partition
        self.hosted: Any = None  # the driver's handle; this room only carries it
        self.offset = self.max_bytes = 0
        self.leader_epoch = self.last_fetched_epoch = self.log_start = -1
        self.sent_high_watermark = self.sent_log_start = -1
        self.watched = False  # somebody wants to be told when the partition moves
        self.unknown = False  # there was no such partition when it was last looked for
        self.unread = False  # there was more to read than the last look had room for
        self.given = False  # records were sent since it was last asked for
        self.overlapped = False  # and then another answer, before the fetcher could say that it has them

    def ask(self, wanted: Any) -> None:
        """Takes the fetch position of a request's partition."""
        if not self._goes_on(wanted):
            # Of what was told before the fetcher may have dropped something as stale: it is told again.
            self.sent_high_watermark = self.sent_log_start = -1
        self.given = self.overlapped = False
        self.offset, self.max_bytes = wanted.fetch_offset, wanted.partition_max_bytes
        self.leader_epoch, self.last_fetched_epoch = wanted.current_leader_epoch, wanted.last_fetched_epoch
        self.log_start = wanted.log_start_offset

    def _goes_on(self, wanted: Any) -> bool:
        """Whether the fetcher has taken the one answer with records that it was given, and nothing else happened."""
        if not self.given or self.overlapped or wanted.fetch_offset == self.offset:
            return False
        return bool(wanted.current_leader_epoch == self.leader_epoch and wanted.log_start_offset == self.log_start)

    def knows(self, high_watermark: int, log_start: int) -> bool:
        """Whether the fetcher was told exactly this before."""
        return high_watermark == self.sent_high_watermark and log_start == self.sent_log_start

    def told(self, high_watermark: int, log_start: int, *, with_records: bool) -> None:
        """An answer that speaks of the partition is on its way."""
        self.overlapped = self.overlapped or self.given
        self.given = self.given or with_records
        self.sent_high_watermark, self.sent_log_start = high_watermark, log_start


class FetchSession:
    """The interests of one fetcher. `parked` is its waiting fetch, if it has one; the driver sets it."""

    __slots__ = ("by_id", "dirty", "epoch", "id", "interests", "parked", "privileged", "used_at")

    def __init__(self, session_id: int, *, by_id: bool, privileged: bool, now: Millis) -> None:
        self.id, self.by_id, self.privileged, self.used_at = session_id, by_id, privileged, now
        self.epoch = 1
        self.interests: dict[tuple[str | bytes, int], Interest] = {}
        self.dirty: dict[Interest, None] = {}
        self.parked: Any = None

    def update(self, topics: Iterable[Any], forgotten: Iterable[Any]) -> tuple[list[Interest], list[Interest]]:
        """Takes a request's partitions and returns the interests that are new and those that went."""
        added: list[Interest] = []
        interests, dirty = self.interests, self.dirty
        for topic in topics:
            name = topic.topic_id if self.by_id else topic.topic
            for wanted in topic.partitions:
                key = (name, wanted.partition)
                interest = interests.get(key)
                if interest is None:
                    interest = interests[key] = Interest(self, topic.topic, topic.topic_id, wanted.partition)
                    added.append(interest)
                interest.ask(wanted)
                # Asked anew goes to the back of the queue: that is the rotation.
                dirty.pop(interest, None)
                dirty[interest] = None
        return added, self._forget(forgotten)

    def _forget(self, forgotten: Iterable[Any]) -> list[Interest]:
        gone: list[Interest] = []
        for topic in forgotten:
            name = topic.topic_id if self.by_id else topic.topic
            for partition in topic.partitions:
                interest = self.interests.pop((name, partition), None)
                if interest is not None:
                    self.dirty.pop(interest, None)
                    gone.append(interest)
        return gone


class FetchSessions:
    """The bounded cache of sessions. Evicts the longest idle one when it is full, followers' sessions last.

    One that is idle for `idle_eviction_ms` is nobody's: followers fetch every half a second and so do consumers that
    live. Whoever lost its process or its leader left it behind, with every partition that it was interested in.
    """

    def __init__(self, slots: int, random: Any, idle_eviction_ms: int = 120_000) -> None:
        self._slots, self._random, self._idle_eviction_ms = slots, random, idle_eviction_ms
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def resume(self, session_id: int, epoch: int, *, by_id: bool, now: Millis) -> FetchSession:
        """The session of an incremental fetch, its epoch moved on."""
        session = self._sessions.get(session_id)
        if session is None:
            raise Refused(FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise Refused(INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            raise Refused(FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = 1 if epoch == _EPOCH_MAX else epoch + 1
        session.used_at = now
        # Python dicts keep insertion order: the front is the longest idle.
        del self._sessions[session_id]
        self._sessions[session_id] = session
        return session

    def open(self, *, by_id: bool, privileged: bool, now: Millis) -> tuple[FetchSession, FetchSession | None]:
        """A new session, with id 0 when the cache has no room, and the session evicted for it, if any."""
        evicted = None
        if len(self._sessions) >= self._slots:
            evicted = self._evictable(privileged, now)
            if evicted is None:
                return FetchSession(0, by_id=by_id, privileged=privileged, now=now), None
            del self._sessions[evicted.id]
        session_id = self._random.randrange(1, _EPOCH_MAX)
        while session_id in self._sessions:
            session_id = self._random.randrange(1, _EPOCH_MAX)
        session = FetchSession(session_id, by_id=by_id, privileged=privileged, now=now)
        self._sessions[session_id] = session
        return session, evicted

    def abandoned(self, now: Millis) -> list[FetchSession]:
        """Ends the sessions that nobody has used for long; those that were used last are at the end."""
        found = []
        for session in self._sessions.values():
            if now - session.used_at <= self._idle_eviction_ms:
                break
            if session.parked is None:
                found.append(session)
        for session in found:
            del self._sessions[session.id]
        return found

    def close(self, session_id: int) -> FetchSession | None:
        """Ends a session; None when there was none of that id."""
        return self._sessions.pop(session_id, None)

    def _evictable(self, privileged: bool, now: Millis) -> FetchSession | None:
        for session in self._sessions.values():
            if session.parked is not None:
                continue
            if now - session.used_at > self._idle_eviction_ms or (privileged and not session.privileged):
                return session
        return None
