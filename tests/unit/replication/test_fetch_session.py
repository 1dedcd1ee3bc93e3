"""Fetch sessions: epochs, rotation, forgetting and the bounded cache."""

from __future__ import annotations

from random import Random

import pytest

from penstock.model.errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_TOPIC_OR_PARTITION,
    Refused,
)
from penstock.model.ids import Millis
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.replication.fetch_session import FetchSession, FetchSessions, Given, Interest, Look, News, Watcher

T0 = Millis(0)


def topics(*partitions: int, offset: int = 0) -> list[FetchRequest.FetchTopic]:
    wanted = [
        FetchRequest.FetchPartition(partition=p, fetch_offset=offset, partition_max_bytes=100) for p in partitions
    ]
    return [FetchRequest.FetchTopic(topic="t", partitions=wanted)]


def forget(*partitions: int) -> list[FetchRequest.ForgottenTopic]:
    return [FetchRequest.ForgottenTopic(topic="t", partitions=list(partitions))]


class Partition:
    """As much of a partition as an interest knows."""

    def __init__(self) -> None:
        self.watchers: dict[Watcher, None] = {}


class Fetch:
    """One that waits, and counts how often it was woken."""

    woken = 0

    def wake(self) -> None:
        self.woken += 1


def session(*, privileged: bool = False) -> FetchSession[Partition, Fetch]:
    return FetchSession(7, by_id=False, privileged=privileged, now=T0)


def interest(*, privileged: bool = False) -> Interest[Partition, Fetch]:
    one = session(privileged=privileged)
    ((made,), _) = one.update(topics(0), [])
    return made


Data = FetchResponse.PartitionData
RECORDS = Data(high_watermark=5, log_start_offset=0, records=b"records")
ENDS = Data(high_watermark=5, log_start_offset=0, records=b"")
ELSEWHERE = Data(error_code=NOT_LEADER_OR_FOLLOWER.code)
NOWHERE = Data(error_code=UNKNOWN_TOPIC_OR_PARTITION.code)
CUT = Data(high_watermark=5, log_start_offset=0, diverging_epoch=FetchResponse.EpochEndOffset(epoch=1, end_offset=3))
NEARER = Data(high_watermark=5, log_start_offset=0, preferred_read_replica=2)


def weigh(one: Interest[Partition, Fetch], data: Data, *, waited: bool = False, hurries: bool = False) -> News:
    return one.weigh(data, 7 if data is RECORDS else 0, waited=waited, hurries=hurries)


def test_what_is_worth_telling_and_what_ends_a_wait() -> None:
    assert [weigh(interest(), data) for data in (RECORDS, ENDS)] == [News.SOME, News.SOME]
    assert [weigh(interest(), data) for data in (ELSEWHERE, CUT, NEARER)] == [News.URGENT] * 3
    assert weigh(interest(), ENDS, hurries=True) is News.URGENT


def test_ends_that_were_told_are_no_news_and_are_not_hurried() -> None:
    one = interest()
    one.told(ENDS)
    assert [weigh(one, ENDS), weigh(one, ENDS, hurries=True), weigh(one, RECORDS)] == [News.NONE, News.NONE, News.SOME]


def test_a_partition_that_nobody_knows_ends_a_wait_once() -> None:
    one = interest()
    assert weigh(one, NOWHERE) is News.SOME, "nobody waits yet"
    assert (one.look, weigh(one, NOWHERE, waited=True)) == (Look.UNKNOWN, News.SOME)
    weigh(one, ENDS)
    assert one.look is Look.READ
    assert weigh(one, NOWHERE, waited=True) is News.URGENT, "it was there before"


def test_a_session_without_any_known_partition_has_nothing_to_wait_for() -> None:
    one = session()
    added, _ = one.update(topics(0, 1), [])
    weigh(added[0], NOWHERE)
    assert not one.knows_nothing
    weigh(added[1], NOWHERE)
    assert one.knows_nothing


def test_what_was_told_without_error_is_done_with_unless_there_is_more_to_read() -> None:
    one = interest()
    assert [one.told(data) for data in (ENDS, RECORDS, ELSEWHERE, CUT)] == [True, False, False, True]
    one.look = Look.UNREAD
    assert not one.told(ENDS)


def test_a_fetcher_that_has_to_cut_is_told_the_ends_again() -> None:
    one = interest()
    one.told(CUT)
    assert not one.knows(5, 0)


