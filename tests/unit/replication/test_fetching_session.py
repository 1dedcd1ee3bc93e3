"""The two sides of a fetch session agree on what is fetched from where, whatever is lost on the way."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from penstock.model.errors import INVALID_FETCH_SESSION_EPOCH, Refused
from penstock.model.ids import Epoch, Millis, PartitionKey, TopicPartition, Uuid
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.replication.fetch_session import FetchSession, FetchSessions
from penstock.replication.fetching_session import FULL, FetchingSession, Question
from penstock.replication.following import Following, Position

TOPIC_ID = Uuid(b"\x01" * 16)


class Replica:
    """A partition whose position the test moves."""

    def __init__(self) -> None:
        self.offset = self.log_start = 0


def made(number: int, epoch: int = 1) -> Following:
    key = PartitionKey(TOPIC_ID, number)
    return Following(key, TopicPartition("t", number), Epoch(epoch), Replica())


def position_of(following: Following) -> Position:
    return Position(following.hosted.offset, following.epoch, 0, following.hosted.log_start)


def ask(session: FetchingSession, most: int = 1_000) -> Question:
    return session.question(position_of, most)


def named(question: Question) -> list[int]:
    return [following.key.partition for following, _ in question.wanted]


def opened(count: int) -> tuple[FetchingSession, list[Following]]:
    session = FetchingSession()
    partitions = [made(number) for number in range(count)]
    for following in partitions:
        session.add(following)
    question = ask(session)
    assert (question.session_id, question.session_epoch) == (0, FULL)
    assert session.answered(question, 0, 7)
    return session, partitions


def test_idle_partitions_are_not_named_again() -> None:
    session, partitions = opened(5_000)
    while session.has_news:
        session.answered(ask(session), 0, 7)
    partitions[17].hosted.offset = 5
    session.touch(partitions[17])
    question = ask(session)
    assert (named(question), question.forgotten, question.more) == ([17], [], False)
    assert ask(session).wanted == []


def test_many_partitions_are_named_a_part_at_a_time() -> None:
    session = FetchingSession()
    for number in range(25):
        session.add(made(number))
    questions = []
    while session.has_news:
        questions.append(ask(session, most=10))
        session.answered(questions[-1], 0, 7)
    assert [len(question.wanted) for question in questions] == [10, 10, 5]
    assert [question.more for question in questions] == [True, True, False]
    assert [question.session_epoch for question in questions] == [FULL, 1, 2]


def test_what_is_held_is_forgotten_and_named_again_later() -> None:
    session, (first, second) = opened(2)
    session.hold(first, "it is throttled")
    question = ask(session)
    assert (named(question), question.forgotten) == ([], [first.key])
    session.resume(first)
    assert named(ask(session)) == [0]
    assert not second.held


def test_after_a_hold_a_partition_is_named_again_even_where_it_was() -> None:
    """Answers that came meanwhile were dropped, and what they said must be said again."""
    session, (first,) = opened(1)
    session.hold(first, "it is being synced")
    assert not session.asks_anything, "there is nothing to say before it is synced"
    session.resume(first)
    question = ask(session)
    assert (named(question), question.forgotten) == ([0], [])
    assert session.asks_anything
    assert ask(session).wanted == []


def test_a_partition_that_comes_back_before_it_was_forgotten_replaces_itself() -> None:
    session, (first,) = opened(1)
    session.remove(first.key)
    session.add(made(0, epoch=2))
    question = ask(session)
    assert (named(question), question.forgotten) == ([0], [])


def test_where_the_log_begins_is_told_when_it_changes() -> None:
    session, (first,) = opened(1)
    first.hosted.log_start = 4
    session.touch(first)
    assert [position.log_start for _, position in ask(session).wanted] == [4]
    session.touch(first)
    assert ask(session).wanted == []


def test_what_goes_right_after_a_hold_is_forgotten_too() -> None:
    """The leader had never heard of the hold, and would tell of the partition for ever."""
    session, (first, _) = opened(2)
    session.hold(first, "it is being synced")
    session.resume(first)
    session.remove(first.key)
    assert ask(session).forgotten == [first.key]


def test_what_is_held_twice_before_it_is_told_is_forgotten_too() -> None:
    session, (first, _) = opened(2)
    session.hold(first, "it is being synced")
    session.resume(first)
    session.hold(first, "it is throttled")
    assert ask(session).forgotten == [first.key]


def test_an_answer_that_is_dropped_makes_the_leader_hear_how_it_is() -> None:
    session, (moved, held, gone) = opened(3)
    session.hold(held, "it is being synced")
    session.remove(gone.key)
    last = ask(session)
    assert last.forgotten == [held.key, gone.key]
    moved.hosted.offset = 9
    for following in (moved, held, gone):
        session.dropped(last, following.key)
    question = ask(session)
    assert (named(question), question.forgotten) == ([0], [held.key, gone.key])
    session.dropped(last, moved.key)
    assert named(ask(session)) == [], "it was told since; that it is told again would help nobody"


def test_an_answer_to_an_older_session_tells_nothing() -> None:
    session, (first, _) = opened(2)
    old = ask(session)
    session.failed(old)
    assert session.answered(ask(session), 0, 8)
    session.remove(first.key)
    ask(session)
    session.dropped(old, first.key)
    assert ask(session).forgotten == []


def test_without_an_answer_everything_is_said_again_and_the_old_session_closed() -> None:
    session, _ = opened(3)
    session.failed(ask(session))
    question = ask(session)
    assert (question.session_id, question.session_epoch, named(question)) == (7, FULL, [0, 1, 2])


def test_an_error_of_the_session_begins_a_new_one() -> None:
    session, _ = opened(1)
    assert not session.answered(ask(session), INVALID_FETCH_SESSION_EPOCH.code, 0)
    assert ask(session).session_epoch == FULL


def test_an_answer_to_an_older_session_does_not_end_the_new_one() -> None:
    session, _ = opened(1)
    old = ask(session)
    session.failed(old)
    assert session.answered(ask(session), 0, 8)
    session.answered(old, INVALID_FETCH_SESSION_EPOCH.code, 0)
    assert (session.id, session.established) == (8, True)


def test_a_leader_without_room_is_told_everything_each_time() -> None:
    session = FetchingSession()
    for number in range(20):
        session.add(made(number))
    for _ in range(3):
        question = ask(session, most=10)
        session.answered(question, 0, 0)
    assert session.refused_by_leader
    assert len(named(question)) == 20


def test_the_leader_tells_the_ends_again_when_it_is_asked_in_a_new_epoch() -> None:
    """The fetcher dropped what it was told meanwhile, because it was told in the old one."""
    session, (following,) = opened(1)
    leader = Leader(Random(1))
    session.failed(ask(session))
    question = ask(session)
    session.answered(question, *leader.fetch(question))
    assert leader.current is not None
    (interest,) = leader.current.interests.values()
    interest.told(answer(5, 5))
    following.hosted.offset += 1
    session.touch(following)
    leader.fetch(ask(session))
    assert interest.sent_high_watermark == 5, "an append changes nothing about it"
    following.epoch = Epoch(2)
    session.touch(following)
    leader.fetch(ask(session))
    assert (interest.sent_high_watermark, interest.sent_log_start) == (-1, -1)


def test_the_leader_tells_the_ends_again_when_two_answers_were_under_way() -> None:
    """Both have the same records, for the fetcher had not said yet that it has them: it drops one of the two."""
    session, (following,) = opened(1)
    leader = Leader(Random(1))
    session.failed(ask(session))
    question = ask(session)
    session.answered(question, *leader.fetch(question))
    assert leader.current is not None
    (interest,) = leader.current.interests.values()
    interest.told(answer(5, 0))
    interest.told(answer(9, 0))
    following.hosted.offset += 1
    session.touch(following)
    leader.fetch(ask(session))
    assert interest.sent_high_watermark == -1


def answer(high_watermark: int, log_start: int) -> FetchResponse.PartitionData:
    return FetchResponse.PartitionData(high_watermark=high_watermark, log_start_offset=log_start, records=b"records")


class Leader:
    """The leader's side, as it is; it may forget a session at any time."""

    def __init__(self, random: Random) -> None:
        self.sessions: FetchSessions[Any, Any] = FetchSessions(5, random)
        self.current: FetchSession[Any, Any] | None = None

    def fetch(self, question: Question) -> tuple[int, int]:
        topics: list[Any] = [
            FetchRequest.FetchTopic(
                topic_id=TOPIC_ID,
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=following.key.partition,
                        current_leader_epoch=position.leader_epoch,
                        fetch_offset=position.offset,
                        log_start_offset=position.log_start,
                    )
                    for following, position in question.wanted
                ],
            )
        ]
        forgotten: list[Any] = [
            FetchRequest.ForgottenTopic(topic_id=TOPIC_ID, partitions=[key.partition for key in question.forgotten])
        ]
        try:
            if question.session_epoch == FULL:
                self.sessions.close(question.session_id)
                session, _ = self.sessions.open(by_id=True, privileged=True, now=Millis(0))
            else:
                session = self.sessions.resume(question.session_id, question.session_epoch, by_id=True, now=Millis(0))
        except Refused as refusal:
            return refusal.error.code, 0
        session.update(topics, forgotten)
        self.current = session
        return 0, session.id


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_lost_the_leader_fetches_from_where_we_are(seed: int) -> None:
    random = Random(seed)
    session, leader = FetchingSession(), Leader(random)
    known: dict[int, Following] = {}
    for _ in range(300):
        number = random.randrange(8)
        following = known.get(number)
        match random.randrange(6):
            case 0 if following is None:
                known[number] = made(number, random.randrange(5))
                session.add(known[number])
            case 1 if following is not None:
                session.remove(following.key)
                del known[number]
            case 2 if following is not None:
                following.hosted.offset += random.randrange(2)
                following.hosted.log_start = random.randint(following.hosted.log_start, following.hosted.offset)
                session.touch(following)
            case 3 if following is not None:
                session.resume(following) if following.held else session.hold(following, "a while")
            case 4 if leader.current is not None and random.random() < 0.1:
                leader.sessions.close(leader.current.id)
            case _ if session.asks_anything:
                question = ask(session, most=random.choice((2, 100)))
                heard = random.random() < 0.9
                error, session_id = leader.fetch(question) if heard else (0, 0)
                if heard and random.random() < 0.9:
                    session.answered(question, error, session_id)
                else:
                    session.failed(question)
        assert session._told == sum(1 for each in known.values() if not each.held and each.sent is not None), (
            "what is counted is what is there"
        )
    for following in known.values():
        session.resume(following)
    for _ in range(20):
        if session.asks_anything and (session.has_news or not session.established):
            question = ask(session)
            session.answered(question, *leader.fetch(question))
    if not known:
        return
    assert leader.current is not None
    interests = {interest.partition: interest for interest in leader.current.interests.values()}
    # What is to be forgotten is said with the next thing that there is to say.
    waiting = {key.partition for key in ask(session).forgotten}
    assert set(interests) - waiting == set(known)
    for number, following in known.items():
        told = interests[number]
        assert (told.offset, told.leader_epoch, told.log_start) == position_of(following)[:2] + position_of(following)[
            3:
        ]
