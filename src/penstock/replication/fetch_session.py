"""Fetch sessions (KIP-227): what a fetcher is interested in, kept between its fetches. Pure.

A session remembers its partitions, so an idle one costs nothing: only interests that are *dirty* (asked anew, or
whose partition moved) are visited by the next fetch, oldest first, so that a busy partition cannot starve the rest.
A fetcher with other rights than the last one, be it another one, visits all.

An interest is in two states at a time. What the last look at its partition found:

| look | what was found | asked anew | its partition moves |
|---|---|---|---|
| READ | all that there is, or nothing was looked at yet | dirty | dirty, and a waiting fetch looks |
| UNREAD | more than there was room for: it stays dirty | to the back of the queue | |
| UNKNOWN | no such partition, or none for this fetcher | looked for again | looked for again |

And what its fetcher has been given since it last asked:

| given | an answer without records | an answer with records | asked anew |
|---|---|---|---|
| NOTHING | NOTHING | RECORDS | NOTHING |
| RECORDS | MORE | MORE | NOTHING; where it goes on from there, it has taken all that it was told |
| MORE | MORE | MORE | NOTHING; it may have dropped something, and is told all again |
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from penstock.model.errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    Refused,
)
from penstock.model.ids import Millis, Uuid

if TYPE_CHECKING:
    from random import Random

    from penstock.protocol.messages.fetch import FetchRequest, FetchResponse

FULL, FINAL = 0, -1  # the two session epochs with a meaning of their own
_EPOCH_MAX = 2**31 - 1

# Nobody can say when these end, so they are told with the next reply and do not hurry it. A client that was answered
# at once would ask again at once.
_PATIENT: Final = frozenset(
    error.code for error in (TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION)
)


class Look(Enum):
    """What the last look at a partition found."""

    READ = "all that there is"
    UNREAD = "more than there was room for"
    UNKNOWN = "no such partition"


class Given(Enum):
    """What a fetcher was given of a partition since it last asked for it."""

    NOTHING = "nothing, or news without records"
    RECORDS = "one answer with records"
    MORE = "another answer, before the fetcher could say that it has the records"


class News(Enum):
    """What there is to tell of a partition."""

    NONE = "nothing that the fetcher does not know"
    SOME = "something, which may wait for more"
    URGENT = "something to be told at once"


READ, UNREAD, UNKNOWN = Look.READ, Look.UNREAD, Look.UNKNOWN
"""By these names: a member costs a lookup more each time, and looks are what fetches are made of."""
_NOTHING, _RECORDS, _MORE = Given.NOTHING, Given.RECORDS, Given.MORE
_NONE, _SOME, _URGENT = News.NONE, News.SOME, News.URGENT


class Watcher(Protocol):
    """An interest, as the partition that it watches knows it. It hears of one move, and has to watch again."""

    def moved(self) -> None:
        """There is news."""

    def committed(self, *, hurries: bool) -> bool:
        """The high watermark moved. True when that is no reason to look, so that it goes on watching."""


class Watched(Protocol):
    """A partition that tells its watchers when it moves."""

    @property
    def watchers(self) -> dict[Watcher, None]: ...


class Parked(Protocol):
    """A fetch that waits."""

    def wake(self) -> None:
        """There is news for it."""


H = TypeVar("H", bound=Watched)
P = TypeVar("P", bound=Parked)


class Interest(Generic[H, P]):
    """One partition in one session: from where to read and what its fetcher was last told."""

    __slots__ = (
        "given", "hosted", "last_fetched_epoch", "leader_epoch", "log_start", "look", "max_bytes", "offset",
        "partition", "sent_high_watermark", "sent_log_start", "session", "topic", "topic_id", "watched",
    )  # fmt: skip

    def __init__(self, session: FetchSession[H, P], topic: str, topic_id: Uuid, partition: int) -> None:
        self.session, self.topic, self.topic_id, self.partition = session, topic, topic_id, partition
        self.hosted: H | None = None  # the driver's handle; this room only carries it
        self.offset = self.max_bytes = 0
        self.leader_epoch = self.last_fetched_epoch = self.log_start = -1
        self.sent_high_watermark = self.sent_log_start = -1
        self.look, self.given = READ, _NOTHING
        self.watched = False  # the session wants to be told when the partition moves, as soon as that is known here

    # -- asked

    def ask(self, wanted: FetchRequest.FetchPartition) -> None:
        """Takes the fetch position of a request's partition."""
        if not self._goes_on(wanted):
            # Of what was told before the fetcher may have dropped something as stale: it is told again.
            self.sent_high_watermark = self.sent_log_start = -1
        self.given = _NOTHING
        self.offset, self.max_bytes = wanted.fetch_offset, wanted.partition_max_bytes
        self.leader_epoch, self.last_fetched_epoch = wanted.current_leader_epoch, wanted.last_fetched_epoch
        self.log_start = wanted.log_start_offset

    def _goes_on(self, wanted: FetchRequest.FetchPartition) -> bool:
        """Whether the fetcher has taken the one answer with records that it was given, and nothing else happened."""
        if self.given is not _RECORDS or wanted.fetch_offset == self.offset:
            return False
        return wanted.current_leader_epoch == self.leader_epoch and wanted.log_start_offset == self.log_start

    # -- looked at

    def knows(self, high_watermark: int, log_start: int) -> bool:
        """Whether the fetcher was told exactly this before."""
        return high_watermark == self.sent_high_watermark and log_start == self.sent_log_start

    def weigh(self, data: FetchResponse.PartitionData, size: int, *, waited: bool, hurries: bool) -> News:
        """What a look found, with `size` bytes of records: is it worth telling, and does it end a wait?

        `waited` says that the fetch has been waiting, `hurries` that a higher high watermark is told at once.
        """
        error = data.error_code
        if error:
            was_unknown = self.look is UNKNOWN
            if error in _PATIENT:
                self.look = UNKNOWN
                return _URGENT if waited and not was_unknown else _SOME
            if was_unknown:
                self.look = READ
            return _URGENT
        if self.look is UNKNOWN:
            self.look = READ
        if data.diverging_epoch.end_offset >= 0 or data.preferred_read_replica >= 0:
            return _URGENT
        if hurries and data.high_watermark > self.sent_high_watermark:
            return _URGENT
        return _SOME if size or not self.knows(data.high_watermark, data.log_start_offset) else _NONE

    def told(self, data: FetchResponse.PartitionData) -> bool:
        """An answer that speaks of the partition is on its way. True when nothing is left to say until it moves."""
        if self.given is not _NOTHING:
            self.given = _MORE
        elif data.records:
            self.given = _RECORDS
        self.sent_high_watermark, self.sent_log_start = data.high_watermark, data.log_start_offset
        if data.diverging_epoch.end_offset >= 0:
            # A fetcher that has to cut its log first has no use for it yet, and has to be told again.
            self.sent_high_watermark = -1
        return not data.error_code and not data.records and self.look is not UNREAD

    # -- watching

    def watch(self) -> None:
        """Wants to hear when the partition moves: now, or as soon as it is found here."""
        self.watched = True
        hosted = self.hosted
        if hosted is not None:
            hosted.watchers[self] = None

    def unwatch(self) -> None:
        self.watched = False
        hosted = self.hosted
        if hosted is not None:
            hosted.watchers.pop(self, None)

    def found(self, hosted: H) -> None:
        """The partition is here, in this incarnation."""
        self.hosted = hosted
        if self.watched:
            hosted.watchers[self] = None

    def moved(self) -> None:
        """The partition has news; the fetch that waits for some, if one does, is told."""
        session = self.session
        session.dirty[self] = None
        parked = session.parked
        if parked is not None:
            parked.wake()

    def committed(self, *, hurries: bool) -> bool:
        """The high watermark moved, which gives a follower no more to read: unless it `hurries`, the next reply tells.

        True when it goes on watching.
        """
        session = self.session
        if hurries or not session.privileged:
            self.moved()
            return False
        session.dirty[self] = None
        return True


