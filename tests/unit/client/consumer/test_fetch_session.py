"""What is said to a broker again, and what is not."""

from __future__ import annotations

from penstock.client.consumer.fetch_session import FetchPlan, FetchSession

A, B = ("a", 0), ("b", 0)
AT_0, AT_5 = (0, 1, 100), (5, 1, 100)


def begun() -> FetchSession:
    session = FetchSession()
    session.plan({A: AT_0, B: AT_0})
    session.replied(9)
    return session


def test_the_first_fetch_says_everything() -> None:
    assert FetchSession().plan({A: AT_0, B: AT_0}) == FetchPlan(0, 0, {A: AT_0, B: AT_0}, [])


def test_later_ones_say_what_has_changed() -> None:
    session = begun()
    assert session.plan({A: AT_5, B: AT_0}) == FetchPlan(9, 1, {A: AT_5}, [])
    session.replied(9)
    assert session.plan({A: AT_5}) == FetchPlan(9, 2, {}, [B])
    session.replied(9)
    assert session.plan({A: AT_5, B: AT_0}) == FetchPlan(9, 3, {B: AT_0}, [])


def test_a_broker_without_sessions_is_told_everything_every_time() -> None:
    session = FetchSession()
    for _ in range(2):
        assert session.plan({A: AT_0}) == FetchPlan(0, 0, {A: AT_0}, [])
        session.replied(0)


def test_after_a_broken_connection_the_old_session_is_ended_by_a_new_one() -> None:
    session = begun()
    session.plan({A: AT_5, B: AT_0})
    session.failed()
    assert session.plan({A: AT_5, B: AT_0}) == FetchPlan(9, 0, {A: AT_5, B: AT_0}, [])
    session.replied(10)
    assert session.plan({A: AT_5, B: AT_0}) == FetchPlan(10, 1, {}, [])


def test_a_session_that_the_broker_forgot_is_not_named_again() -> None:
    session = begun()
    session.failed(gone=True)
    assert session.plan({A: AT_0}) == FetchPlan(0, 0, {A: AT_0}, [])


def test_epochs_begin_again_at_one() -> None:
    session = begun()
    session.epoch = 0x7FFFFFFF
    session.plan({A: AT_0, B: AT_0})
    session.replied(9)
    assert session.epoch == 1