@pytest.mark.parametrize(
    ("answers", "given", "still_known"),
    [
        ([], Given.NOTHING, False),
        ([ENDS, ENDS], Given.NOTHING, False),
        ([ENDS, RECORDS], Given.RECORDS, True),
        ([RECORDS, ENDS], Given.MORE, False),
        ([RECORDS, RECORDS], Given.MORE, False),
        ([RECORDS, ENDS, ENDS], Given.MORE, False),
    ],
)
def test_only_a_fetcher_that_was_given_records_once_and_goes_on_has_surely_heard_the_ends(
    answers: list[Data], given: Given, still_known: bool
) -> None:
    one = interest()
    for data in answers:
        one.told(data)
    assert one.given is given
    one.session.update(topics(0, offset=9), [])
    assert (one.given, one.knows(5, 0)) == (Given.NOTHING, still_known)


def test_who_asks_again_from_the_same_place_is_told_the_ends_again() -> None:
    one = interest()
    one.told(RECORDS)
    one.session.update(topics(0), [])
    assert not one.knows(5, 0)


def test_an_interest_watches_where_its_partition_is_found() -> None:
    one, partition = interest(), Partition()
    one.watch()
    one.found(partition)
    assert list(partition.watchers) == [one]
    one.unwatch()
    assert not partition.watchers
    one.watch()
    assert list(partition.watchers) == [one]


def test_a_move_makes_dirty_and_wakes_the_fetch_that_waits() -> None:
    one = interest()
    one.session.dirty.clear()
    one.moved()
    assert list(one.session.dirty) == [one]
    one.session.parked = Fetch()
    one.moved()
    assert one.session.parked.woken == 1


@pytest.mark.parametrize(
    ("privileged", "hurries", "watches_on"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_a_higher_high_watermark_wakes_consumers_and_followers_that_hurry(
    privileged: bool, hurries: bool, watches_on: bool
) -> None:
    one, fetch = interest(privileged=privileged), Fetch()
    one.session.dirty.clear()
    one.session.parked = fetch
    assert one.committed(hurries=hurries) == watches_on
    assert (list(one.session.dirty), fetch.woken) == ([one], 0 if watches_on else 1)


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


def refused(sessions: FetchSessions[Partition, Fetch], session_id: int, epoch: int, *, by_id: bool = False) -> object:
    with pytest.raises(Refused) as refusal:
        sessions.resume(session_id, epoch, by_id=by_id, now=T0)
    return refusal.value.error


def test_a_session_goes_on_only_at_its_next_epoch() -> None:
    sessions: FetchSessions[Partition, Fetch] = FetchSessions(10, Random(1))
    one, _ = sessions.open(by_id=False, privileged=False, now=T0)
    assert sessions.resume(one.id, 1, by_id=False, now=T0) is one
    assert refused(sessions, one.id, 1) is INVALID_FETCH_SESSION_EPOCH
    assert sessions.resume(one.id, 2, by_id=False, now=T0) is one


def test_an_unknown_session_and_a_mixed_one_are_refused() -> None:
    sessions: FetchSessions[Partition, Fetch] = FetchSessions(10, Random(1))
    one, _ = sessions.open(by_id=False, privileged=False, now=T0)
    assert refused(sessions, 4711, 1) is FETCH_SESSION_ID_NOT_FOUND
    assert refused(sessions, one.id, 1, by_id=True) is FETCH_SESSION_TOPIC_ID_ERROR


def test_a_full_cache_gives_no_session_until_one_has_idled() -> None:
    sessions: FetchSessions[Partition, Fetch] = FetchSessions(1, Random(1), idle_eviction_ms=100)
    one, _ = sessions.open(by_id=False, privileged=False, now=T0)
    assert sessions.open(by_id=False, privileged=False, now=Millis(50))[0].id == 0
    two, evicted = sessions.open(by_id=False, privileged=False, now=Millis(101))
    assert evicted is one
    assert two.id != 0


def test_a_follower_takes_the_place_of_a_consumer() -> None:
    sessions: FetchSessions[Partition, Fetch] = FetchSessions(1, Random(1))
    consumer, _ = sessions.open(by_id=False, privileged=False, now=T0)
    follower, evicted = sessions.open(by_id=False, privileged=True, now=T0)
    assert (evicted, follower.privileged) == (consumer, True)
    assert sessions.open(by_id=False, privileged=False, now=T0)[0].id == 0


def test_sessions_that_nobody_uses_any_more_end_though_there_is_room() -> None:
    sessions: FetchSessions[Partition, Fetch] = FetchSessions(10, Random(1), idle_eviction_ms=100)
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
    sessions: FetchSessions[Partition, Fetch] = FetchSessions(1, Random(1))
    consumer, _ = sessions.open(by_id=False, privileged=False, now=T0)
    consumer.parked = object()
    assert sessions.open(by_id=False, privileged=True, now=T0)[0].id == 0