class FetchSession(Generic[H, P]):
    """The interests of one fetcher. `parked` is its waiting fetch, if it has one; the driver sets it."""

    __slots__ = ("_rights", "by_id", "dirty", "epoch", "id", "interests", "parked", "privileged", "used_at")

    def __init__(self, session_id: int, *, by_id: bool, privileged: bool, now: Millis) -> None:
        self.id, self.by_id, self.privileged, self.used_at = session_id, by_id, privileged, now
        self.epoch = 1
        self.interests: dict[tuple[str | bytes, int], Interest[H, P]] = {}
        self.dirty: dict[Interest[H, P], None] = {}
        self.parked: P | None = None
        self._rights: Hashable = None

    def read_with(self, rights: Hashable) -> None:
        """The fetcher has these rights. If they are others than before, no partition is known to be known any more:
        it has to be looked at, and may have to be refused."""
        if rights != self._rights:
            self._rights = rights
            for interest in self.interests.values():
                self.dirty[interest] = None

    def update(
        self, topics: Iterable[FetchRequest.FetchTopic], forgotten: Iterable[FetchRequest.ForgottenTopic]
    ) -> tuple[list[Interest[H, P]], list[Interest[H, P]]]:
        """Takes a request's partitions and returns the interests that are new and those that went."""
        added: list[Interest[H, P]] = []
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

    def _forget(self, forgotten: Iterable[FetchRequest.ForgottenTopic]) -> list[Interest[H, P]]:
        gone: list[Interest[H, P]] = []
        for topic in forgotten:
            name = topic.topic_id if self.by_id else topic.topic
            for partition in topic.partitions:
                interest = self.interests.pop((name, partition), None)
                if interest is not None:
                    self.dirty.pop(interest, None)
                    gone.append(interest)
        return gone

    @property
    def knows_nothing(self) -> bool:
        """Whether none of its partitions is here, so that there is nothing to wait for."""
        return all(interest.look is UNKNOWN for interest in self.interests.values())


