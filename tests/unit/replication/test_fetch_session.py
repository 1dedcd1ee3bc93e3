"""Fetch sessions: epochs, rotation, forgetting and the bounded cache."""

from __future__ import annotations

from random import Random

import pytest

from penstock.model.errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
    Refused,
)
from penstock.model.ids import Millis
from penstock.protocol.messages.fetch import FetchRequest
from penstock.replication.fetch_session import FetchSession, FetchSessions

T0 = Millis(0)


def topics(*partitions: int, offset: int = 0) -> list[FetchRequest.FetchTopic]:
    wanted = [
        FetchRequest.FetchPartition(partition=p, fetch_offset=offset, partition_max_bytes=100) for p in partitions
    ]
    return [FetchRequest.FetchTopic(topic="t", partitions=wanted)]


def forget(*partitions: int) -> list[FetchRequest.ForgottenTopic]:
    return [FetchRequest.ForgottenTopic(topic="t", partitions=list(partitions))]


def session() -> FetchSession:
    return FetchSession(7, by_id=False, privileged=False, now=T0)


def test_what_is_asked_anew_goes_to_the_back() -> None:
    one = session()
    one.update(topics(0, 1, 2), [])
    one.update(topics(0, offset=9), [])
    assert [(i.partition, i.offset) for i in one.dirty] == [(1, 0), (2, 0), (0, 9)]


def test_an_interest_is_made_once() -> None:
    one = session()
    added, _ = one.update(topics(0, 1), [])
    again, _ = one.update(topics(1), [])
    assert ([i.partition for i in added], again) == ([0, 1], [])


def test_a_forgotten_partition_is_neither_kept_nor_dirty() -> None:
    one = session()
    one.update(topics(0, 1), [])
    _, gone = one.update([], forget(0))
    assert [i.partition for i in gone] == [0]
    assert [i.partition for i in one.dirty] == [1]
    assert len(one.interests) == 1


def refused(sessions: FetchSessions, session_id: int, epoch: int, *, by_id: bool = False) -> object:
    with pytest.raises(Refused) as refusal:
        sessions.resume(session_id, epoch, by_id=by_id, now=T0)
    return refusal.value.error


def test_a_session_goes_on_only_at_its_next_epoch() -> None:
    sessions = FetchSessions(10, Random(1))
    one, _ = sessions.open(by_id=False, privileged=False, now=T0)
    assert sessions.resume(one.id, 1, by_id=False, now=T0) is one
    assert refused(sessions, one.id, 1) is INVALID_FETCH_SESSION_EPOCH
    assert sessions.resume(one.id, 2, by_id=False, now=T0) is one


def test_an_unknown_session_and_a_mixed_one_are_refused() -> None:
    sessions = FetchSessions(10, Random(1))
    one, _ = sessions.open(by_id=False, privileged=False, now=T0)
    assert refused(sessions, 4711, 1) is FETCH_SESSION_ID_NOT_FOUND
    assert refused(sessions, one.id, 1, by_id=True) is FETCH_SESSION_TOPIC_ID_ERROR


def test_a_full_cache_gives_no_session_until_one_has_idled() -> None:
    sessions = FetchSessions(1, Random(1), idle_eviction_ms=100)
    one, _ = sessions.open(by_id=False, privileged=False, now=T0)
    assert sessions.open(by_id=False, privileged=False, now=Millis(50))[0].id == 0
    two, evicted = sessions.open(by_id=False, privileged=False, now=Millis(101))
    assert evicted is one
    assert two.id != 0


def test_a_follower_takes_the_place_of_a_consumer() -> None:
    sessions = FetchSessions(1, Random(1))
    consumer, _ = sessions.open(by_id=False, privileged=False, now=T0)
    follower, evicted = sessions.open(by_id=False, privileged=True, now=T0)
    assert (evicted, follower.privileged) == (consumer, True)
    assert sessions.open(by_id=False, privileged=False, now=T0)[0].id == 0


def test_sessions_that_nobody_uses_any_more_end_though_there_is_room() -> None:
    sessions = FetchSessions(10, Random(1), idle_eviction_ms=100)
    dead, _ = sessions.open(by_id=True, privileged=True, now=T0)
    waiting, _ = sessions.open(by_id=True, privileged=False, now=T0)
    waiting.parked = object()
    alive, _ = sessions.open(by_id=True, privileged=True, now=T0)
    sessions.resume(alive.id, 1, by_id=True, now=Millis(90))
    assert sessions.abandoned(Millis(100)) == []
    assert sessions.abandoned(Millis(101)) == [dead]
    assert len(sessions) == 2
    with pytest.raises(Refused, match=FETCH_SESSION_ID_NOT_FOUND.name):
        sessions.resume(dead.id, 1, by_id=True, now=Millis(101))


def test_a_session_with_a_waiting_fetch_is_not_evicted() -> None:
    sessions = FetchSessions(1, Random(1))
    consumer, _ = sessions.open(by_id=False, privileged=False, now=T0)
    consumer.parked = object()
    assert sessions.open(by_id=False, privileged=True, now=T0)[0].id == 0