class FetchSessions(Generic[H, P]):
    """The bounded cache of sessions. Evicts the longest idle one when it is full, followers' sessions last.

    One that is idle for `idle_eviction_ms` is nobody's: followers fetch every half a second and so do consumers that
    live. Whoever lost its process or its leader left it behind, with every partition that it was interested in.
    """

    def __init__(self, slots: int, random: Random, idle_eviction_ms: int = 120_000) -> None:
        self._slots, self._random, self._idle_eviction_ms = slots, random, idle_eviction_ms
        self._sessions: dict[int, FetchSession[H, P]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def resume(self, session_id: int, epoch: int, *, by_id: bool, now: Millis) -> FetchSession[H, P]:
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

    def open(
        self, *, by_id: bool, privileged: bool, now: Millis
    ) -> tuple[FetchSession[H, P], FetchSession[H, P] | None]:
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
        session: FetchSession[H, P] = FetchSession(session_id, by_id=by_id, privileged=privileged, now=now)
        self._sessions[session_id] = session
        return session, evicted

    def abandoned(self, now: Millis) -> list[FetchSession[H, P]]:
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

    def close(self, session_id: int) -> FetchSession[H, P] | None:
        """Ends a session; None when there was none of that id."""
        return self._sessions.pop(session_id, None)

    def _evictable(self, privileged: bool, now: Millis) -> FetchSession[H, P] | None:
        for session in self._sessions.values():
            if session.parked is not None:
                continue
            if now - session.used_at > self._idle_eviction_ms or (privileged and not session.privileged):
                return session
        return None
